"""Installing Python packages for a job's user: how pip is called, and how the job then finds them.

pip's configuration is the job's own (its environment, a pip.conf); nothing here names an index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.local.provisions import Packages

BIN: Final = "JOB_CONSOLE_BIN"
"""Tells a container, which has a PATH of its own, what comes before it."""

SCRIPT: Final = 'if command -v python3 >/dev/null 2>&1; then exec python3 "$@"; fi; exec python "$@"'
"""For a POSIX shell, which knows the PATH; what follows are its arguments and never part of it."""

_INSTALL: Final = """\
import runpy, site, sys
target, options = sys.argv[1], sys.argv[2:]
where = ["--user"] if site.ENABLE_USER_SITE else ["--target", target]
sys.argv[1:] = ["install", "--no-input", "--no-cache-dir", "--disable-pip-version-check", *where, *options]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""An environment that shows no packages of the user's own, as a virtual one, gets them in a folder."""


def arguments(packages: Packages, work: str) -> list[str]:
    """What a shell with `-c` is given; `work` is the replica's own folder."""
    file = f"{packages.directory.rstrip('/')}/requirements.txt" if packages.directory else ""
    listed = ["-r", file] if file else []
    names = ["--", *packages.names] if packages.names else []
    return [SCRIPT, "sh", "-c", _INSTALL, _target(work), *listed, *names]


def configuration() -> dict[str, str]:
    """For pip alone: the system's packages are not touched by what goes to the user's own folder."""
    return {"PIP_BREAK_SYSTEM_PACKAGES": "1"}


def about(packages: Packages) -> str:
    """What is installed, as it is told."""
    return " ".join((*packages.names, packages.directory)).strip()


def visible(env: Mapping[str, str], work: str) -> dict[str, str]:
    """The variables by which the job finds what was installed, on top of its environment."""
    own = f"{work}/.local/bin:{_target(work)}/bin"
    before = env.get("PYTHONPATH")
    return {
        "PYTHONUSERBASE": f"{work}/.local",
        "PYTHONPATH": f"{_target(work)}:{before}" if before else _target(work),
        **({"PATH": f"{own}:{env['PATH']}"} if "PATH" in env else {BIN: own}),
    }


def on_path(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a container, with what BIN names before its PATH."""
    if BIN not in env:
        return dict(env)
    return {**env, "PATH": ":".join(filter(None, (env[BIN], env.get("PATH"))))}


def _target(work: str) -> str:
    return f"{work}/.local/packages"
