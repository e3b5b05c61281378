"""The driver of a job on a Ray cluster: the entrypoint that Ray runs, with the cluster's own Python.

It proves by a line of its log which token its relay has (`RELAY_LINE`), claims the attempt at the console,
holds a placement group with a bundle for each replica, and starts a replica runner on the node of each
(`jobs.node.supervisor.replica_runner`).  It decides when the ends so far end the job, and passes on requests
to end.

    the console      plan, secrets, requests: files that the relay fetches; none of them goes through Ray
    Ray              this driver; an actor in each bundle, which holds the runner's stdin and stdout
    the node         the runner, the replica, and the relay back to the console

Whatever is killed, the rest ends: without the driver Ray ends the actors, without its actor a runner kills
its replica, and without an actor the driver writes its replica's end.  Nothing is started a second time.

The console never imports this module: it travels in a package with `jobs.node`.  Arguments: the console's
address for the attempt, and the folder of the attempt on each node.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from jobs.node import listening_sockets, marks, relay, runner
from jobs.node.processes import Identity
from jobs.node.supervisor import replica_runner
from jobs.node.supervisor.plan import Plan, PlannedReplica, Slot
from jobs.node.wrapper.outcome import NODE
from jobs.states import Replica, ReplicaState, State, verdict

RELAY_LINE: Final = "job-console-relay"
"""Begins the line of the log with the digest of the relay's token, behind which the console knows it."""

NUMBER, RUN = 1, 1
"""Ray's jobs have no number, and are never started again."""

CLAIM_S: Final = 600.0
"""The console may take so long to read that line."""

LONGEST_PAUSE_S: Final = 2.0
GROUP_S: Final = 1.0
LOOK_S: Final = 0.25
STRANGE_S: Final = 30.0
"""After the grace period of an end an actor may take so long before it is killed."""

LOSS_S: Final = 10.0
"""A runner without its actor, or Ray's word about the node, may take so long to tell how a replica ended."""

STARTS: Final = 3
"""A runner that was killed is replaced so often."""

VARIABLES: Final = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR")
_RUNNER: Final = str(Path(runner.__file__))
_ISOLATED: Final = ("-I", "-S")
_KILLED: Final = 137


def main(url: str, folder: str) -> int:
    """Run the job; return the exit code."""
    token, start = secrets.token_hex(32), secrets.token_hex(16)
    print(RELAY_LINE, hashlib.sha256(token.encode()).hexdigest(), flush=True)
    node = relay.NodeRelay(relay.ConsoleConnection(url, token), folder, NUMBER, RUN, start)
    _ray().init(address="auto", log_to_driver=False, logging_level="warning")
    given = json.loads(_fetch_plan(node.console))
    if (code := node.begin()) != 0:
        return code
    follower = _follow(url, folder, token, start)
    try:
        return Job(given, {"url": url, "folder": folder, "token": token, "start": start}).run()
    finally:
        follower.kill()
        follower.wait()
        node.leave("script")


def _fetch_plan(console: relay.ConsoleConnection) -> bytes:
    """Return the attempt's plan, once the console knows the token."""
    until, pause = time.monotonic() + CLAIM_S, LOOK_S
    while True:
        try:
            return b"".join(console.get("plan"))
        except relay.ConsoleAway:
            if time.monotonic() > until:
                raise
        time.sleep(pause)
        pause = min(LONGEST_PAUSE_S, pause * 1.2)


def _follow(url: str, folder: str, token: str, start: str) -> subprocess.Popen[bytes]:
    """Have a relay follow the files of this node."""
    words = [url, folder, str(NUMBER), str(RUN), start, replica_runner.FOLLOW]
    return subprocess.Popen(
        [sys.executable, *_ISOLATED, _RUNNER, "relay", *words],
        env={**_plain_variables(), relay.TOKEN_VARIABLE: token},
        stdin=subprocess.DEVNULL,
    )


