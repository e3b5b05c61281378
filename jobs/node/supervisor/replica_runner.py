"""The replica runner: runs one replica on a node that shares no folder with the console.

    an engine's process       gives the order, and holds the other ends of stdin and stdout
    this process              fetches the replica's files, has its command started, writes its status files
      ├ a wrapper             prepares the replica, and runs its command (`jobs.node.wrapper`)
      ├ a relay               copies logs and status files to the console (`jobs.node.relay`)
      └ a session listener    on request (`jobs.node.sessions.listener`)

It is no child of the engine's process: engines kill those without a word.  All that it knows lies in the
attempt's folder on the node, so one that was killed is replaced by another with the same order.  The
replica is killed once stdin ends: nobody looks after the job any more.

Its order is a line of JSON on stdin.  Further lines are messages: the end (`signal`, `grace_s`), or a warning
(`warning`, a signal).  Once the console was told of the end, the text of the replica's end is written to
stdout.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from jobs.node import kernel, marks, processes, relay
from jobs.node.files import Folder
from jobs.node.processes import Identity
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import data_transfer
from jobs.node.supervisor import layout
from jobs.node.supervisor.decision import plan_ending
from jobs.node.supervisor.plan import Plan, PlannedReplica, Slot
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.node.wrapper import attempt_files, environment, wrapper
from jobs.node.wrapper.launch_arguments import LaunchArguments
from jobs.node.wrapper.log_writer import open_pipe
from jobs.node.wrapper.outcome import KILLED, NODE, Cause, Exit, judge, now
from jobs.states import Reason, ReasonCode, ReplicaState, State

FOLLOW: Final = "follow"
TRIES: Final = 3
"""How often a wrapper that dies before it starts the command is replaced."""

_PAUSE_S: Final = 0.1
_MERCY_S: Final = 2.0
"""A wrapper may take so long after the last second to end its replica before it is killed itself."""

_LISTENER_S: Final = 5.0
_ISOLATED: Final = ("-I", "-S")
_IN, _OUT = 0, 1


@dataclass(frozen=True, slots=True)
class RunnerOrder:
    """An order: the replica at `position`, called `name` in files, on this `node` at `address`.

    `url`, `token`, `number`, `run` and `start` are the relay's, `folder` is the attempt's on the node, and
    `slots` are those of all replicas.  `path` is the command's PATH, and `engine` the process that is the
    engine's on this node.
    """

    url: str
    token: str
    folder: str
    number: int
    run: int
    start: str
    name: str
    position: int
    node: str
    address: str
    path: str
    engine: Identity
    slots: tuple[Slot, ...]

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        slots, engine = tuple(map(Slot.load, value["slots"])), Identity.load(value["engine"])
        return cls(**{**value, "slots": slots, "engine": engine})

    def relay_words(self) -> list[str]:
        """Return the arguments of the relay."""
        return [self.url, self.folder, str(self.number), str(self.run), self.start]


def main() -> NoReturn:
    """Run the replica that an order on stdin names."""
    line, rest = _read_line()
    order = RunnerOrder.load(json.loads(line))
    if os.fork():
        os._exit(0)
    os.setsid()
    kernel.set_name("jc-runner")
    end = ReplicaRunner(order, rest).run()
    with contextlib.suppress(OSError):  # nobody waits for it any more
        os.write(_OUT, f"{end}\n".encode())
    os._exit(0)


def _read_line() -> tuple[bytes, bytes]:
    """Return the first line of stdin, and what came behind it."""
    data = b""
    while b"\n" not in data:
        more = os.read(_IN, 1 << 16)
        if not more:
            raise EOFError("no order")
        data += more
    line, _, rest = data.partition(b"\n")
    return line, rest


class ReplicaRunner:
    """One replica, from its order until the console has its end."""

    def __init__(self, order: RunnerOrder, messages: bytes) -> None:
        self._order, self._messages = order, messages
        self._relay = relay.NodeRelay(
            relay.ConsoleConnection(order.url, order.token),
            order.folder,
            order.number,
            order.run,
            order.start,
        )
        self._path = Path(order.folder, f"run-{order.run}")
        self._is_attended = True
        self._handle: ReplicaHandle | None = None
        self._memory_mib = 0
        self._kill_at: float | None = None
        self._follower: subprocess.Popen[bytes] | None = None
        self._listener: tuple[subprocess.Popen[bytes], str] | None = None
        self._answered = ""
        self._wrapper = 0

    def run(self) -> str:
        """Run the replica; return the text of its end, once the console was told or accepts nothing more."""
        try:
            if self._relay.bring(self._order.name) == relay.OTHER_JOB:
                self._relay.bring("")  # an earlier runner had begun
        except (relay.ConsoleAway, relay.RelayRefused) as error:
            return f"1 {time.time():.3f} {Cause.START} The console gave no answer: {error}"
        self._follow()
        try:
            exit_ = self._run_replica()
        except (OSError, ValueError, LookupError) as error:
            exit_ = now(Cause.START, detail=f"{type(error).__name__}: {error}")
            if self._handle is not None:
                self._handle.kill()
                self._handle.clear_away()
        end = self._tell_end(exit_)
        self._end_listener()
        self._end_follower()
        self._relay.leave(self._order.name)
        return end

    # --- the replica ----------------------------------------------------------------------------------------

    def _run_replica(self) -> Exit:
        """Run it to its end."""
        with Folder.open(self._path) as folder:
            for name in ("replicas", "tmp"):
                folder.make(name)
            plan, place, given = self._read_plan()
            try:
                plan = self._unpack_trees(plan)
            except (OSError, subprocess.CalledProcessError, relay.ConsoleAway, relay.RelayRefused) as error:
                return now(Cause.CODE, detail=str(error))
            with self._relay.hold_lock():
                attempt_files.write(plan, self._path)
            if given["resumed"]:
                folder.publish(layout.RESUMED, given["resumed"])
            self._folder, self._plan, self._place = folder, plan, place
            self._memory_mib = place.role.memory_mib
            self._tracking = given["tracking"]
            with folder.sub("replicas") as replicas:
                self._handle = handle = ReplicaHandle(plan, place, replicas)
                handle.look()
                handle.adopt()
                return self._see_through(handle)

    def _see_through(self, handle: ReplicaHandle) -> Exit:
        while (ended := handle.find_end()) is None:
            if handle.held:
                self._obey_restart(handle)
            elif handle.hold is None and (handle.started is not None or handle.exit is not None):
                handle.bury(ending=self._kill_at is not None)
                continue
            elif handle.hold is None:
                self._start(handle)
            self._wait(handle)
            self._look_after(handle)
        self._write_news(handle)
        is_lost = ended.exit.cause is Cause.NOT_STARTED and not self._is_attended and self._kill_at is None
        return replace(ended.exit, cause=Cause.LOST, code=KILLED) if is_lost else ended.exit

    def _start(self, handle: ReplicaHandle) -> None:
        """Send out a wrapper, or end a replica whose wrappers die before they start its command."""
        if not self._is_attended or handle.tries >= TRIES:
            handle.settle(Cause.NOT_STARTED if not self._is_attended else Cause.START)
            return
        handle.clear_leftovers()
        output = open_pipe((self._plan.uid, self._plan.gid))
        told, _peers = environment.split_by_size(environment.peers(self._plan))
        launch = LaunchArguments(
            self._plan,
            self._place,
            self._path,
            self._folder,
            {**told, **self._tracking_variables()},
            self._read_secrets(),
            -1,
            0,
            output,
        )
        self._wrapper = wrapper.start(launch, _leave_streams)
        handle.take(self._wrapper, launch)
        handle.look()

    def _tracking_variables(self) -> dict[str, str]:
        name, url = self._tracking or ("", "")
        return {name: f"{url}/{self._order.position}"} if name else {}

    def _read_secrets(self) -> dict[str, Any]:
        with Folder.open(Path(self._order.folder)) as folder:
            return folder.read("secrets") or {}

    def _wait(self, handle: ReplicaHandle) -> None:
        """Wait for a message or the wrapper's end, but not long: requests come as files."""
        poll = select.poll()
        if self._is_attended:
            poll.register(_IN, select.POLLIN)
        if handle.hold is not None:
            poll.register(handle.hold, select.POLLIN)
        if _IN in [fd for fd, _ in poll.poll(_PAUSE_S * 1000)] and self._is_attended:
            more = os.read(_IN, 1 << 16)
            self._messages += more
            self._is_attended = bool(more)
        *lines, self._messages = self._messages.split(b"\n")
        for line in lines:
            self._obey(handle, json.loads(line))

    def _obey(self, handle: ReplicaHandle, message: Mapping[str, Any]) -> None:
        """Pass on the order to end, or a warning before the end."""
        if "warning" in message:
            self._folder.publish(layout.WARNING, {"signal": message["warning"]})
        else:
            ending = plan_ending(
                State.STOPPED,
                Reason(ReasonCode.JOB_ENDED),
                now=time.monotonic(),
                grace_s=message["grace_s"],
                signal=message["signal"],
            )
            self._folder.write(layout.ENDING, ending.dump())
            self._kill_at = ending.kill_at
            handle.make_final()
        handle.poke()

    def _look_after(self, handle: ReplicaHandle) -> None:
        """See to what has happened since the last look."""
        is_late = self._kill_at is not None and time.monotonic() > self._kill_at + _MERCY_S
        if is_late or not self._is_attended:
            handle.make_final()
            handle.kill()
        if handle.hold is not None and processes.over(handle.hold):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._wrapper, os.WNOHANG)
            handle.look()
            if handle.started is None and handle.exit is None:
                handle.clear_away()
            handle.close()
        self._write_news(handle)
        self._attend_listener()
        self._follow()

    def _obey_restart(self, handle: ReplicaHandle) -> None:
        """Start a failed replica again, or count its end, as the console orders; else tell that it waits."""
        exit_ = handle.exit
        assert exit_ is not None
        self._write("failed", f"{handle.run} {exit_.code} {exit_.ended_at:.3f}")
        order = Path(self._order.folder, f"restart-{self._order.run}-{self._order.name}.{handle.run}")
        if not self._is_attended or self._kill_at is not None:
            handle.make_final()
        elif order.exists():
            if order.read_text(encoding="utf-8").strip() == "restart":
                handle.begin_next_run(self._path / "logs" / f"{self._order.name}.output")
                self._write("failed", f"{handle.run} 0 0")
            else:
                handle.make_final()

    # --- files ----------------------------------------------------------------------------------------------

    def _read_plan(self) -> tuple[Plan, PlannedReplica, dict[str, Any]]:
        """Return the plan as it is on this node, the replica in it, and what else the console gives."""
        with Folder.open(Path(self._order.folder)) as folder:
            given = folder.read("plan")
        if given is None:
            raise FileNotFoundError("the console has no plan")
        plan, slots = Plan.load(given["plan"], given["limits"]), iter(self._order.slots)
        house = replace(
            plan.house,
            node=self._order.node,
            host_ip=self._order.address,
            isolation=Isolation.NONE,
            path=self._order.path,
        )
        plan = replace(
            plan,
            uid=os.geteuid(),
            gid=os.getegid(),
            boot=processes.boot_id(),
            house=house,
            roles=tuple(replace(role, slots=tuple(next(slots) for _ in role.slots)) for role in plan.roles),
            codes=tuple(
                replace(code, git=code.git and (shutil.which("git", path=house.path) or "git"))
                for code in plan.codes
            ),
            tools=data_transfer.tools() if plan.datas else None,
        )
        return plan, plan.replicas()[self._order.position], given

    def _unpack_trees(self, plan: Plan) -> Plan:
        """Fetch uploaded code, once on a node; it is copied from there."""
        codes = []
        for code in plan.codes:
            if code.tree:
                with self._relay.hold_lock():
                    code = replace(code, folder=str(self._unpack_tree(code.tree)), uri="")  # noqa: PLW2901
            codes.append(code)
        return replace(plan, codes=tuple(codes))

    def _unpack_tree(self, tree: str) -> Path:
        target = self._path / "stage" / tree
        if target.exists():
            return target
        draft = target.with_name(f"{tree}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700, parents=True)
        command = ["tar", "-x", "--no-same-owner", "-C", str(draft), "-f", "-"]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            for piece in self._relay.console.get(f"trees/{tree}.tar"):
                process.stdin.write(piece)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        draft.rename(target)
        return target

    def _write_news(self, handle: ReplicaHandle) -> None:
        """Write what is done for the replica, and that its command was started."""
        handle.has_news()
        if handle.step is not None:
            self._write("steps", f"{handle.step['step']} {handle.step['about']}")
        first = handle.first_started or handle.started
        if first is not None and layout.NEVER not in first:
            self._write("started", f"{self._order.node} {first['at']:.3f} {os.getpid()}")

    def _tell_end(self, exit_: Exit) -> str:
        """Write how the replica ended, unless another has done so; return the text."""
        path = self._path / "ends" / self._order.name
        if not path.exists():
            is_lost = exit_.cause is Cause.LOST and not self._is_attended
            if is_lost and not self._order.engine.alive():
                self._write("ends", f"{exit_.code} {exit_.ended_at:.3f} {NODE} {self._order.node}")
            else:
                self._write("ends", _describe(exit_, self._memory_mib))
        return path.read_text(encoding="utf-8").strip()

    def _write(self, folder: str, text: str) -> None:
        """Write a status file atomically, unless it says that already."""
        path = self._path / folder / self._order.name
        line = " ".join(text.split()) + "\n"
        with contextlib.suppress(FileNotFoundError):
            if path.read_text(encoding="utf-8") == line:
                return
        new = path.with_name(f"{path.name}.new")
        new.write_text(line, encoding="utf-8")
        new.replace(path)

    # --- beside the replica ---------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Have a relay follow this node's files; one that was killed is replaced."""
        if self._follower is None or self._follower.poll() not in (None, relay.REFUSED):
            words = [*_runner_command(), "relay", *self._order.relay_words(), FOLLOW]
            variables = {**os.environ, relay.TOKEN_VARIABLE: self._order.token}
            self._follower = _start(words, variables)

    def _end_follower(self) -> None:
        if self._follower is not None:
            self._follower.kill()
            self._follower.wait()

    def _attend_listener(self) -> None:
        """Start a session listener that the console requests, and tell when it has ended."""
        if self._listener is not None:
            process, request = self._listener
            if process.poll() is None:
                return
            self._listener = None
            self._write("doors", f"- {request}")
        try:
            text = Path(self._order.folder, f"enter-{self._order.name}").read_text(encoding="utf-8")
            request, python, archive = text.split()
        except (FileNotFoundError, ValueError):
            return
        if request == self._answered or not Path(self._order.folder, "door").exists():
            return
        self._answered = request
        first, last = self._plan.house.port_range
        words = [python, *_ISOLATED, archive, "door", self._order.folder, self._path.name, self._order.name]
        words += [request, self._order.address, str(first), str(last)]
        with (self._path / "doors" / f"{self._order.name}.said").open("wb") as said:
            variables = {"PATH": self._order.path, marks.RUNNER: os.environ[marks.RUNNER]}
            self._listener = _start(words, variables, said.fileno()), request

    def _end_listener(self) -> None:
        """Let sessions end, which they do with the replica, before the folder is removed."""
        if self._listener is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._listener[0].wait(_LISTENER_S)
            self._listener[0].kill()


def _runner_command() -> list[str]:
    return [sys.executable, *_ISOLATED, sys.argv[0]]


def _start(words: list[str], variables: Mapping[str, str], output: int = subprocess.DEVNULL) -> Any:
    """Start a program beside the replica, without this process's own streams."""
    null = subprocess.DEVNULL
    return subprocess.Popen(words, env=variables, stdin=null, stdout=output, stderr=output)


def _leave_streams() -> None:
    """Leave the engine's process, in a wrapper."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (_IN, _OUT):
        os.dup2(null, fd)
    os.close(null)


_HOW: Final = {Cause.COMMAND: "itself", Cause.TOLD: "told", Cause.NOT_STARTED: "told", Cause.LOST: "lost"}


def _describe(exit_: Exit, memory_mib: int) -> str:
    """Return the text of a status file for an end (`jobs.backends.remote.status_files`)."""
    detail = f"{exit_.container} {exit_.detail}" if exit_.container else exit_.detail
    if exit_.cause is Cause.MEMORY:
        detail = str(memory_mib)
    code = exit_.code
    if code is None:
        code = int(judge(exit_, memory_mib)[0] is ReplicaState.FAILED)
    return f"{code} {exit_.ended_at:.3f} {_HOW.get(exit_.cause, exit_.cause)} {detail}"
