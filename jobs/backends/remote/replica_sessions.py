"""Sessions beside replicas on other machines, and connections to their ports.

The request is sent by the transport, never by a command line.  The files of a replica that has ended lie in
the console's folder of the attempt, and are read there.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jobs.backends.base import ReplicaRef
from jobs.backends.remote import attempts, bundle, status_files
from jobs.backends.remote.bundle import ISOLATED
from jobs.backends.remote.listener_client import ListenerFiles, ListenerTransport
from jobs.backends.remote.port_agent import agent_for
from jobs.backends.remote.records import AttemptRecord, read_record
from jobs.backends.remote.session_client import RemoteSession
from jobs.backends.remote.transport import START_TIMEOUT_S, Classify, ProcessTransport, Transport
from jobs.backends.sessions import Barrier, NoEntry, SessionKind, SessionRequest
from jobs.backends.sockets import open_connection
from jobs.node.listening_sockets import is_loopback


class ReplicaSessions(ABC):
    """Sessions beside one replica of one run."""

    def __init__(self, root: Path, key: str, replica: ReplicaRef, timeout_s: float) -> None:
        """Read the attempt's record.  Raises NoEntry."""
        self._root, self._key, self._run, self._timeout_s = root, key, replica.run, timeout_s
        self._folder = attempts.attempt_folder(root, key)
        record = read_record(self._folder)
        if record is None:
            raise NoEntry(Barrier.GONE)
        self._record: AttemptRecord = record
        name = record.replica_name(replica.role, replica.index)
        if name is None:
            raise NoEntry(Barrier.NOT_RUNNING)
        self._name = name
        self._place = [role.name for role in record.roles].index(replica.role)

    @abstractmethod
    def _transport(self, node: str) -> Transport:
        """Return the transport to an agent on the replica's node.  Raises NoEntry."""

    def _listener(self, node: str, command: str) -> ListenerTransport:
        """Return the transport to the session listener that the job starts by a command on that node."""
        address, mode = partial(self._address, node), self._record.file_mode
        files = ListenerFiles(self._folder, self._run, self._name, self._record.ports, mode, address)
        return ListenerTransport(files, command, self.classify)

    @abstractmethod
    def _address(self, node: str) -> str:
        """Return the address of the node that the job names, "" if it is none of the job's."""

    @abstractmethod
    def _node_folder(self) -> Path:
        """Return the attempt's folder as its nodes have it."""

    def _remains_transport(self) -> Transport | None:
        """Return the transport to the files of an ended replica where the console can't read them itself.

        Raises OSError.
        """
        return None

    @staticmethod
    @abstractmethod
    def classify(complaint: str) -> Barrier:
        """Return the barrier that an error of the engine means."""

    async def exec(self, wanted: SessionRequest) -> RemoteSession:
        """Run a session beside the replica.  Raises NoEntry."""
        started = status_files.find_process(self._folder, self._run, self._name)
        if started is None and wanted.kind is not SessionKind.FOLDERS:
            raise NoEntry(Barrier.NOT_RUNNING)
        if started is None:
            return await self._list_remains()
        node, pid = started
        return await RemoteSession.begin(self._transport(node), self._request(pid, wanted))

    async def connect(self, host: str, port: int) -> socket.socket:
        """See `sessions.Enterable`: the node says before the connection and after it whose the port is."""
        node, request = await self._reach_request(host, port)
        key = (self._key, self._run, self._name, request["pid"])
        agent = agent_for(key, lambda: self._transport(node))
        before = await agent.ask(request, START_TIMEOUT_S)
        try:
            made = await open_connection(_from_here(before, request["address"]), port)
        except ConnectionRefusedError as error:
            raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}") from error
        except TimeoutError:
            raise
        except OSError as error:
            raise NoEntry(Barrier.FAILED, repr(error)) from error
        try:
            if await agent.ask(request, self._timeout_s) != before:
                raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}")
        except BaseException:
            made.close()
            raise
        return made

    async def _reach_request(self, host: str, port: int) -> tuple[str, dict[str, Any]]:
        """Return the replica's node, and the question to its agent.  Raises NoEntry."""
        started = status_files.find_process(self._folder, self._run, self._name)
        if started is None:
            raise NoEntry(Barrier.NOT_RUNNING)
        node, pid = started
        if not (name := await asyncio.to_thread(self._address, node)):
            raise NoEntry(Barrier.NOT_RUNNING)
        address = await _resolve(name)
        names = [node.lower(), name.lower(), address]
        return node, {
            "kind": "reach",
            "pid": pid,
            "host": host,
            "port": port,
            "names": names,
            "address": address,
        }

    def listens(self, port: int) -> bool | None:
        """Return whether the replica listens there for this machine; None without an answer of its node."""
        try:
            asyncio.run(self._check(port))
        except NoEntry as error:
            return False if error.barrier is Barrier.NOT_ITS_OWN else None
        return True

    async def _check(self, port: int) -> None:
        """Ask whether the replica listens on `port`.  Raises NoEntry."""
        node, request = await self._reach_request("localhost", port)
        _from_here(await self._transport(node).ask(request, self._timeout_s), request["address"])

    async def _list_remains(self) -> RemoteSession:
        """Begin a session in the files of an ended replica, which needs no step of the engine."""
        if not (self._folder / attempts.run_name(self._run) / "ends" / self._name).exists():
            raise NoEntry(Barrier.NOT_RUNNING if self._folder.exists() else Barrier.GONE)
        if not self._work.is_dir():
            raise NoEntry(Barrier.GONE)
        request = self._request(None, SessionRequest(SessionKind.FOLDERS))
        try:
            if (other := self._remains_transport()) is not None:
                return await RemoteSession.begin(other, request)
            command = [sys.executable, *ISOLATED, str(bundle.publish(self._root))]
            folder = attempts.open_folder(self._folder, self._work.relative_to(self._folder).parts)
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        classify: Classify = self.classify
        transport = ProcessTransport(command, {"LANG": "C.UTF-8"}, classify, (folder,))
        return await RemoteSession.begin(transport, {**request, "folder": f"/proc/self/fd/{folder}"})

    @property
    def _work(self) -> Path:
        return self._folder / attempts.run_name(self._run) / "work" / self._name

    def _request(self, pid: int | None, wanted: SessionRequest) -> dict[str, Any]:
        work = str(self._node_folder() / self._work.relative_to(self._folder))
        return {"pid": pid, "folder": work, "label": work, **wanted.as_message()}


async def _resolve(name: str) -> str:
    """Return the numeric address of a node.  Raises NoEntry."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NoEntry(Barrier.ENGINE_AWAY, f"{name}: {error}") from error
    return str(found[0][4][0])


def _from_here(reply: Mapping[str, Any], address: str) -> str:
    """Return the address for this machine of what listens on the node at `address`.

    The reply is told by the job's user: it is used only where the engine has that node.  Raises NoEntry.
    """
    at = str(reply.get("at"))
    if at in ("0.0.0.0", "::", address):  # noqa: S104 not bound here
        return address
    if is_loopback(at) and is_loopback(address):
        return at
    raise NoEntry(Barrier.NOT_ITS_OWN, f"{at}, while its node is reached at {address}")
