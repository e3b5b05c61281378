"""Values as Slurm's programs and its REST API write them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1 << 20, "P": 1 << 30}


def whole(value: str) -> int:
    """Return a number, 0 for anything else."""
    return int(value) if value.isascii() and value.isdigit() else 0


def time(value: str) -> float | None:
    """Return a time in seconds since the epoch, None for anything else."""
    return float(whole(value)) or None


def mib(value: str) -> int | None:
    """Return an amount such as 200M, 1.50G or 2T in MiB, None for anything else."""
    try:
        return round(float(value.rstrip("".join(_UNITS))) * _UNITS.get(value[-1:], 1))
    except ValueError:
        return None


def shell_code(status: int) -> int:
    """Return the exit code of a wait status as a shell has it: 128+n for a signal."""
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
