"""Entering a replica: a step of Slurm's own beside it, in which `beside` sees a session through.

The step shares the allocation of the job (`srun --overlap`), and ends with it.  The console begins it, or has
the job's user begin it; where it can do neither the job's own script does, and the console knocks there
(`knock`).  What is wanted travels by the step's stdin or by that connection, never by a command line.  What
is left of a replica that has ended lies in the folder that the console shares with the nodes, and is looked
at here.
"""

from __future__ import annotations

import asyncio
import sys
import time
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import TaskRef
from jobs.backends.sessions import Barrier, Kind, NoEntry, Terminal, Wanted
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import DOOR, SlurmConfig
from jobs.backends.slurm.identity import shared
from jobs.backends.slurm.identity.helper import Helper
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.script.layout import Sent
from jobs.backends.slurm.sessions import luggage
from jobs.backends.slurm.sessions.carried import LineSession
from jobs.backends.slurm.sessions.knock import Door, Place
from jobs.backends.slurm.sessions.line import BEGIN_S, Line
from jobs.backends.slurm.sessions.luggage import ISOLATED, SRUN
from jobs.backends.slurm.sessions.step import Step
from jobs.backends.slurm.status import evidence, unsaved
from jobs.backends.slurm.status.evidence import Kept
from jobs.backends.slurm.status.whereabouts import Whereabouts

_BELIEVED_S: Final = 15.0
"""Asking a node takes a step of Slurm's; so long its word is good for further connections."""

_MOST_BELIEVED: Final = 10_000
_believed: Final[dict[tuple[str, int, str, str, int], tuple[str, float]]] = {}


