"""Catalogue of error messages in a program's output, with the cause that each of them shows.

Patterns are looked for from the end of the output; the first of a row that matches a line counts, and of all
lines the last one that says more than that something failed.  Sources of the words: the programs' own
messages (CPython, bash, PyTorch, NCCL, CUDA, the NVIDIA driver, Slurm, Linux).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Origin(StrEnum):
    """Origin of an error: the job's own program, the platform that it runs on, or not known."""

    OWN = "own"
    PLATFORM = "platform"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ErrorPattern:
    """A kind of error by the words that programs write."""

    code: str
    origin: Origin
    words: re.Pattern[str]


def _row(code: str, origin: Origin, *words: str) -> ErrorPattern:
    return ErrorPattern(code, origin, re.compile("|".join(f"(?:{each})" for each in words)))


_OWN_EXCEPTIONS: Final = (
    "ArithmeticError|AssertionError|AttributeError|FileNotFoundError|ImportError|IndentationError|IndexError|"
    "IsADirectoryError|KeyError|LookupError|ModuleNotFoundError|NameError|NotADirectoryError|"
    "NotImplementedError|OverflowError|PermissionError|RecursionError|SyntaxError|TabError|TypeError|"
    "UnboundLocalError|UnicodeDecodeError|UnicodeEncodeError|ValueError|ZeroDivisionError"
)

CATALOGUE: Final = (
    _row(
        "gpu_memory",
        Origin.OWN,
        r"CUDA out of memory",
        r"\bOutOfMemoryError\b",
        r"CUDA error: out of memory",
        r"RESOURCE_EXHAUSTED: O(OM|ut of memory)",
    ),
    _row("shared_memory", Origin.OWN, r"out of shared memory", r"insufficient shared memory"),
    _row("device_assert", Origin.OWN, r"device-side assert triggered"),
    _row("gpu_ecc", Origin.PLATFORM, r"(?i:uncorrectable (ECC|NVLink) error)", r"(?i:double[- ]bit ECC)"),
    _row(
        "gpu_lost",
        Origin.PLATFORM,
        r"NVRM: Xid",
        r"\bXid \(?PCI",
        r"(?i:GPU (is lost|has fallen off the bus))",
        r"(?i:no CUDA-capable device is detected)",
        r"(?i:CUDA driver initialization failed)",
        r"(?i:Failed to initialize NVML)",
        r"CUDA error: (unknown error|hardware stack error|system not yet initialized)",
    ),
    _row(
        "collective_timeout",
        Origin.PLATFORM,
        r"Watchdog caught collective operation timeout",
        r"ran for \d+ milliseconds before timing out",
        r"(?i:timed? ?out waiting for (clients|all ranks))",
    ),
    _row(
        "nccl",
        Origin.PLATFORM,
        r"\bnccl(System|Internal|Remote)Error\b",
        r"NCCL (WARN|error).*(?:Connect|connection|socket|IB|net|unhandled system)",
        r"NCCL communicator was aborted",
        r"unhandled (system|cuda) error",
        r"ibv_\w+.*fail",
    ),
    _row(
        "network",
        Origin.PLATFORM,
        r"Connection (reset by peer|timed out|closed by peer)",
        r"\bECONNRESET\b",
        r"No route to host",
        r"Network is unreachable",
        r"Temporary failure in name resolution",
        r"Transport endpoint is not connected",
        r"Read from remote host .* failed",
    ),
    _row(
        "storage",
        Origin.PLATFORM,
        r"Input/output error",
        r"Stale file handle",
        r"Read-only file system",
        r"Remote I/O error",
    ),
    _row("disk_full", Origin.OWN, r"No space left on device", r"Disk quota exceeded"),
    _row(
        "preempted",
        Origin.PLATFORM,
        r"DUE TO PREEMPTION",
        r"(?i:\bpreempt(ed|ion)\b.*(signal|node|instance|job))",
        r"DUE TO NODE FAILURE",
    ),
    _row("python", Origin.OWN, rf"^\s*(?:[\w.]+\.)?(?:{_OWN_EXCEPTIONS})(?::|$)"),
    _row(
        "arguments",
        Origin.OWN,
        r"error: (unrecognized arguments|the following arguments are required|argument )",
    ),
    _row(
        "command",
        Origin.OWN,
        r": command not found$",
        r"can't open file '.*': \[Errno 2\]",
        r"(?i:\b(ba)?sh: .*: (No such file or directory|Permission denied|not found)$)",
        r"syntax error near unexpected token",
    ),
    _row(
        "shapes",
        Origin.OWN,
        r"shapes? cannot be multiplied",
        r"size mismatch for ",
        r"The size of tensor a .* must match",
        r"Error\(s\) in loading state_dict",
        r"Expected all tensors to be on the same device",
    ),
)
"""Those that name a cause more exactly stand before others."""

LINES: Final = 200
"""So many lines of the end of the output are looked at."""


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """A line that tells why a program failed."""

    code: str
    origin: Origin
    line: str


def find_error(lines: Sequence[str]) -> ErrorLine | None:
    """Return the most exact error among the last lines, of equal ones the last; None where there is none."""
    best: tuple[int, ErrorLine] | None = None
    for line in lines[-LINES:]:
        for rank, row in enumerate(CATALOGUE):
            if row.words.search(line):
                if best is None or rank <= best[0]:
                    best = rank, ErrorLine(row.code, row.origin, line.strip())
                break
    return best[1] if best else None
