"""Environment modules and environments of conda or venv: what the shell does before a job's own command.

Where they lie is known only where the job runs, in its image perhaps: what is not there fails the replica
with a sentence in its log, before anything of the job has run.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from jobs.spec import Software

INITS: Final = (
    "/etc/profile.d/lmod.sh",
    "/etc/profile.d/modules.sh",
    "/usr/share/lmod/lmod/init/sh",
    "/usr/share/modules/init/sh",
)
"""What defines `module` in a shell: Lmod's and Environment Modules' own files, as distributions lay them."""

FAILED: Final = 127
"""What a shell ends with when there is no such program."""


def has_modules(root: Path = Path("/")) -> bool:
    """Tell whether a machine has something that loads modules."""
    return any((root / init.lstrip("/")).is_file() for init in INITS)


def with_prologue(command: str, software: Software) -> str:
    """The command with everything that is loaded before it, on one line above it."""
    steps = [*_modules(software), *_conda(software.conda), *_venv(software.venv)]
    return "; ".join(steps) + "\n" + command if steps else command


def _modules(software: Software) -> list[str]:
    if not software.modules:
        return []
    inits = " ".join(INITS)
    names = shlex.join(software.modules)
    there = "command -v module >/dev/null 2>&1"
    return [
        f"{there} || for _init in {inits}; do [ -r $_init ] && . $_init && break; done",
        _unless(there, "There are no environment modules here."),
        _unless(f"module load {names}", f"These modules can't be loaded: {' '.join(software.modules)}."),
    ]


def _conda(folder: str) -> list[str]:
    if not folder:
        return []
    there, path = shlex.quote(f"{folder}/conda-meta"), shlex.quote(folder)
    bin_ = shlex.quote(f"{folder}/bin")
    return [
        _unless(f"[ -d {there} ]", f"There is no conda environment at {folder}."),
        f"export CONDA_PREFIX={path} CONDA_DEFAULT_ENV={path} PATH={bin_}:$PATH",
        "unset PYTHONHOME",
    ]


def _venv(folder: str) -> list[str]:
    if not folder:
        return []
    there, path = shlex.quote(f"{folder}/pyvenv.cfg"), shlex.quote(folder)
    bin_ = shlex.quote(f"{folder}/bin")
    return [
        _unless(f"[ -f {there} ]", f"There is no virtual environment at {folder}."),
        f"export VIRTUAL_ENV={path} PATH={bin_}:$PATH",
        "unset PYTHONHOME",
    ]


def _unless(check: str, words: str) -> str:
    """Say the words and end, unless `check` succeeds."""
    return f"{check} || {{ echo {shlex.quote(words)} >&2; exit {FAILED}; }}"