class ReplicaActor:
    """An actor of Ray's in the bundle of one replica."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: list[bytes] = []

    def describe(self) -> dict[str, Any]:
        """Return what is known of the replica's node only there."""
        ray = _ray()
        context = ray.get_runtime_context()
        own = str(Path(sys.executable).parent)
        return {
            "node_id": context.get_node_id(),
            "gpus": [int(each) for each in ray.get_gpu_ids()],
            "engine": engine.dump() if (engine := Identity.of(os.getppid())) else None,
            "listening": [each.port for each in listening_sockets.list_listeners()],
            "path": f"{own}:{os.environ.get('PATH', os.defpath)}",
        }

    def run(self, order: Mapping[str, Any], slots: Sequence[Mapping[str, Any]]) -> str:
        """Run the replica; return the text of its end, "" where its runner could not tell it."""
        line = json.dumps({**order, "slots": slots}).encode() + b"\n"
        variables = {**_plain_variables(), marks.RUNNER: order["folder"]}
        for _ in range(STARTS):
            self._process = process = subprocess.Popen(
                [sys.executable, *_ISOLATED, _RUNNER, "replica"],
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            self._send(line, *self._messages)
            end = process.stdout.read().decode(errors="replace")
            process.wait()
            if end.endswith("\n"):
                return end.strip()
        return ""

    def tell(self, message: Mapping[str, Any]) -> None:
        """Give the runner a message, and each one that replaces it."""
        line = json.dumps(message).encode() + b"\n"
        self._messages.append(line)
        self._send(line)

    def _send(self, *lines: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(b"".join(lines))
                self._process.stdin.flush()


@dataclass(frozen=True, slots=True)
class _Place:
    """A replica's node: its number at Ray, its name, its address, and what its actor says of it."""

    node_id: str
    name: str
    address: str
    about: Mapping[str, Any]


class Job:
    """The job, once the attempt is claimed."""

    def __init__(self, given: Mapping[str, Any], order: Mapping[str, str]) -> None:
        self._given, self._order = given, order
        self._folder = Path(order["folder"])
        self._run = self._folder / f"run-{RUN}"
        for name in relay.RUN_FOLDERS:
            (self._run / name).mkdir(mode=0o700, exist_ok=True)
        self._plan = Plan.load(given["plan"], given["limits"])
        self._replicas = self._plan.replicas()
        self._running: dict[Any, int] = {}
        self._lost: dict[int, float] = {}
        self._actors: list[Any] = []
        self._places: list[_Place] = []
        self._ending, self._deadline = "", 0.0
        self._is_warned, self._result = False, 0

    def run(self) -> int:
        """Run the job to its end; return the exit code."""
        if self._hold_group() and self._start():
            self._see_through()
        else:
            self._write("ending", f"asked {time.time():.3f}")
        importlib.import_module("ray.util").remove_placement_group(self._group)
        self._write("end", f"{time.time():.3f}")
        return self._result

    # --- start ----------------------------------------------------------------------------------------------

    def _hold_group(self) -> bool:
        """Wait until all replicas have their bundles at once; return whether the job is still wanted."""
        util = importlib.import_module("ray.util")
        bundles = [self._given["bundles"][each.ordinal] for each in self._replicas]
        labels = [self._given["labels"][each.ordinal] for each in self._replicas]
        more = {"bundle_label_selector": labels} if any(labels) else {}
        self._group = util.placement_group(bundles, strategy="PACK", name=self._plan.key, **more)
        while not self._is_stopped():
            if self._group.wait(timeout_seconds=GROUP_S):
                return True
        return False

    def _start(self) -> bool:
        """Start an actor for each replica, choose their ports, and have them run; False if not wanted."""
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        remote = _ray().remote(ReplicaActor)
        for position, each in enumerate(self._replicas):
            bundle = dict(self._given["bundles"][each.ordinal])
            strategy = strategies.PlacementGroupSchedulingStrategy(self._group, position)
            self._actors.append(
                remote.options(
                    num_cpus=bundle.pop("CPU", 0),
                    num_gpus=bundle.pop("GPU", 0),
                    memory=bundle.pop("memory", 0),
                    resources=bundle,
                    scheduling_strategy=strategy,
                    max_concurrency=3,
                ).remote()
            )
        described = [actor.describe.remote() for actor in self._actors]
        while len(_ray().wait(described, num_returns=len(described), timeout=GROUP_S)[0]) < len(described):
            if self._is_stopped():
                return False
        self._places = list(self._find_places(_ray().get(described)))
        slots = list(self._choose_slots())
        pairs = zip(self._replicas, self._places, strict=True)
        self._write("hosts", "\n".join(f"{each.name} {place.name} {place.address}" for each, place in pairs))
        numbers = [port for slot in slots for ports in slot.ports.values() for port in ports]
        self._write("ports", " ".join(map(str, numbers)))
        shared = _ray().put([asdict(slot) for slot in slots])
        for position, (actor, place) in enumerate(zip(self._actors, self._places, strict=True)):
            order = {
                **self._order,
                "number": NUMBER,
                "run": RUN,
                "name": self._replicas[position].name,
                "position": position,
                "node": place.name,
                "address": place.address,
                "path": place.about["path"],
                "engine": place.about["engine"],
            }
            self._running[actor.run.remote(order, shared)] = position
        self._started_at = time.monotonic()
        return True

    def _find_places(self, described: Sequence[Mapping[str, Any]]) -> Iterator[_Place]:
        nodes = {each["NodeID"]: each for each in _ray().nodes()}
        for about in described:
            node = nodes[about["node_id"]]
            address = node["NodeManagerAddress"]
            yield _Place(about["node_id"], node.get("NodeName") or address, address, about)

    def _choose_slots(self) -> Iterator[Slot]:
        """Yield the share of each replica; a requested port is kept, also when it is taken."""
        first, last = self._given["span"]
        taken = {(place.node_id, port) for place in self._places for port in place.about["listening"]}
        occupied: list[int] = []
        which = 0
        for place, each in zip(self._places, self._replicas, strict=True):
            ports: dict[str, tuple[int, ...]] = {}
            for label, begin, count in self._given["ports"][each.ordinal][each.index]:
                found = []
                for more in range(count):
                    if begin:
                        number = begin + more
                        occupied += [which] if (place.node_id, number) in taken else []
                    else:
                        number = random.randint(first, last)  # noqa: S311 no secret
                        while (place.node_id, number) in taken:
                            number = random.randint(first, last)  # noqa: S311 no secret
                        taken.add((place.node_id, number))
                    found.append(number)
                    which += 1
                ports[label] = tuple(found)
            yield Slot(tuple(place.about["gpus"]), ports, (), place.address)
        if occupied:
            self._write("taken", "\n".join(map(str, occupied)))

    # --- until the end --------------------------------------------------------------------------------------

    def _see_through(self) -> None:
        while self._running or self._lost:
            self._collect()
            self._describe_losses()
            if not self._ending:
                self._decide()
            if not self._ending and self._is_stopped():
                signal, grace, *_ = (self._folder / "stop").read_text(encoding="utf-8").split()
                self._end("asked", signal, int(grace))
            if not self._ending:
                self._mind_time()
            if self._ending and time.monotonic() > self._deadline + STRANGE_S:
                for position in self._running.values():
                    _ray().kill(self._actors[position])
                self._deadline = float("inf")
        self._decide()

    def _collect(self) -> None:
        """Wait a moment for actors to end, and write the ends of replicas whose actor can't."""
        if not self._running:
            time.sleep(LOOK_S)
            return
        done, _ = _ray().wait(list(self._running), timeout=LOOK_S)
        for reference in done:
            position = self._running.pop(reference)
            name, end = self._replicas[position].name, ""
            try:
                end = _ray().get(reference)
            except Exception as error:  # noqa: BLE001 of many kinds: the actor, its worker or its node is gone
                print(f"{name}: {error}", file=sys.stderr, flush=True)
            if not end:
                self._lost[position] = time.monotonic() + LOSS_S
            elif not (self._run / "ends" / name).exists():
                self._write(f"ends/{name}", end)

    def _describe_losses(self) -> None:
        """Write the ends of replicas without an actor that their runners don't tell."""
        for position, until in list(self._lost.items()):
            name, place = self._replicas[position].name, self._places[position]
            is_told = (self._run / "ends" / name).exists()
            is_gone = place.node_id not in {each["NodeID"] for each in _ray().nodes() if each["Alive"]}
            if not is_told and not is_gone and time.monotonic() < until:
                continue
            del self._lost[position]
            if not is_told:
                how = f"{NODE} {place.name}" if is_gone else "told" if self._ending else "lost"
                self._write(f"ends/{name}", f"{_KILLED} {time.time():.3f} {how}")

    def _is_stopped(self) -> bool:
        return (self._folder / "stop").exists()

    def _decide(self) -> None:
        """End the job when the ends so far are what its roles wait for."""
        names = {each.name: each for each in self._replicas}
        ends: list[tuple[float, str, int, str]] = []
        for path in (self._run / "ends").iterdir():
            if path.name in names:
                code, at, how = path.read_text(encoding="utf-8").split()[:3]
                ends.append((float(at), path.name, int(code), how))
        counted: list[Replica] = []
        for _at, name, number, how in sorted(ends):
            counted.append(_count(names[name], number, how))
            judged = verdict(self._plan.roles, counted)
            if judged.state is not None:
                self._result = (number or 1) if judged.state is State.FAILED else 0
                if not self._ending and self._running:
                    self._end("decided", "TERM", self._plan.grace_s)
                return

    def _mind_time(self) -> None:
        """End the job when its time is up, with a signal before that if it asks for one."""
        limit, warned = self._plan.time_limit_s, self._plan.warned
        if limit is None:
            return
        left = self._started_at + limit - time.monotonic()
        if left <= 0:
            self._result = 1
            self._end("time", "TERM", self._plan.grace_s)
        elif warned is not None and not self._is_warned and left <= warned.seconds_before:
            self._is_warned = True
            self._tell({"warning": warned.signal})

    def _end(self, why: str, signal: str, grace_s: int) -> None:
        self._ending, self._deadline = why, time.monotonic() + grace_s
        self._write("ending", f"{why} {time.time():.3f}")
        self._tell({"signal": signal, "grace_s": grace_s})

    def _tell(self, message: Mapping[str, Any]) -> None:
        for position in self._running.values():
            self._actors[position].tell.remote(message)

    # --- files ----------------------------------------------------------------------------------------------

    def _write(self, name: str, text: str) -> None:
        """Write a status file atomically."""
        path = self._run / name
        new = path.with_name(f"{path.name}.new")
        new.write_text(f"{text}\n", encoding="utf-8")
        new.replace(path)


def _count(replica: PlannedReplica, code: int, how: str) -> Replica:
    """Return a replica's end as the verdict counts it."""
    state = ReplicaState.FAILED if code else ReplicaState.SUCCEEDED
    return Replica(replica.role.name, replica.index, ReplicaState.STOPPED if how == "told" else state)


def _plain_variables() -> dict[str, str]:
    """Return the variables for programs beside replicas: the cluster's token is not among them."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def _ray() -> Any:
    """Return the library, which is only where the cluster is."""
    return importlib.import_module("ray")
