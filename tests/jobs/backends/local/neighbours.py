"""Runs jobs in networks of their own as root or as an ordinary user, and prints what they reached.

Started as root by the tests, which also make the site that is not on this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Handle, ReplicaRef
from jobs.node import files, processes
from jobs.node.network.uplink import host_addresses, link_name
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor import layout
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.local.nobody import NOBODY, ROOM, find_python
from tests.tunnel import permit
from tests.waiting import wait_for

PORT: Final = 9000
ABSTRACT: Final = f"\0job-console-test-{os.getpid()}"

SERVE: Final = f"""
import socket, time
server = socket.create_server(("", {PORT}))
print("serves", flush=True)
time.sleep(60)
"""

CONNECT: Final = """
import json, socket, sys
reached = []
for name, host, port in json.loads(sys.argv[1]):
    try:
        if host.startswith("@"):
            socket.socket(socket.AF_UNIX).connect("\\0" + host[1:])
        else:
            socket.create_connection((host, port), timeout=1).close()
    except OSError as error:
        continue
    reached.append(name)
print("reached", json.dumps(reached), socket.gethostname(), flush=True)
"""


def main(folder: Path, told: dict[str, Any]) -> None:
    """See what jobs reach beside one that listens, or how one goes on when parts of it are killed."""
    mode = Isolation(told["mode"])
    if mode is Isolation.NAMESPACES:
        become_nobody(folder)
    bench = open_bench(folder, mode, told["range"])
    try:
        if "victims" in told:
            answer = _kill(bench, told["victims"])
        else:
            with _listeners() as port:
                answer = _reach(bench, told["site"], port)
    finally:
        bench.close()
    sys.stdout.write(json.dumps(answer))


def become_nobody(folder: Path) -> None:
    """Go on as an ordinary user, who may use what udev would let him use."""
    permit()
    os.chown(folder, NOBODY, NOBODY)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.environ["HOME"] = str(folder)


def open_bench(folder: Path, mode: Isolation, range_: str) -> LocalBench:
    """Return a bench whose jobs have networks of their own."""
    settings = {"python": find_python(), "gpus": {}, "engine": "none", "uplink_range": range_}
    return LocalBench(folder, {**settings, "isolation": mode, "network": "own"})


@contextlib.contextmanager
def _listeners() -> Iterator[int]:
    """Listen at every address of this machine, and at an abstract Unix socket."""
    with socket.create_server(("", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(ABSTRACT)
        abstract.listen()
        yield server.getsockname()[1]


def _reach(bench: LocalBench, site: str, port: int) -> dict[str, Any]:
    listening = _start(bench, SERVE, "serves", replicas=2)
    targets = [
        ("neighbour", "10.66.0.3", PORT),
        ("abstract", "@" + ABSTRACT[1:], 0),
        ("metadata", "169.254.169.254", 80),
        ("gateway", "169.254.77.1", port),
        ("pasta", "169.254.78.1", port),
        ("allowed", site, 443),
        ("other port", site, 80),
        *((f"host {address}", str(address), port) for address in host_addresses()),
        *((f"router {address}", address, PORT) for address in _uplinks(bench, listening)),
    ]
    asking = {
        name: _ask(bench, targets, egress)
        for name, egress in (("internet", ("internet",)), ("listed", (f"{site}/32:443",)), ("none", ()))
    }
    return {
        "same job": _reached(bench, _together(bench), 0),
        **{name: _reached(bench, handle, 0) for name, handle in asking.items()},
    }


def _start(bench: LocalBench, script: str, word: str, **more: Any) -> Handle:
    command = f"cat > x.py <<'END'\n{script}\nEND\nexec python3 -I x.py"
    handle = bench.backend.submit(bench.submission(role(command, resources=ROOM, **more)))
    wait_for(lambda: word in log_of(bench.backend, handle))
    return handle


def _uplinks(bench: LocalBench, handle: Handle) -> list[str]:
    """Return the address of a router on its link to this machine; none where pasta connects it."""
    plan = files.read(bench.attempt(handle) / "plan.json")
    assert plan is not None
    uplink = plan["network"]["uplink"]
    return [str(IPv4Address(uplink) + 1)] if uplink else []


def _ask(bench: LocalBench, targets: list[tuple[str, str, int]], egress: tuple[str, ...]) -> Handle:
    command = f"cat > x.py <<'END'\n{CONNECT}\nEND\nexec python3 -I x.py '{json.dumps(targets)}'"
    return bench.backend.submit(bench.submission(role(command, resources=ROOM), egress=egress))


def _together(bench: LocalBench) -> Handle:
    """Two replicas that listen on all of their addresses and connect to each other, by address and name."""
    targets = [(host, host, PORT) for host in ("10.66.0.2", "10.66.0.3", "worker-0", "worker-1", "127.0.0.1")]
    serve = f"import socket, time; s = socket.create_server(('', {PORT})); open('up', 'w'); time.sleep(60)"
    command = f"""
    cat > x.py <<'END'
{CONNECT}
END
    python3 -Ic "{serve}" & until [ -e up ]; do sleep 0.01; done
    other=worker-$((1 - PAI_TASK_INDEX))
    until (echo > /dev/tcp/$other/{PORT}) 2>/dev/null; do sleep 0.01; done
    python3 -I x.py '{json.dumps(targets)}'
    sleep 60
    """
    handle = bench.backend.submit(bench.submission(role(command, resources=ROOM, replicas=2)))
    wait_for(lambda: all("reached" in log_of(bench.backend, handle, index=index) for index in (0, 1)))
    return handle


def _reached(bench: LocalBench, handle: Handle, index: int) -> list[str]:
    def line() -> str:
        lines = bench.backend.read_log(handle, ReplicaRef("worker", index), "", 1 << 20).data.decode()
        return next((each for each in lines.splitlines() if each.startswith("reached")), "")

    text = wait_for(line)
    if "10.66.0.2" not in text:
        wait_until_over(bench.backend, handle)
    found: list[str] = json.loads(text[len("reached") : text.rindex("]") + 1])
    return sorted(found)


# --- kills -----------------------------------------------------------------------------------------------


def _kill(bench: LocalBench, victims: list[str]) -> dict[str, Any]:
    """Kill parts of a running job's network, see it go on or end, and look for what is left of it."""
    command = f"""
    python3 -Ic "import socket, time; s = socket.create_server(('', {PORT})); time.sleep(60)" &
    other=worker-$((1 - PAI_TASK_INDEX))
    while sleep 0.05; do (echo > /dev/tcp/$other/{PORT}) 2>/dev/null && echo met $other; done
    """
    handle = bench.backend.submit(bench.submission(role(command, resources=ROOM, replicas=2)))
    wait_for(lambda: _meetings(bench, handle, 0) and _meetings(bench, handle, 1))
    identities = _identities(bench.attempt(handle))
    namespaces = {Path(f"/proc/{identities[name]}/ns/net").stat().st_ino for name in ("router", "replica")}
    for victim in victims:
        os.kill(identities[victim], signal.SIGKILL)
    before = _meetings(bench, handle, 1)
    if "wrapper" not in victims:
        wait_for(lambda: _meetings(bench, handle, 1) > before + 1)
        wait_for(lambda: all(_is_back(bench, handle, victim) for victim in victims))
        bench.backend.stop(handle, grace_s=0, signal="KILL")
    state = wait_until_over(bench.backend, handle).state
    wait_for(lambda: not bench.processes())
    wait_for(lambda: not namespaces & _network_namespaces())
    wait_for(lambda: not {name for _index, name in socket.if_nameindex()} & {*_own_links(bench, handle)})
    return {"state": state}


