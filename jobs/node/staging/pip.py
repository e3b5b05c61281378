"""Libraries of a job: how their installer is called, and how the job then finds them.

The configuration of pip, uv and conda is the job's own (its environment, a pip.conf); nothing here names an
index.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from jobs.node.staging.mount_specs import PackageSpec

BIN: Final = "JOB_CONSOLE_BIN"
"""Tells a container, which has a PATH of its own, what comes before it."""

SCRIPT: Final = 'if command -v python3 >/dev/null 2>&1; then exec python3 "$@"; fi; exec python "$@"'
"""For a POSIX shell, which knows the PATH; what follows are its arguments and never part of it."""

ENVIRONMENT: Final = ".environment"
"""Beside the links that the installer makes: a link to the environment itself."""

IN_USE_S: Final = 3600
"""An environment is not removed so long after its last use, by when its users have locked it."""

_INSTALLER: Final = Path(__file__).with_name("library_installer.py").read_text(encoding="utf-8")
"""Read before a replica gets a root file system of its own, where this file may not be."""


def arguments(
    packages: PackageSpec, work: str, store: str = "", *, unused_s: int = IN_USE_S, copies: bool = False
) -> list[str]:
    """Return a shell's arguments.

    `work` is the replica's own folder, `store` where the person's environments are, '' for none; of those
    only what was not used for `unused_s` seconds is removed.  With `copies` the command will not see it.
    """
    how = "copies" if copies else "links"
    kept = [how, own_folder(work), store, str(packages.cache_bytes), str(unused_s)]
    return [SCRIPT, "sh", "-c", _installer(), *kept, packages.directory, *packages.names]


@cache
def _installer() -> str:
    """Return the installer's text for Python 3.6 and newer: without annotations."""
    tree = ast.parse(_INSTALLER)
    tree.body = [each for each in tree.body if not isinstance(each, ast.ImportFrom)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(tree)


def own_folder(work: str) -> str:
    """Return the folder in which the job finds its libraries."""
    return f"{work}/.local"


def configuration() -> dict[str, str]:
    """For pip alone: the system's packages are not touched by what goes to the user's own folder."""
    return {"PIP_BREAK_SYSTEM_PACKAGES": "1"}


def about(packages: PackageSpec) -> str:
    """Return the packages as they are shown to people."""
    return " ".join((*packages.names, packages.directory)).strip()


def visible(env: Mapping[str, str], work: str) -> dict[str, str]:
    """The variables by which the job finds what was installed, on top of its environment."""
    place = own_folder(work)
    own = f"{place}/conda/bin:{place}/bin:{place}/packages/bin"
    before = env.get("PYTHONPATH")
    return {
        "PYTHONUSERBASE": place,
        "PYTHONPATH": f"{place}/packages:{before}" if before else f"{place}/packages",
        **({"PATH": f"{own}:{env['PATH']}"} if "PATH" in env else {BIN: own}),
    }


def on_path(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a container, with what BIN names before its PATH."""
    if BIN not in env:
        return dict(env)
    return {**env, "PATH": ":".join(filter(None, (env[BIN], env.get("PATH"))))}
