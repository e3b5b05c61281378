"""What the tests with a real GPU share: commands of the interpreter that has PyTorch, and how they end."""

from __future__ import annotations

import os
from typing import Final

from jobs.backends.base import Handle
from jobs.spec import Resources
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, wait_until_over

ONE_GPU: Final = Resources(cpu_milli=4000, memory_mib=16384, gpus=1)

PATH: Final = {"PATH": os.environ["PATH"]}
"""For jobs, whose own leads to no PyTorch that was installed beside the system's."""


def python(code: str) -> str:
    """A command that runs the code."""
    return f"python3 -c '{code.replace(chr(39), chr(34))}'"


def log_of_ended(bench: LocalBench, handle: Handle, state: State = State.SUCCEEDED) -> str:
    """The log of a job that ended so."""
    seen = wait_until_over(bench.backend, handle, timeout=240)
    log = log_of(bench.backend, handle)
    assert seen.state is state, log
    return log
