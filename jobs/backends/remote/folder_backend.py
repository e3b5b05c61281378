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
from jobs.backends.remote import attempts, relay_ingest, status_files
from jobs.backends.remote.attempts import InvalidKey
from jobs.backends.remote.endpoints import EndpointProbe
from jobs.backends.remote.records import AttemptRecord, read_record
from jobs.backends.remote.replica_sessions import ReplicaSessions
from jobs.backends.sessions import Barrier, NoEntry, Session, SessionRequest
from jobs.node import credential_server
from jobs.node.folder_removal import remove_folder
from jobs.states import TERMINAL

OVERDUE_S: Final = 15
"""A job that has not ended by itself so long after the requested time is ended by the engine."""


SECRETS: Final = (
    "secrets",
    "login",
    "code-key",
    "dir-login",
    "dir-code-key",
    "bucket-login",
    "door",
    "door-key",
    credential_server.FILE,
)
"""Files in an attempt's folder that are removed at its end."""


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

    @abstractmethod
    def _end_by_engine(self, handle: Handle, record: AttemptRecord, *, is_early: bool) -> None:
        """Have the engine end the job: if it has not begun (`is_early`), or as it does not end by itself."""

    def stop(self, handle: Handle, *, grace_s: int, signal: str) -> None:
        """See `base.Backend`.  The job itself sends the signal and counts the time."""
        folder = self._find_folder(handle)
        record = read_record(folder) if folder else None
        if folder is None or record is None:
            return
        until = time.time() + grace_s
        earlier = (attempts.read_text(folder / "stop") or "").split()
        if len(earlier) < 3 or float(earlier[2]) > until:
            attempts.write_text(folder / "stop", f"{signal} {grace_s} {until:.3f}\n", record.file_mode)
            self._end_by_engine(handle, record, is_early=True)
        elif time.time() > float(earlier[2]) + OVERDUE_S:
            self._end_by_engine(handle, record, is_early=False)

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
        """Return observations with the endpoints of replicas and with their versions.

        Attempts that have ended are closed.
        """
        for handle, found in seen.items():
            if isinstance(found, Observation) and found.state in TERMINAL:
                self._close(handle)
        probe = EndpointProbe(seen, self._listens, find_address)
        return {
            handle: probe.complete(handle, found).with_version() if isinstance(found, Observation) else found
            for handle, found in seen.items()
        }

    def _close(self, handle: Handle) -> None:
        """Remove the secrets of an ended attempt, as far as the job has not, and accept no more of it."""
        folder = self._folder(self._key(handle))
        for name in SECRETS:
            (folder / name).unlink(missing_ok=True)
        if (record := read_record(folder)) is not None and record.apart:
            relay_ingest.close_attempt(folder)

    def _remove(self, folder: Path) -> bool:
        """Remove an attempt's folder, and its job's with the last one; return whether it was that."""
        remove_folder(folder)
        is_last = folder.parent.exists() and not any(folder.parent.iterdir())
        if is_last:
            folder.parent.rmdir()
        return is_last

    def _folder(self, key: str) -> Path:
        return attempts.attempt_folder(self._root, key)

    def _find_folder(self, handle: Handle) -> Path | None:
        try:
            return self._folder(self._key(handle))
        except InvalidKey:
            return None
