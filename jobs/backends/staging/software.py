"""Environment modules and environments of conda or venv: what the shell does before a job's own command.

Where they lie is known only where the job runs, in its image perhaps: what is not there fails the replica
with a sentence in its log, before anything of the job has run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jobs.spec import RoleSpec, Software

INITS: Final = (
    "/etc/profile.d/lmod.sh",
    "/etc/profile.d/modules.sh",
    "/usr/share/lmod/lmod/init/sh",
    "/usr/share/modules/init/sh",
)
"""What defines `module` in a shell: Lmod's and Environment Modules' own files, as distributions lay them."""

BCCL: Final = "/usr/local/bccl"
"""Where BCCL's packages install it (Baidu's page on BCCL)."""

_BCCL_VARIABLES: Final = {
    "BCCL_BUS_BW_CALCULATE_MODE": "Agg",
    "BCCL_PROFILING_FILE": "busbw.cal.%h.%p",
    "BCCL_TRACE_HANG_SIGNAL": "10",
}
"""What AIHC gives a job (answers of its API, `envs` of a pod); the file is in the working folder here."""

_RDMA: Final = ('export NCCL_IB_DISABLE="${NCCL_IB_DISABLE:-0}"',)
"""What `enableRDMA` sets (AIHC page)."""

FAILED: Final = 127
"""What a shell ends with when there is no such program."""


def has_modules(root: Path = Path("/")) -> bool:
    """Tell whether a machine has something that loads modules."""
    return any((root / init.lstrip("/")).is_file() for init in INITS)


def with_modules(role: RoleSpec, asked: Software) -> RoleSpec:
    """The role with a command that loads what is asked for first."""
    command = with_prologue(role.command, asked, rdma=role.resources.rdma)
    return role if command == role.command else role.model_copy(update={"command": command})


def with_prologue(command: str, software: Software, *, rdma: bool = False) -> str:
    """The command with everything that is loaded before it, on one line above it."""
    steps = [
        *_modules(software),
        *_conda(software.conda),
        *_venv(software.venv),
        *(_RDMA if rdma else ()),
        *(_bccl() if software.bccl else ()),
    ]
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


def _bccl() -> list[str]:
    """Load BCCL where it is installed; else the job's own NCCL runs, and the log says so."""
    found = f"export LD_LIBRARY_PATH={BCCL}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
    missing = f"BCCL is not installed in {BCCL}: NCCL is used."
    return [
        f"if [ -d {BCCL}/lib ]; then {found}; else echo {shlex.quote(missing)} >&2; fi",
        *_defaults(_BCCL_VARIABLES),
    ]


def _defaults(variables: Mapping[str, str]) -> list[str]:
    """Export variables that the job does not set itself."""
    return [f'export {name}="${{{name}:-{value}}}"' for name, value in variables.items()]


def _unless(check: str, words: str) -> str:
    """Say the words and end, unless `check` succeeds."""
    return f"{check} || {{ echo {shlex.quote(words)} >&2; exit {FAILED}; }}"