class Replica:
    """One replica of one run, as far as it is written down where it is."""

    def __init__(self, config: SlurmConfig, sent: Sent, task: TaskRef, where: Whereabouts) -> None:
        """`where` knows the addresses of nodes, and may have to ask."""
        self._config, self._where = config, where
        self._folder = layout.attempt(config.root, sent.key)
        self._number = unsaved.number(self._folder, sent)
        self._run, self._task = task.run, task
        kept = evidence.kept(self._folder)
        self._name, self._place, self._places = _named(kept, task)
        self._key, self._user = sent.key, kept.user if kept else ""
        self._apart = kept is not None and kept.apart
        self._ports = kept.ports if kept else config.ports

    async def exec(self, wanted: Wanted) -> LineSession:
        """Run something beside it.  Raises NoEntry."""
        started = evidence.process(self._folder, self._run, self._name)
        if started is None and wanted.kind is not Kind.FOLDERS:
            raise NoEntry(Barrier.NOT_RUNNING)
        if started is None:
            return await self._look_at_what_is_left()
        node, pid = started
        return await LineSession.begin(self._line(node), self._request(pid, wanted))

    async def reach(self, host: str, port: int, patience_s: float = BEGIN_S) -> tuple[str, int]:
        """See `sessions.Enterable`."""
        started = evidence.process(self._folder, self._run, self._name)
        if started is None:
            raise NoEntry(Barrier.NOT_RUNNING)
        node, pid = started
        if not (address := await asyncio.to_thread(self._address, node)):
            raise NoEntry(Barrier.NOT_RUNNING)
        names = [node.lower(), address.lower()]
        request = {"kind": "reach", "pid": pid, "host": host, "port": port, "names": names}
        told = await self._line(node).ask(request, patience_s)
        return _from_here(str(told.get("at")), address), port

    async def listener(self, host: str, port: int) -> str:
        """See `sessions.Enterable`: by the word of its node, believed for `_BELIEVED_S`."""
        asked = (self._key, self._run, self._name, host, port)
        if (known := _believed.get(asked)) is not None and time.monotonic() < known[1]:
            return known[0]
        try:
            found, _port = await self.reach(host, port, self._config.timeout_s)
        except NoEntry as error:
            if error.barrier in {Barrier.NOT_ITS_OWN, Barrier.NOT_RUNNING, Barrier.GONE}:
                raise
            found = ""
        if len(_believed) >= _MOST_BELIEVED:
            _believed.clear()
        _believed[asked] = found, time.monotonic() + _BELIEVED_S
        return found

    def serves(self, port: int) -> bool | None:
        """Whether its node says that it listens there, within reach of this machine; None without a word."""
        try:
            return bool(asyncio.run(self.reach("localhost", port, self._config.timeout_s)))
        except NoEntry as error:
            return False if error.barrier is Barrier.NOT_ITS_OWN else None

    def _line(self, node: str) -> Line:
        """To a step on the replica's node, in the part of the job that it belongs to."""
        if self._config.enters == DOOR:
            return self._door(node)
        which = [f"--jobid={self._number}", f"--nodelist={node}"]
        if self._places > 1:
            which.append(f"--het-group={self._place}")
        if self._user:
            place = str(self._place) if self._places > 1 else "-"
            return self._as_user("enter", str(self._number), place, node)
        programs = Programs(self._config)
        try:
            archive = self._archive()
            command = programs.command("srun", *SRUN, *which, self._config.python, *ISOLATED, str(archive))
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        return Step(command, programs.environment())

    def _door(self, node: str) -> Door:
        """One that the job's own script opens."""
        mode = shared.READABLE if self._user else 0o600
        where = partial(self._address, node)
        place = Place(self._folder, self._run, self._name, self._ports, mode, where)
        try:
            archive = self._archive()
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        return Door(place, f"{self._config.python} {archive}")

    def _address(self, node: str) -> str:
        """Where the node is that the job calls the replica's; nothing for one that Slurm has not given it."""
        return self._where.of_job(self._number, self._run, node)

    def _archive(self) -> Path:
        """What runs there, where its node has it.  OSError."""
        archive = luggage.packed(self._config.root, for_all=bool(self._user))
        if not self._apart:
            return archive
        return layout.around_on_nodes(self._config.nodes_folder, self._key) / archive.name

    def _as_user(self, verb: str, *words: str) -> Step:
        """What the job's own user does there."""
        helper = Helper(self._config, self._user)
        try:
            archive = luggage.packed(self._config.root, for_all=True)
            return Step(helper.command(verb, *words, archive.name), {"LANG": "C.UTF-8"})
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error

    async def _look_at_what_is_left(self) -> LineSession:
        """Of a replica that has ended; nothing of it runs any more, and so no step is needed."""
        if not (self._folder / layout.run_folder(self._run) / "ends" / self._name).exists():
            raise NoEntry(Barrier.NOT_RUNNING if self._folder.exists() else Barrier.GONE)
        if not self._work.is_dir():
            raise NoEntry(Barrier.GONE)
        request = self._request(None, Wanted(Kind.FOLDERS))
        if self._config.has_helper and self._user:
            return await LineSession.begin(self._as_user("look", self._key), request)
        try:
            command = [sys.executable, *ISOLATED, str(luggage.packed(self._config.root))]
            folder = layout.folder(self._folder, self._work.relative_to(self._folder).parts)
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        step = Step(command, {"LANG": "C.UTF-8"}, (folder,))
        return await LineSession.begin(step, {**request, "folder": f"/proc/self/fd/{folder}"})

    @property
    def _there(self) -> Path:
        """Where a replica runs, on its node."""
        if not self._apart:
            return self._work
        folder = layout.on_nodes(self._config.nodes_folder, self._key)
        return folder / self._work.relative_to(self._folder)

    @property
    def _work(self) -> Path:
        return self._folder / layout.run_folder(self._run) / "work" / self._name

    def _request(self, pid: int | None, wanted: Wanted) -> dict[str, Any]:
        return {
            "pid": pid,
            "kind": wanted.kind,
            "line": wanted.line,
            "argv": list(wanted.argv),
            "env": dict(wanted.env),
            "terminal": _terminal(wanted.terminal) if wanted.terminal else None,
            "folder": str(self._there),
            "label": str(self._there),
        }


def _named(kept: Kept | None, task: TaskRef) -> tuple[str, int, int]:
    """The replica's name in files, the place of its role, and how many roles there are.  Raises NoEntry."""
    if kept is None:
        raise NoEntry(Barrier.GONE)
    for role, index, name in kept.replicas():
        if (role.name, index) == (task.role, task.index):
            return name, kept.roles.index(role), len(kept.roles)
    raise NoEntry(Barrier.NOT_RUNNING)


def _terminal(terminal: Terminal) -> dict[str, Any]:
    return {"name": terminal.name, "columns": terminal.size.columns, "rows": terminal.size.rows}


def _from_here(at: str, address: str) -> str:
    """How this machine calls what listens at `at` on the node at `address`.  Raises NoEntry.

    `at` is told by what runs as the job's user: it is called only where Slurm has that node.
    """
    if at in ("0.0.0.0", "::", address):  # noqa: S104 what it listens on, not what we do
        return address
    if _is_loopback(at) and _is_loopback(address):
        return at
    raise NoEntry(Barrier.NOT_ITS_OWN, f"{at}, while its node is reached at {address}")


def _is_loopback(address: str) -> bool:
    """Whether it is this machine to itself."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
