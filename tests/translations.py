"""`python -m tests.translations`: every string of ours is there in every language, and compiled as committed.

Needs GNU gettext. Works on a copy of what git knows, so that collecting strings changes nothing here.
"""

import ast
import gettext
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from console.configuration import keys
from console.home import CHECKOUT

LANGUAGES = ("zh_Hans", "ja")
DOMAINS = ("django", "djangojs")
OURS = ("console", "jobs", "quotas")
NOT_OURS = ("docs/*", "static/vendor/*", "tests/*")
COLLECT = ["makemessages", "--no-obsolete", *chain.from_iterable(("--ignore", each) for each in NOT_OURS)]


def main() -> int:
    """Say what is missing, one line a file; 1 when something is."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        _copy_to(copy)
        keys.ensure(copy / "var")
        found = [*_not_translated(copy), *_not_compiled(), *_told_twice()]
    print("\n".join(found) or "Translations are complete.")
    return int(bool(found))


def _copy_to(copy: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / name, copy / name)


def _not_translated(copy: Path) -> Iterator[str]:
    (copy / "locale").mkdir(exist_ok=True)
    locales = [word for name in LANGUAGES for word in ("--locale", name)]
    environ = {**os.environ, "CONSOLE_HOME": str(copy / "var")}
    for domain in DOMAINS:
        command = [sys.executable, "manage.py", *COLLECT, *locales, "--domain", domain]
        subprocess.run(command, cwd=copy, env=environ, check=True, stdout=subprocess.DEVNULL)
        for language in LANGUAGES:
            path = copy / "locale" / language / "LC_MESSAGES" / f"{domain}.po"
            if path.is_file():
                yield from _incomplete(path, f"{language} {domain}")


def _incomplete(path: Path, name: str) -> Iterator[str]:
    command = ["msgfmt", "--check", "--statistics", "--output-file", os.devnull, str(path)]
    done = subprocess.run(
        command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False
    )
    if done.returncode or "untranslated" in done.stderr or "fuzzy" in done.stderr:
        yield f"{name}: {done.stderr.strip()}"


def _told_twice() -> Iterator[str]:
    """Sentences with one singular and several plurals: a catalogue keeps one plural for each singular."""
    plurals: dict[str, set[str]] = {}
    for source in sorted(chain.from_iterable((CHECKOUT / name).rglob("*.py") for name in OURS)):
        for called in ast.walk(ast.parse(source.read_text())):
            match called:
                case ast.Call(
                    func=ast.Name("ngettext" | "ngettext_lazy"),
                    args=[ast.Constant(str(one)), ast.Constant(str(many)), *_],
                ):
                    plurals.setdefault(one, set()).add(many)
    for one, several in plurals.items():
        if len(several) > 1:
            yield f"{one!r} is the singular of several sentences: {sorted(several)}"


def _not_compiled() -> Iterator[str]:
    for source in sorted(CHECKOUT.glob("locale/*/LC_MESSAGES/*.po")):
        with tempfile.NamedTemporaryFile(suffix=".mo") as compiled:
            subprocess.run(["msgfmt", "--output-file", compiled.name, source], check=True)
            committed = source.with_suffix(".mo")
            if not committed.is_file() or _catalog(committed) != _catalog(Path(compiled.name)):
                yield f"{committed.relative_to(CHECKOUT)} is not what `make messages` makes of its .po file."


def _catalog(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        return gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined, no-any-return]


if __name__ == "__main__":
    sys.exit(main())
