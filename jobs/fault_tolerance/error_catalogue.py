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

_PREFIX: Final = r"^\s*(?:\[rank\d+\]:\s*|\(\w+ pid=\d+\)\s*|\d+: |\[\d+,\d+\]<\w+>:\s*)?"
"""Prefixes that torchrun, Ray, srun and mpirun put before a line of a process."""

CATALOGUE: Final = (
    _row(
        "gpu_memory",
        Origin.OWN,
        r"CUDA out of memory",
        r"\bOutOfMemoryError\b",
        r"CUDA error: out of memory",
        r"RESOURCE_EXHAUSTED: O(OM|ut of memory)",
        r"OOM when allocating tensor",
        r"CU(BLAS|DNN)_STATUS_ALLOC_FAILED",
    ),
    _row("shared_memory", Origin.OWN, r"out of shared memory", r"insufficient shared memory"),
    _row(
        "host_memory",
        Origin.OWN,
        r"(?i:\boom[-_ ]kill)",
        r"(?i:\bout of memory: kill)",
        r"srun: error: .*Out Of Memory",
        r"\bMemoryError\b",
        r"Cannot allocate memory",
        r"DefaultCPUAllocator: can't allocate memory",
    ),
    _row("device_assert", Origin.OWN, r"device-side assert triggered", r"thread: \[[\d,]+\] Assertion"),
    _row("gpu_ecc", Origin.PLATFORM, r"(?i:uncorrectable (ECC|NVLink) error)", r"(?i:double[- ]bit ECC)"),
    _row(
        "gpu_lost",
        Origin.PLATFORM,
        r"NVRM: Xid",
        r"\bXid \(?PCI",
        r"(?i:GPU is lost|fallen off the bus)",
        r"(?i:no CUDA-capable device is detected)",
        r"CUDA-capable device\(s\) is/are busy or unavailable",
        r"(?i:CUDA driver initialization failed)",
        r"(?i:Failed to initialize NVML|nvml error: unknown)",
        r"CUDA error: (unknown error|hardware stack error|system not yet initialized)",
    ),
    _row(
        "gpu_setup",
        Origin.OWN,
        r"invalid device ordinal",
        r"CUDA driver version is insufficient",
        r"no kernel image is available",
        r"ncclInvalid(Usage|Argument)",
        r"Duplicate GPU detected",
    ),
    _row(
        "gpu_kernel",
        Origin.UNKNOWN,
        r"illegal (memory access|instruction) was encountered",
        r"unspecified launch failure",
        r"CUDA error: misaligned address",
        r"CU(BLAS|DNN)_STATUS_(EXECUTION_FAILED|NOT_INITIALIZED|INTERNAL_ERROR|MAPPING_ERROR)",
    ),
    _row(
        "node_lost",
        Origin.PLATFORM,
        r"\b(ORTE|PRTE) has lost communication",
        r"\bNode failure on ",
        r"DUE TO NODE FAILURE",
        r"\bNodeDiedError\b",
        r"\bnode has crashed",
        r"DUE TO JOB NOT ENDING WITH SIGNALS",
    ),
    _row(
        "collective_timeout",
        Origin.PLATFORM,
        r"Watchdog caught collective operation timeout",
        r"ran for \d+ milliseconds before timing out",
        r"detected by watchdog at work",
        r"NCCL operations have failed or timed out",
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
        r"NET/\w+ ?: ?Got completion ",
    ),
    _row(
        "storage",
        Origin.PLATFORM,
        r"Input/output error",
        r"(?i:stale (nfs )?file handle)",
        r"\[Errno 107\]",
        r"Cannot send after transport endpoint shutdown",
        r"Read-only file system",
        r"Remote I/O error",
    ),
    _row(
        "network",
        Origin.PLATFORM,
        r"Connection (reset by peer|timed out|closed by peer|refused|aborted)",
        r"\bECONN(RESET|REFUSED)\b",
        r"No route to host",
        r"Network is unreachable",
        r"Temporary failure in name resolution",
        r"Name or service not known",
        r"Transport endpoint is not connected",
        r"Read from remote host .* failed",
        r"Max retries exceeded with url",
        r"\bRead timed out",
        r"Socket Timeout",
        r"\b(Connect|Connection|Read)TimeoutError\b",
        r"\b(EndpointConnection|ConnectionClosed)Error\b",
        r"\bDist(Network|Store)Error\b",
        r"\bRendezvous(Closed|Connection|Timeout)Error\b",
    ),
    _row("disk_full", Origin.OWN, r"No space left on device", r"Disk quota exceeded"),
    _row(
        "preempted",
        Origin.PLATFORM,
        r"DUE TO (PREEMPTION|JOB REQUEUE)",
        r"(?i:\bpreempt(ed|ion)\b.*(signal|node|instance|job))",
        r"The node (was low on resource|had condition)",
    ),
    _row("time_limit", Origin.OWN, r"DUE TO TIME LIMIT"),
    _row("port_conflict", Origin.UNKNOWN, r"(?i:address already in use)", r"\bEADDRINUSE\b"),
    _row(
        "access_denied",
        Origin.OWN,
        r"\b(GatedRepo|RepositoryNotFound)Error\b",
        r"\b40[13] Client Error",
        r"Cannot access gated repo",
        r"\bAccessDenied\b",
    ),
    _row(
        "not_finite",
        Origin.OWN,
        r"(?i:\bloss is (nan|inf))",
        r"(?i:\boutputs? (is|are|contains?) nan)",
        r"loss scale already at minimum",
    ),
    _row("python", Origin.OWN, rf"{_PREFIX}(?:[\w.]+\.)?\w*(?:{_OWN_EXCEPTIONS})(?::|$)"),
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
        r"execve\(\): .*: (No such file or directory|Permission denied)",
        r"syntax error near unexpected token",
    ),
    _row(
        "shapes",
        Origin.OWN,
        r"shapes? cannot be multiplied",
        r"size mismatch(, m1:| for )",
        r"The size of tensor a .* must match",
        r"Error\(s\) in loading state_dict",
        r"Expected all tensors to be on the same device",
    ),
    _row(
        "crash",
        Origin.UNKNOWN,
        r"(?i:segmentation fault)",
        r"\(core dumped\)",
        r"Fatal Python error",
        r"exitcode *: -(6|7|11)\b",
        r"srun: error: .*: (Bus error|Aborted)",
    ),
    _row(
        "killed",
        Origin.UNKNOWN,
        r"exitcode *: -9\b",
        r"\bSIGKILL\b",
        r"^Killed$",
        r"signal 9 \(Killed\)",
        r"SignalException: Process \d+ got signal",
        r"Received \d+ death signal",
        r"worker process has died",
    ),
)
"""Those that name a cause more exactly stand before others."""

WORKSPACE_PATTERN: Final = "workspace_pattern"

LINES: Final = 200
"""So many lines of the end of the output are looked at."""


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """A line that tells why a program failed."""

    code: str
    origin: Origin
    line: str


def plain_pattern(origin: Origin, text: str) -> ErrorPattern:
    """Return a workspace's own kind of error: a plain text."""
    return ErrorPattern(WORKSPACE_PATTERN, origin, re.compile(re.escape(text)))


def find_error(lines: Sequence[str], own: Sequence[ErrorPattern] = ()) -> ErrorLine | None:
    """Return the most exact error among the last lines, of equal ones the last; None where there is none.

    A workspace's `own` patterns come before the catalogue's.
    """
    best: tuple[int, ErrorLine] | None = None
    for line in lines[-LINES:]:
        for rank, row in enumerate((*own, *CATALOGUE)):
            if row.words.search(line):
                if best is None or rank <= best[0]:
                    best = rank, ErrorLine(row.code, row.origin, line.strip())
                break
    return best[1] if best else None
