"""Sessions beside replicas: steps of Slurm in which a session agent runs.

The step shares the allocation of the job (`srun --overlap`), and ends with it.  The console starts it, or the
job's user does by the sudo helper; where neither can, the job's own script starts a session listener.  The
request is sent by the step's stdin or the connection, never by a command line.  The files of a replica that
has ended lie in the folder that the console shares with the nodes, and are read here.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import ReplicaRef
from jobs.backends.remote import attempts, bundle, status_files
from jobs.backends.remote.bundle import ISOLATED
from jobs.backends.remote.listener_client import ListenerFiles, ListenerTransport
from jobs.backends.remote.port_agent import agent_for
from jobs.backends.remote.records import AttemptRecord, read_record
from jobs.backends.remote.session_client import RemoteSession
from jobs.backends.remote.transport import START_TIMEOUT_S, ProcessTransport, Transport
from jobs.backends.sessions import Barrier, NoEntry, SessionKind, SessionRequest
from jobs.backends.slurm.client.addresses import NodeAddresses
from jobs.backends.slurm.client.programs import NO_ANSWER, NO_CONNECTION, Programs
from jobs.backends.slurm.config import DOOR, SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.identity import folder_access
from jobs.backends.slurm.identity.as_user import SESSION_STEP
from jobs.backends.slurm.identity.helper import SudoHelper
from jobs.backends.slurm.status import recovery
from jobs.backends.sockets import open_connection
from jobs.node.listening_sockets import is_loopback

NO_JOB: Final = ("invalid job id", "expired or invalid job", "already completing or completed")
"""srun's errors where there is no such job, or none any more."""


class ReplicaSessions:
    """Sessions beside one replica of one run."""

    def __init__(
        self, config: SlurmConfig, job: SlurmJob, replica: ReplicaRef, addresses: NodeAddresses
    ) -> None:
        """Read the attempt's record.  Raises NoEntry."""
        self._config, self._addresses = config, addresses
        self._folder = attempts.attempt_folder(config.root, job.key)
        self._number = recovery.current_number(self._folder, job)
        self._key, self._run = job.key, replica.run
        record = read_record(self._folder)
        if record is None:
            raise NoEntry(Barrier.GONE)
        self._record = record
        self._name, self._component = _find_replica(record, replica)

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
            if await agent.ask(request, self._config.timeout_s) != before:
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
        _from_here(await self._transport(node).ask(request, self._config.timeout_s), request["address"])

    def _transport(self, node: str) -> Transport:
        """Return the transport to an agent on the replica's node, in its component of the job."""
        try:
            if self._config.enters == DOOR:
                mode = folder_access.READABLE if self._record.user else 0o600
                address = partial(self._address, node)
                files = ListenerFiles(self._folder, self._run, self._name, self._record.ports, mode, address)
                return ListenerTransport(files, f"{self._config.python} {self._bundle()}", classify)
            has_components = len(self._record.roles) > 1
            if self._record.user:
                component = str(self._component) if has_components else "-"
                return self._as_user("enter", str(self._number), component, node)
            where = [f"--jobid={self._number}", f"--nodelist={node}"]
            where += [f"--het-group={self._component}"] if has_components else []
            programs, agent = Programs(self._config), [*ISOLATED, str(self._bundle())]
            command = programs.command("srun", *SESSION_STEP, *where, self._config.python, *agent)
            return ProcessTransport(command, programs.environment(), classify)
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error

    def _address(self, node: str) -> str:
        """Return the address of the node that the job names, "" if it is none of the job's."""
        return self._addresses.of_job(self._number, self._run, node)

    def _bundle(self) -> Path:
        """Return the path of the node bundle on the node.  Raises OSError."""
        path = bundle.publish(self._config.root, for_all=bool(self._record.user))
        if not self._record.apart:
            return path
        return attempts.node_root(self._config.nodes_folder, self._key) / path.name

    def _as_user(self, verb: str, *words: str) -> ProcessTransport:
        """Return the transport to an agent that the sudo helper starts.  Raises OSError."""
        helper = SudoHelper(self._config, self._record.user)
        name = bundle.publish(self._config.root, for_all=True).name
        return ProcessTransport(helper.command(verb, *words, name), {"LANG": "C.UTF-8"}, classify)

    async def _list_remains(self) -> RemoteSession:
        """Begin a session in the files of an ended replica, which needs no step."""
        if not (self._folder / attempts.run_name(self._run) / "ends" / self._name).exists():
            raise NoEntry(Barrier.NOT_RUNNING if self._folder.exists() else Barrier.GONE)
        if not self._work.is_dir():
            raise NoEntry(Barrier.GONE)
        request = self._request(None, SessionRequest(SessionKind.FOLDERS))
        try:
            if self._config.has_helper and self._record.user:
                return await RemoteSession.begin(self._as_user("look", self._key), request)
            command = [sys.executable, *ISOLATED, str(bundle.publish(self._config.root))]
            folder = attempts.open_folder(self._folder, self._work.relative_to(self._folder).parts)
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        transport = ProcessTransport(command, {"LANG": "C.UTF-8"}, classify, (folder,))
        return await RemoteSession.begin(transport, {**request, "folder": f"/proc/self/fd/{folder}"})

    @property
    def _work(self) -> Path:
        return self._folder / attempts.run_name(self._run) / "work" / self._name

    def _request(self, pid: int | None, wanted: SessionRequest) -> dict[str, Any]:
        work = self._work
        if self._record.apart:
            folder = attempts.node_folder(self._config.nodes_folder, self._key)
            work = folder / work.relative_to(self._folder)
        return {"pid": pid, "folder": str(work), "label": str(work), **wanted.as_message()}


def classify(complaint: str) -> Barrier:
    """Return the barrier that an error of srun means."""
    low = complaint.lower()
    if any(phrase in low for phrase in (*NO_CONNECTION, *NO_ANSWER)):
        return Barrier.ENGINE_AWAY
    return Barrier.NOT_RUNNING if any(phrase in low for phrase in NO_JOB) else Barrier.FAILED


def _find_replica(record: AttemptRecord, replica: ReplicaRef) -> tuple[str, int]:
    """Return the replica's name in files, and the number of its component.  Raises NoEntry."""
    if (name := record.replica_name(replica.role, replica.index)) is None:
        raise NoEntry(Barrier.NOT_RUNNING)
    return name, [role.name for role in record.roles].index(replica.role)


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

    The reply is told by the job's user: it is used only where Slurm has that node.  Raises NoEntry.
    """
    at = str(reply.get("at"))
    if at in ("0.0.0.0", "::", address):  # noqa: S104 not bound here
        return address
    if is_loopback(at) and is_loopback(address):
        return at
    raise NoEntry(Barrier.NOT_ITS_OWN, f"{at}, while its node is reached at {address}")
