"""Named places at which a test may kill or freeze the process.

Inert unless the environment names a folder in CONSOLE_FAULTS.  There, a file with a point's name and
the content KILL or STOP makes the next process that passes the point send itself that signal, once.
Standard library only: the local agent and wrapper use it too.
"""

from __future__ import annotations

import os
import signal
from typing import Final

FOLDER: Final = os.environ.get("CONSOLE_FAULTS", "")

POINTS: Final = (
    "accept.before_commit",
    "accept.after_commit",
    "admit.before_commit",
    "dependencies.before_commit",
    "turns.before_commit",
    "sweep.stopping",
    "submit.leased",
    "submit.before_engine",
    "submit.after_engine",
    "release.before_engine",
    "stop.before_engine",
    "stop.after_engine",
    "observe.before_apply",
    "observe.before_commit",
    "detect.before_commit",
    "detect.after_commit",
    "stacks.before_commit",
    "decide.before_commit",
    "restart.before_commit",
    "restart.before_order",
    "restart.after_order",
    "retry.before_commit",
    "sanity.before_commit",
    "cordon.before_commit",
    "metrics.before_commit",
    "route.before_commit",
    "notification.before_send",
    "notification.after_send",
    "forward.before_post",
    "forward.after_post",
    "seal.before_stream",
    "seal.after_stream",
    "local.before_lock",
    "local.locked",
    "local.claimed",
    "local.accepted",
    "local.launched",
    "local.stop_written",
    "slurm.before_lock",
    "slurm.locked",
    "slurm.before_sbatch",
    "slurm.accepted",
    "slurm.noted",
    "ray.before_lock",
    "ray.locked",
    "ray.before_post",
    "ray.accepted",
    "ray.noted",
    "kubernetes.recorded",
    "kubernetes.claimed",
    "kubernetes.prepared",
    "kubernetes.submitted",
    "kubernetes.released",
    "kubernetes.creating",
    "kubernetes.created",
    "kubernetes.stop_written",
    "agent.begun",
    "agent.before_start",
    "agent.after_start",
    "agent.exit_seen",
    "agent.before_restart",
    "agent.after_restart",
    "agent.warned",
    "agent.decided",
    "agent.ordered",
    "agent.before_end",
    "agent.ended",
    "agent.given_back",
    "network.held",
    "network.made",
    "network.recorded",
    "wrapper.begun",
    "wrapper.copied",
    "wrapper.fetched",
    "wrapper.installed",
    "wrapper.init_ended",
    "wrapper.moved_in",
    "wrapper.claimed",
    "wrapper.running",
    "wrapper.ended",
    "wrapper.logged",
    "wrapper.written",
)
"""Every point there is; a test goes through all of them."""


def fault(point: str) -> None:
    """Die or freeze here if a test asked for it."""
    if FOLDER:
        _trigger(point)


def hold_folder() -> None:
    """Hold the folder open, before leaving the file system that it lies in."""
    global _held  # noqa: PLW0603 a process holds it once and for all
    if FOLDER and _held is None:
        _held = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY)


_held: int | None = None


def _trigger(point: str) -> None:
    hold_folder()
    taken = f"{point}.taken.{os.getpid()}"
    try:
        os.rename(point, taken, src_dir_fd=_held, dst_dir_fd=_held)
    except OSError:
        return
    with os.fdopen(os.open(taken, os.O_RDONLY, dir_fd=_held), encoding="utf-8") as file:
        wanted = file.read().strip()
    if os.getpid() == 1:
        _as_first(wanted)
    # To this thread: one to the process may be taken by another, and this one would go on for a moment.
    signal.raise_signal(signal.SIGSTOP if wanted == "STOP" else signal.SIGKILL)


def _as_first(wanted: str) -> None:
    """The first process of a PID namespace is deaf to its own SIGKILL and SIGSTOP: do as they would."""
    if wanted == "KILL":
        os._exit(128 + signal.SIGKILL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
    signal.sigwait({signal.SIGCONT})
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
