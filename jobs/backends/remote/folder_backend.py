"""A backend whose attempts have folders: what it does with their files, whatever the engine.

The job looks for what the console writes into its attempt's folder, directly or by the node relay, and its
status files and logs lie there.
"""

from __future__ import annotations

import json
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Final

from jobs.backends import origins
from jobs.backends.base import (
    Gone,
    Handle,
    LogSlice,
    LogState,
    Observation,
    ReplicaRef,
    Unreachable,
    Unseen,
)
from jobs.backends.origins import Origin
from jobs.backends.remote import attempts, status_files
from jobs.backends.remote.attempts import InvalidKey
from jobs.backends.remote.endpoints import EndpointProbe
from jobs.backends.remote.records import AttemptRecord, read_record
from jobs.backends.remote.replica_sessions import ReplicaSessions
from jobs.backends.sessions import Barrier, NoEntry, Session, SessionRequest

OVERDUE_S: Final = 15
"""A job that has not ended by itself so long after the requested time is ended by the engine."""


class StopStage(Enum):
    """How far the end of an attempt is that was to be stopped."""

    REQUESTED = "requested"
    WAITING = "waiting"
    OVERDUE = "overdue"


class FolderBackend(ABC):
    """See `base.Backend`; `root` is the folder of all attempts."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @abstractmethod
    def _key(self, handle: Handle) -> str:
        """Return the attempt's key.  Raises InvalidKey."""

    @abstractmethod
    def _open_sessions(self, handle: Handle, replica: ReplicaRef) -> ReplicaSessions:
        """Return the sessions beside a replica.  Raises NoEntry or InvalidKey."""

    @abstractmethod
    def _read_secrets(self, folder: Path) -> Mapping[str, str]:
        """Return the secret variables of an attempt that has not ended."""

    def read_log(self, handle: Handle, replica: ReplicaRef, cursor: str, limit: int) -> LogSlice:
        """See `base.Backend`."""
        folder = self._find_folder(handle)
        if folder is None:
            return LogSlice(b"", cursor, LogState.GONE)
        return status_files.read_log(self._root, folder, replica, cursor, limit)

    def order_restart(self, handle: Handle, replica: ReplicaRef, failed_run: int, *, restarts: bool) -> None:
        """See `base.RestartingReplicas`.  The replica itself looks for the order, on its node."""
        folder = self._find_folder(handle)
        record = read_record(folder) if folder else None
        name = record.replica_name(replica.role, replica.index) if record else None
        if folder is None or record is None or name is None:
            return
        path = folder / attempts.restart_order(replica.run, name, failed_run)
        try:
            attempts.create(path, "restart\n" if restarts else "end\n", record.file_mode, durable=True)
        except OSError as error:
            raise Unreachable(str(error)) from error

    def read_origin(self, key: str) -> Origin | None:
        """See `origins.OriginReader`; attempts of early releases have no record."""
        try:
            folder = self._folder(key)
        except InvalidKey:
            return None
        record = attempts.read_text(folder / origins.FILE)
        return None if record is None else origins.parse(json.loads(record), self._read_secrets(folder))

    async def exec(self, handle: Handle, replica: ReplicaRef, wanted: SessionRequest) -> Session:
        """See `sessions.Enterable`."""
        return await self._sessions(handle, replica).exec(wanted)

    async def connect(self, handle: Handle, replica: ReplicaRef, host: str, port: int) -> socket.socket:
        """See `sessions.Enterable`.  The replica's node is asked before the connection and after it."""
        return await self._sessions(handle, replica).connect(host, port)

    def _sessions(self, handle: Handle, replica: ReplicaRef) -> ReplicaSessions:
        try:
            return self._open_sessions(handle, replica)
        except InvalidKey as error:
            raise NoEntry(Barrier.GONE) from error

    def _listens(self, handle: Handle, replica: ReplicaRef, port: int) -> bool | None:
        return self._sessions(handle, replica).listens(port)

    def _complete(
        self, seen: Mapping[Handle, Observation | Gone | Unseen], find_address: Callable[[str], str]
    ) -> dict[Handle, Observation | Gone | Unseen]:
        """Return observations with the endpoints of replicas and with their versions."""
        probe = EndpointProbe(seen, self._listens, find_address)
        return {
            handle: probe.complete(handle, found).with_version() if isinstance(found, Observation) else found
            for handle, found in seen.items()
        }

    def _request_stop(self, folder: Path, record: AttemptRecord, grace_s: int, signal: str) -> StopStage:
        """Write the request for an attempt's end, unless an earlier one ends it sooner."""
        until = time.time() + grace_s
        earlier = (attempts.read_text(folder / "stop") or "").split()
        if len(earlier) < 3 or float(earlier[2]) > until:
            attempts.write_text(folder / "stop", f"{signal} {grace_s} {until:.3f}\n", record.file_mode)
            return StopStage.REQUESTED
        return StopStage.OVERDUE if time.time() > float(earlier[2]) + OVERDUE_S else StopStage.WAITING

    def _folder(self, key: str) -> Path:
        return attempts.attempt_folder(self._root, key)

    def _find_folder(self, handle: Handle) -> Path | None:
        try:
            return self._folder(self._key(handle))
        except InvalidKey:
            return None
