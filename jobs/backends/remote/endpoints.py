"""Probes the endpoints of replicas from the console.

A requested port was free on its node when the job began, or another was chosen; a listener there is taken for
the replica.  An announced port counts only once the node has confirmed that a process of the replica listens
there: otherwise a job could announce the services of others as its own.
"""

from __future__ import annotations

import http.client
import select
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import EndpointSeen, Gone, Handle, Observation, ReplicaRef, ReplicaSeen, Unseen
from jobs.node.supervisor.announced_ports import AnnouncedPort, AnnouncementFile
from jobs.states import Params, PortSource, ReplicaState, State, Unready

PATIENCE_S: Final = 10.0
"""A replica's ports may be silent for so long after its start."""

CONNECT_S: Final = 0.5
"""The timeout of all connections of one probe together."""

MAX_PROBED: Final = 500
"""Of one probe; of further ones it is not known whether they answer."""

MAX_REQUESTS: Final = 16
"""HTTP requests of one probe."""

MAX_OWNER_CHECKS: Final = 3
"""Announced ports that are checked on their nodes in one probe."""

OWNER_TTL_S: Final = {True: 300.0, False: 15.0}
"""How long the owner of an announced port is cached, as long as it answers."""

Address = tuple[str, int]
Check = Callable[[Handle, ReplicaRef, int], bool | None]
"""Tells whether that replica itself listens on that port, None when its node can't be asked now."""


@dataclass(frozen=True, slots=True)
class _ServedPort:
    """One port of a running replica: requested, or announced, or both."""

    seen: EndpointSeen
    begin: AnnouncedPort | None = None

    @property
    def address(self) -> Address:
        """Return its address for the console."""
        return self.seen.host, self.seen.port


class EndpointProbe:
    """One probe of all endpoints; `check` asks a node, `find_address` tells a node's address."""

    def __init__(
        self,
        seen: Mapping[Handle, Observation | Gone | Unseen],
        check: Check,
        find_address: Callable[[str], str],
    ) -> None:
        self._check, self._checks_left, self._requests_left = check, MAX_OWNER_CHECKS, MAX_REQUESTS
        self._ports = {
            (handle, each.role, each.index): tuple(_served_ports(each, find_address))
            for handle, seen_job in seen.items()
            if isinstance(seen_job, Observation) and seen_job.state is State.RUNNING
            for each in seen_job.replicas
            if each.state is ReplicaState.RUNNING
        }
        wanted = dict.fromkeys(port.address for ports in self._ports.values() for port in ports)
        self._listening = find_listening(list(wanted)[:MAX_PROBED])

    def complete(self, handle: Handle, seen_job: Observation) -> Observation:
        """Return the observation with the endpoints of its replicas."""
        if not any(self._ports.get((handle, each.role, each.index)) for each in seen_job.replicas):
            return seen_job
        replicas = tuple(self._with_endpoints(handle, seen_job.run, each) for each in seen_job.replicas)
        return replace(seen_job, replicas=replicas)

    def _with_endpoints(self, handle: Handle, run: int, one: ReplicaSeen) -> ReplicaSeen:
        ports = self._ports.get((handle, one.role, one.index))
        if ports is None:
            return one
        replica = ReplicaRef(one.role, one.index, run)
        return replace(one, endpoints=tuple(self._endpoint(handle, replica, one, port) for port in ports))

    def _endpoint(
        self, handle: Handle, replica: ReplicaRef, one: ReplicaSeen, port: _ServedPort
    ) -> EndpointSeen:
        seen, begin = port.seen, port.begin
        if begin is not None:
            seen = replace(seen, path=begin.path, token=begin.token)
        why, params = self._why(handle, replica, one, port)
        return replace(seen, ready=why is None, why=why, params=params)

    def _why(
        self, handle: Handle, replica: ReplicaRef, one: ReplicaSeen, port: _ServedPort
    ) -> tuple[Unready | None, Params]:
        seen = port.seen
        if seen.why is Unready.TAKEN:
            return seen.why, seen.params
        if port.address not in self._listening:
            _owners.pop((handle, seen.port), None)
            patient = time.time() - (one.started_at or 0) < PATIENCE_S
            return (Unready.STARTING, {}) if patient else (Unready.SILENT, {"port": seen.port})
        if seen.source is PortSource.ANNOUNCED and not (owns := self._owns(handle, replica, seen.port)):
            return (Unready.STARTING, {}) if owns is None else (Unready.TAKEN, {"port": seen.port})
        if port.begin is None or not port.begin.probe or self._requests_left <= 0:
            return None, {}
        self._requests_left -= 1
        return probe_http(*port.address, port.begin.probe)

    def _owns(self, handle: Handle, replica: ReplicaRef, port: int) -> bool | None:
        """Return whether the port is the replica's; None while that is not known."""
        known = _owners.get((handle, port))
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        if self._checks_left <= 0:
            return None
        self._checks_left -= 1
        owns = self._check(handle, replica, port)
        if owns is None:  # nor is another check answered now
            self._checks_left = 0
            return None
        if len(_owners) > _MOST_BELIEVED:
            _owners.clear()
        _owners[handle, port] = owns, time.monotonic() + OWNER_TTL_S[owns]
        return owns


