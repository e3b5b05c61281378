"""Results of the sanity check, as the program leaves them in each replica's own folder.

The folder is the job's, so nothing in it is believed: the file is opened through no link, has to be an
ordinary one of the job's own, is read only so far, and only what is as it should be is taken from it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from jobs.node.frameworks.sanity import FILE

RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
SKIPPED: Final = "Skipped"
PHASES: Final = ("CheckInit", "DeviceCheck", "SingleNodeCommCheck", "TwoNodeCommCheck", "AllNodeCommCheck")

CHECKS: Final = ("cpu", "memory", "disk", "gpu", "loopback", "network", "pair", "all_reduce", "timeout")
"""What may fail."""

NOT_BEGUN: Final[Mapping[str, Any]] = {"status": RUNNING, "phases": [], "checks": [], "failed": []}

_MOST_BYTES: Final = 64 * 1024
_MOST: Final = 8
_LONGEST: Final = 500
_MOST_RANKS: Final = 1 << 20
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STATUSES: Final = (RUNNING, SUCCEEDED, FAILED, SKIPPED)


def read(folder: Path, uid: int | None) -> dict[str, Any] | None:
    """Return a replica's result; None where there is none.  `uid` is the job's user, None where unknown."""
    try:
        fd = os.open(folder / FILE, _FLAGS)
    except OSError:
        return None
    try:
        now = os.fstat(fd)
        is_own = stat.S_ISREG(now.st_mode) and now.st_nlink == 1 and uid in (None, now.st_uid)
        value = json.loads(os.pread(fd, _MOST_BYTES, 0)) if is_own else None
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(fd)
    return _clean(value) if isinstance(value, dict) else None


def _clean(value: Mapping[str, Any]) -> dict[str, Any] | None:
    status = value.get("status")
    if status not in _STATUSES:
        return None
    return {
        "status": status,
        "phases": _rows(value.get("phases"), _clean_phase),
        "checks": _rows(value.get("checks"), _clean_check),
        "failed": _rows(value.get("failed"), _clean_fault),
    }


def _rows(value: Any, clean: Callable[[Mapping[str, Any]], dict[str, Any] | None]) -> list[dict[str, Any]]:
    rows = value[:_MOST] if isinstance(value, list) else []
    found = (clean(row) for row in rows if isinstance(row, dict))
    return [row for row in found if row is not None]


def _clean_phase(row: Mapping[str, Any]) -> dict[str, Any] | None:
    if row.get("phase") not in PHASES or row.get("status") not in _STATUSES:
        return None
    return {
        "phase": row["phase"],
        "status": row["status"],
        "message": _text(row.get("message")),
        "started_at": _time(row.get("started_at")),
        "finished_at": _time(row.get("finished_at")),
    }


def _clean_check(row: Mapping[str, Any]) -> dict[str, Any] | None:
    if row.get("check") not in CHECKS or row.get("status") not in _STATUSES:
        return None
    return {"check": row["check"], "status": row["status"], "detail": _text(row.get("detail"))}


def _clean_fault(row: Mapping[str, Any]) -> dict[str, Any] | None:
    if row.get("check") not in CHECKS:
        return None
    ranks = row["ranks"] if isinstance(row.get("ranks"), list) else []
    known = [rank for rank in ranks[:_MOST] if type(rank) is int and 0 <= rank < _MOST_RANKS]
    return {"check": row["check"], "detail": _text(row.get("detail")), "ranks": known}


def _text(value: Any) -> str:
    return "".join(filter(str.isprintable, value))[:_LONGEST] if isinstance(value, str) else ""


def _time(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value < 1e11 else None
