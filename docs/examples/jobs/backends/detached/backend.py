"""One replica of a job as a detached process of this machine."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from jobs.backends.base import (
    Gone,
    Handle,
    Inventory,
    LogSlice,
    LogState,
    NodeSeen,
    Observation,
    Refused,
    ReplicaRef,
    ReplicaSeen,
    Submission,
    Unseen,
)
from jobs.backends.detached.config import DetachedConfig
from jobs.states import Phase, Reason, ReasonCode, ReplicaState, State

RUN: Final = 'trap : TERM INT; echo $$ >pid; sh -c "$1" >log 2>&1; echo $? >end.new; mv end.new end'
STOP: Final = 'kill -s "$1" -- "-$2"; sleep "$3"; kill -s KILL -- "-$2"'


class DetachedBackend:
    """An attempt is a folder with its `role`, `pid`, `log`, `end` (exit code) and `stopped`."""

    has_scheduler: Final = False
    can_shrink: Final = False

    def __init__(self, config: DetachedConfig) -> None:
        self._config = config

    def _folder(self, handle: str) -> Path:
        return self._config.root / handle

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        return {key: [Handle(key)] if self._folder(key).is_dir() else [] for key in keys}

    def submit(self, submission: Submission) -> Handle:
        role, folder = submission.spec.roles[0], self._folder(submission.key)
        if submission.spec.replicas > 1 or role.image:
            raise Refused(Reason(ReasonCode.REFUSED))
        try:
            folder.mkdir(parents=True)
        except FileExistsError:  # the same key again
            return Handle(submission.key)
        (folder / "role").write_text(role.name)
        command = ("nice", "-n", str(self._config.nice), "sh", "-c", RUN, "sh", role.command)
        _detach(*command, cwd=folder, env={"PATH": os.defpath, **submission.spec.env})
        return Handle(submission.key)

    def observe(self, handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone | Unseen]:
        return {handle: self._observe(handle) for handle in handles}

    def _observe(self, handle: Handle) -> Observation | Gone:
        folder = self._folder(handle)
        if not (folder / "role").exists():
            return Gone.GONE
        is_alive, end = _is_alive(folder), folder / "end"  # alive first: else it may end in between
        code: int | None = None
        if end.exists():
            code = int(end.read_text())
        elif not (folder / "pid").exists():
            return Observation(State.PENDING, Reason(ReasonCode.STARTING), Phase.CREATING, version="pending")
        elif not is_alive:
            code = 137
        params = {"role": (folder / "role").read_text(), "index": 0}
        state, phase, reason = State.RUNNING, Phase.RUNNING, Reason(ReasonCode.RUNNING)
        if code is not None:
            phase = Phase.ENDED
            if (folder / "stopped").exists():
                state, reason = State.STOPPED, Reason(ReasonCode.USER_STOP)
            elif code == 0:
                state, reason = State.SUCCEEDED, Reason(ReasonCode.COMPLETED)
            else:
                state, reason = State.FAILED, Reason(ReasonCode.EXIT_CODE, {**params, "exit_code": code})
        began = (folder / "pid").stat().st_mtime
        over = end.stat().st_mtime if end.exists() else None
        replica = ReplicaSeen(
            role=str(params["role"]),
            index=0,
            state=ReplicaState(state.value),
            exit_code=code,
            node=platform.node(),
            started_at=began,
            ended_at=over,
            log_path=str(folder / "log"),
        )
        return Observation(state, reason, phase, (replica,), 1, state.value, began, over)

    def stop(self, handle: Handle, *, grace_s: int, signal: str) -> None:
        folder = self._folder(handle)
        if _is_alive(folder) and not (folder / "stopped").exists():
            (folder / "stopped").touch()
            _detach("sh", "-c", STOP, "sh", signal, (folder / "pid").read_text().strip(), str(grace_s))

    def read_log(self, handle: Handle, task: ReplicaRef, cursor: str, limit: int) -> LogSlice:
        found = self._observe(handle)
        if isinstance(found, Gone):
            return LogSlice(b"", cursor, LogState.GONE)
        data, start = b"", int(cursor or 0)
        if found.replicas:
            with (self._folder(handle) / "log").open("rb") as log:
                log.seek(start)
                data = log.read(limit)
        is_complete = found.phase is Phase.ENDED and len(data) < limit
        state = LogState.COMPLETE if is_complete else LogState.OPEN
        return LogSlice(data, str(start + len(data)), state)

    def inventory(self) -> Inventory:
        cpu_milli = (os.cpu_count() or 1) * 1000
        memory_mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        free = {"free_cpu_milli": cpu_milli, "free_memory_mib": memory_mib}
        return Inventory((NodeSeen(platform.node(), cpu_milli, memory_mib, **free),))

    def forget(self, handle: Handle) -> None:
        shutil.rmtree(self._folder(handle), ignore_errors=True)


def _detach(*command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a command in a session of its own, as a child of nobody."""
    null = subprocess.DEVNULL
    subprocess.run(
        ["setsid", "--fork", *command], cwd=cwd, env=env, stdin=null, stdout=null, stderr=null, check=True
    )


def _is_alive(folder: Path) -> bool:
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False
    return True


BACKEND: Final = DetachedBackend