def _meetings(bench: LocalBench, handle: Handle, index: int) -> int:
    return log_of(bench.backend, handle, index=index).count("met")


def _identities(attempt: Path) -> dict[str, int]:
    """Return the processes on which a job's network depends."""
    paths = {"router": layout.ROUTER, "wrapper": "replicas/worker-0/started"}
    found = {name: files.read(attempt / path) for name, path in paths.items()}
    pids = {name: value["pid"] for name, value in found.items() if value}
    if (agent := files.read(attempt.parents[1] / layout.AGENT)) is not None:
        pids["agent"] = agent["process"]["pid"]
    pids["replica"] = min(pid for pid, parent in processes.parents().items() if parent == pids["wrapper"])
    if (attempt / layout.PASTA).exists():
        pids["pasta"] = int((attempt / layout.PASTA).read_text() or 0)  # it writes its number a moment later
    return pids


def _is_back(bench: LocalBench, handle: Handle, victim: str) -> bool:
    """Tell whether somebody does again what a killed process did; nobody needs the router's."""
    bench.backend.observe([handle])
    return victim == "router" or Path(f"/proc/{_identities(bench.attempt(handle))[victim]}").exists()


def _network_namespaces() -> set[int]:
    found = set()
    for pid in processes.numbers():
        with contextlib.suppress(OSError):
            found.add(Path(f"/proc/{pid}/ns/net").stat().st_ino)
    return found


def _own_links(bench: LocalBench, handle: Handle) -> list[str]:
    plan = files.read(bench.attempt(handle) / layout.PLAN)
    assert plan is not None
    address = plan["network"]["uplink"]
    return [link_name(address)] if address else []


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
