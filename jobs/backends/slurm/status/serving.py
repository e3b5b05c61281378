"""What replicas serve, as it looks from the console: who answers on the ports of their nodes.

A port that was asked for was free on its node when the job began, or another was chosen; whoever answers
there is taken for the replica.  Of a port that a job announces nothing is believed: it counts once the node
has said that a process of the replica listens there.  Otherwise a job could announce, as its own, what others
serve.
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

from jobs.backends.base import EndpointSeen, Gone, Handle, Observation, ReplicaSeen, TaskRef, Unseen
from jobs.backends.slurm.status import sight
from jobs.node.supervisor.announced import Announced, Board
from jobs.states import Params, PortSource, State, TaskState, Unready

PATIENCE_S: Final = 10.0
"""How long after its start a replica is left alone before its silent ports are told."""

CONNECT_S: Final = 0.5
"""At each look nobody is waited for longer, all together."""

MOST_PROBED: Final = 500
"""At each look; of further ones it is not known whether they answer."""

MOST_ASKED: Final = 16
"""So many are asked by HTTP at each look."""

MOST_CHECKED: Final = 3
"""So many announced ports are checked on their nodes at each look."""

BELIEVED_S: Final = {True: 300.0, False: 15.0}
"""How long it is not checked again whose an announced port is, as long as it answers."""

Address = tuple[str, int]
Check = Callable[[Handle, TaskRef, int], bool | None]
"""Whether that replica itself listens on that port, as its node says; None when that can't be had now."""


@dataclass(frozen=True, slots=True)
class _Port:
    """One port of a running replica: what was asked for there, or announced, or both."""

    seen: EndpointSeen
    begin: Announced | None = None

    @property
    def address(self) -> Address:
        """Where the console reaches it."""
        return self.seen.host, self.seen.port


class Looked:
    """One look at everything that is served; `check` asks a node, `where` tells a node's address."""

    def __init__(
        self, seen: Mapping[Handle, Observation | Gone | Unseen], check: Check, where: Callable[[str], str]
    ) -> None:
        self._check, self._checks, self._asks = check, MOST_CHECKED, MOST_ASKED
        self._ports = {
            (handle, each.role, each.index): tuple(_ports(each, where))
            for handle, what in seen.items()
            if isinstance(what, Observation) and what.state is State.RUNNING
            for each in what.replicas
            if each.state is TaskState.RUNNING
        }
        wanted = dict.fromkeys(port.address for ports in self._ports.values() for port in ports)
        self._answer = answering(list(wanted)[:MOST_PROBED])

    def at(self, handle: Handle, what: Observation) -> Observation:
        """The observation, with what its replicas serve; itself where they serve nothing."""
        if not any(self._ports.get((handle, each.role, each.index)) for each in what.replicas):
            return what
        replicas = tuple(self._served(handle, what.run, each) for each in what.replicas)
        return sight.versioned(replace(what, replicas=replicas))

    def _served(self, handle: Handle, run: int, one: ReplicaSeen) -> ReplicaSeen:
        ports = self._ports.get((handle, one.role, one.index))
        if ports is None:
            return one
        task = TaskRef(one.role, one.index, run)
        return replace(one, endpoints=tuple(self._endpoint(handle, task, one, port) for port in ports))

    def _endpoint(self, handle: Handle, task: TaskRef, one: ReplicaSeen, port: _Port) -> EndpointSeen:
        seen, begin = port.seen, port.begin
        if begin is not None:
            seen = replace(seen, path=begin.path, token=begin.token)
        why, params = self._why(handle, task, one, port)
        return replace(seen, ready=why is None, why=why, params=params)

    def _why(
        self, handle: Handle, task: TaskRef, one: ReplicaSeen, port: _Port
    ) -> tuple[Unready | None, Params]:
        seen = port.seen
        if seen.why is Unready.TAKEN:
            return seen.why, seen.params
        if port.address not in self._answer:
            _believed.pop((handle, seen.port), None)
            patient = time.time() - (one.started_at or 0) < PATIENCE_S
            return (Unready.STARTING, {}) if patient else (Unready.SILENT, {"port": seen.port})
        if seen.source is PortSource.ANNOUNCED and not (owns := self._owns(handle, task, seen.port)):
            return (Unready.STARTING, {}) if owns is None else (Unready.TAKEN, {"port": seen.port})
        if port.begin is None or not port.begin.probe or self._asks <= 0:
            return None, {}
        self._asks -= 1
        return asked(*port.address, port.begin.probe)

    def _owns(self, handle: Handle, task: TaskRef, port: int) -> bool | None:
        """Whether the port is the replica's; None while that is not known."""
        known = _believed.get((handle, port))
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        if self._checks <= 0:
            return None
        self._checks -= 1
        owns = self._check(handle, task, port)
        if owns is None:  # nor of any other, and whoever looks has more to do
            self._checks = 0
            return None
        if len(_believed) > _MOST_BELIEVED:
            _believed.clear()
        _believed[handle, port] = owns, time.monotonic() + BELIEVED_S[owns]
        return owns


_MOST_BELIEVED: Final = 10_000
_believed: Final[dict[tuple[Handle, int], tuple[bool, float]]] = {}
"""What nodes said lately: only so that they are not asked at every look."""


def _ports(one: ReplicaSeen, where: Callable[[str], str]) -> Iterator[_Port]:
    """Those that were asked for, and those that the replica announces in its folder."""
    log = Path(one.log_path)
    run, name = log.parent.parent, log.name.removesuffix(".output")
    said = {each.port: each for each in Board(run / "work" / name, None).read()}
    host = where(one.node) if one.node and (said or one.endpoints) else ""
    for seen in one.endpoints:
        yield _Port(replace(seen, host=host), said.pop(seen.port, None))
    for begin in said.values():
        seen = EndpointSeen(begin.label, host, begin.port, ready=False, source=PortSource.ANNOUNCED)
        yield _Port(seen, begin)


def answering(addresses: Collection[Address]) -> frozenset[Address]:
    """Those at which somebody takes a connection, within `CONNECT_S` for all of them."""
    found: set[Address] = set()
    with ExitStack() as opened:
        poll, waiting = select.poll(), {}
        for address in addresses:
            for family, at in _resolved(address):
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


def _resolved(address: Address) -> Iterable[tuple[int, Any]]:
    """The first address of a name."""
    if not address[0]:
        return ()
    try:
        family, _type, _protocol, _name, at = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
    except OSError:
        return ()
    return ((family, at),)


def asked(host: str, port: int, path: str) -> tuple[Unready | None, Params]:
    """What it answers by HTTP where its job said that it may be asked."""
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
