"""Entering a replica: a step of Slurm's own beside it, in which `beside` sees a session through.

The step shares the allocation of the job (`srun --overlap`), and ends with it.  What is wanted travels by the
step's stdin, never by a command line.  What is left of a replica that has ended lies in the folder that the
console shares with the nodes, and is looked at here.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import TaskRef
from jobs.backends.sessions import Barrier, Kind, NoEntry, Terminal, Wanted
from jobs.backends.slurm import evidence, layout, luggage, unsaved
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.evidence import Kept
from jobs.backends.slurm.helper import Helper
from jobs.backends.slurm.layout import Sent
from jobs.backends.slurm.programs import Programs
from jobs.backends.slurm.step import BEGIN_S, Step, StepSession

SRUN: Final = (
    "--overlap",
    "--nodes=1",
    "--ntasks=1",
    "--mpi=none",
    "--kill-on-bad-exit=0",
    "--export=PATH",
)


class Replica:
    """One replica of one run, as far as it is written down where it is."""

    def __init__(self, config: SlurmConfig, sent: Sent, task: TaskRef) -> None:
        self._config = config
        self._folder = layout.attempt(config.root, sent.key)
        self._number = unsaved.number(self._folder, sent)
        self._run, self._task = task.run, task
        kept = evidence.kept(self._folder)
        self._name, self._place, self._places = _named(kept, task)
        self._key, self._user = sent.key, kept.user if kept else ""

    async def exec(self, wanted: Wanted) -> StepSession:
        """Run something beside it.  Raises NoEntry."""
        pid = evidence.process(self._folder, self._run, self._name)
        if pid is None and wanted.kind is not Kind.FOLDERS:
            raise NoEntry(Barrier.NOT_RUNNING)
        if pid is None:
            return await self._look_at_what_is_left()
        step = self._step()
        return await StepSession.begin(step, self._request(pid, wanted))

    async def reach(
        self, host: str, port: int, where: Callable[[str], str], patience_s: float = BEGIN_S
    ) -> tuple[str, int]:
        """See `sessions.Enterable`; `where` knows the addresses of nodes, and may have to ask."""
        pid = evidence.process(self._folder, self._run, self._name)
        node = evidence.of_run(self._folder, self._run).hosts.get(self._name, "")
        address = await asyncio.to_thread(where, node) if node else ""
        if pid is None or not address:
            raise NoEntry(Barrier.NOT_RUNNING)
        names = [node.lower(), address.lower()]
        request = {"kind": "reach", "pid": pid, "host": host, "port": port, "names": names}
        at = (await self._step().ask(request, patience_s))["at"]
        return _from_here(at, address), port

    def serves(self, port: int, where: Callable[[str], str]) -> bool | None:
        """Whether its node says that it listens there, within reach of this machine; None without a word."""
        try:
            return bool(asyncio.run(self.reach("localhost", port, where, self._config.timeout_s)))
        except NoEntry as error:
            return False if error.barrier is Barrier.NOT_ITS_OWN else None

    def _step(self) -> Step:
        """A step on the replica's node, in the part of the job that it belongs to."""
        node = evidence.of_run(self._folder, self._run).started[self._name][0]
        which = [f"--jobid={self._number}", f"--nodelist={node}"]
        if self._places > 1:
            which.append(f"--het-group={self._place}")
        if self._user:
            place = str(self._place) if self._places > 1 else "-"
            return self._as_user("enter", str(self._number), place, node)
        programs = Programs(self._config)
        try:
            archive = luggage.packed(self._config.root)
            command = programs.command("srun", *SRUN, *which, self._config.python, *_ISOLATED, str(archive))
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        return Step(command, programs.environment())

    def _as_user(self, verb: str, *words: str) -> Step:
        """What the job's own user does there."""
        helper = Helper(self._config, self._user)
        try:
            archive = luggage.packed(self._config.root, for_all=True)
            return Step(helper.command(verb, *words, archive.name), {"LANG": "C.UTF-8"})
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error

    async def _look_at_what_is_left(self) -> StepSession:
        """Of a replica that has ended; nothing of it runs any more, and so no step is needed."""
        if not (self._folder / layout.run_folder(self._run) / "ends" / self._name).exists():
            raise NoEntry(Barrier.NOT_RUNNING if self._folder.exists() else Barrier.GONE)
        if not self._work.is_dir():
            raise NoEntry(Barrier.GONE)
        request = self._request(None, Wanted(Kind.FOLDERS))
        if self._user:
            return await StepSession.begin(self._as_user("look", self._key), request)
        try:
            command = [sys.executable, *_ISOLATED, str(luggage.packed(self._config.root))]
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        return await StepSession.begin(Step(command, {"LANG": "C.UTF-8"}), request)

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
            "folder": str(self._work),
            "label": str(self._work),
        }


_ISOLATED: Final[Sequence[str]] = ("-I", "-S")


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