_MOST_BELIEVED: Final = 10_000
_owners: Final[dict[tuple[Handle, int], tuple[bool, float]]] = {}
"""Recent answers of nodes, and until when they are valid."""


def _served_ports(one: ReplicaSeen, find_address: Callable[[str], str]) -> Iterator[_ServedPort]:
    """Yield the requested ports, and those that the replica announces in its folder."""
    log = Path(one.log_path)
    run, name = log.parent.parent, log.name.removesuffix(".output")
    announced_ports = {each.port: each for each in AnnouncementFile(run / "work" / name, None).read()}
    host = find_address(one.node) if one.node and (announced_ports or one.endpoints) else ""
    for seen in one.endpoints:
        yield _ServedPort(replace(seen, host=host), announced_ports.pop(seen.port, None))
    for begin in announced_ports.values():
        seen = EndpointSeen(begin.label, host, begin.port, ready=False, source=PortSource.ANNOUNCED)
        yield _ServedPort(seen, begin)


def find_listening(addresses: Collection[Address]) -> frozenset[Address]:
    """Return the addresses that accept a connection, within `CONNECT_S` for all of them."""
    found: set[Address] = set()
    with ExitStack() as opened:
        poll, waiting = select.poll(), {}
        for address in addresses:
            for family, at in _resolve(address):
                attempt = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
                attempt.setblocking(False)
                attempt.connect_ex(at)
                poll.register(attempt, select.POLLOUT)
                waiting[attempt.fileno()] = attempt, address
        until = time.monotonic() + CONNECT_S
        while waiting and (left := until - time.monotonic()) > 0:
            for fd, _event in poll.poll(left * 1000):
                poll.unregister(fd)
                attempt, address = waiting.pop(fd)
                if attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    found.add(address)
    return frozenset(found)


def _resolve(address: Address) -> Iterable[tuple[int, Any]]:
    """Return the first address of a name, if any."""
    if not address[0]:
        return ()
    try:
        family, _type, _protocol, _name, at = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
    except OSError:
        return ()
    return ((family, at),)


def probe_http(host: str, port: int, path: str) -> tuple[Unready | None, Params]:
    """Return why an endpoint with a probe path is not ready, None if it is."""
    connection = http.client.HTTPConnection(host, port, timeout=CONNECT_S)
    try:
        connection.request("GET", path, headers={"Accept": "*/*"})
        status = connection.getresponse().status
    except http.client.HTTPException:
        return Unready.NO_HTTP, {}
    except OSError:
        return Unready.NO_ANSWER, {}
    finally:
        connection.close()
    return (Unready.STATUS, {"status": status}) if status >= 500 else (None, {})
