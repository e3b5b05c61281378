"""Rules of `.gitignore` and `.jobignore`, as git understands them, for files that are not sent.

A rule counts for the folder that its file lies in and for all below; of several that match the deepest file's
last one decides, and in one folder `.jobignore` comes after `.gitignore`.  What lies in an ignored folder
can't be taken back.  Rules of the folders around count too, up to the one that has the repository in it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec

FILES: Final = (".gitignore", ".jobignore")
NEVER: Final = ".git"


class IgnoreRules:
    """The rules that count in one folder; `folder` is its path from where they are told."""

    def __init__(self, root: Path) -> None:
        self._around: list[tuple[Path, GitIgnoreSpec]] = []
        for folder in reversed(_around(root)):
            self._add(folder)

    def _add(self, folder: Path) -> None:
        lines = [line for name in FILES for line in _lines(folder / name)]
        if lines:
            self._around.append((folder, GitIgnoreSpec.from_lines(lines)))

    def enter(self, folder: Path) -> IgnoreRules:
        """The rules that count in a folder of this one."""
        found = IgnoreRules.__new__(IgnoreRules)
        found._around = list(self._around)  # noqa: SLF001 its own
        found._add(folder)  # noqa: SLF001 likewise
        return found

    def leave_out(self, path: Path, *, is_folder: bool) -> bool:
        """Tell whether what lies at the path, in the folder whose rules these are, is not sent."""
        if path.name == NEVER:
            return True
        for folder, spec in reversed(self._around):
            name = path.relative_to(folder).as_posix()
            verdict = _last_word(spec, f"{name}/" if is_folder else name)
            if verdict is not None:
                return verdict
        return False


def _around(root: Path) -> list[Path]:
    """The folder, and those around it up to the repository's; only itself where there is no repository."""
    found = []
    for folder in (root, *root.parents):
        found.append(folder)
        if (folder / NEVER).exists():
            return found
    return [root]


def _last_word(spec: GitIgnoreSpec, name: str) -> bool | None:
    """Return the verdict of the last rule about this very path.

    The library's own answer takes rules for folders to be about all that is in them, and less than those for
    files; git asks at each folder on the way, as is done here.
    """
    for rule in reversed(spec.patterns):
        found = rule.match_file(name) if rule.include is not None else None
        if found is not None and _is_about(found.match, name):
            return bool(rule.include)
    return None


def _is_about(match: re.Match[str], name: str) -> bool:
    """Tell whether a rule matches the path itself, and not a folder on the way to it."""
    end = match.end("ps_d") if match.groupdict().get("ps_d") else len(name)
    return end == len(name)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return []
