"""Processes of an earlier start that was killed: found by its records, and ended."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil

from console.run.child import read_record

LEFTOVER_SECONDS = 15.0


def clear(run: Path) -> None:
    """End every program of an earlier start that still lives, and forget about all of them.

    Most have ended by themselves, because their parent did. Jobs are not among them.
    """
    remaining = list(stale_processes(run))
    for process in remaining:
        _signal(process, signal.SIGTERM)
    _, stubborn = psutil.wait_procs(remaining, timeout=LEFTOVER_SECONDS)
    for process in stubborn:
        _signal(process, signal.SIGKILL)
    psutil.wait_procs(stubborn, timeout=LEFTOVER_SECONDS)
    for path in run.glob("*.process"):
        path.unlink(missing_ok=True)


def stale_processes(run: Path) -> Iterator[psutil.Process]:
    """Programs of an earlier start that still live, without pids that belong to somebody else by now."""
    for path in run.glob("*.process"):
        record = read_record(path)
        if record is None:
            continue
        try:
            process = psutil.Process(record.pid)
            # The record is written by the process itself: a later holder of its pid began after that.
            if process.create_time() <= record.started + 1 and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except psutil.NoSuchProcess:
            continue


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
