"""Attacks over the network: what a hostile job, and whoever is beside it, reaches of what is not its own.

Run as a program, since one of the isolation modes is that of an ordinary user: started as root it becomes
nobody for that.  It prints what was reached; everything is over when it ends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 nobody may not read what is imported later
import encodings.idna  # noqa: F401 likewise
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import IPv6Address
from pathlib import Path
from threading import Thread
from typing import Any, Final

from jobs.backends.base import Handle, NotSubmitted, Person, ReplicaRef
from jobs.backends.sessions import NoEntry
from jobs.node.network.netlink import Netlink
from jobs.node.sandbox.isolation import Isolation
from jobs.spec import Port, Resources
from tests.jobs.backends.benches import LocalBench, log_of, role
from tests.jobs.backends.local.nobody import NOBODY, find_python
from tests.socket_agent import socket_agent
from tests.tunnel import permit
from tests.waiting import wait_for

ALICE, BOB, CAROL = Person("alice", 7), Person("bob", 8), Person("carol", 9)
ROOM: Final = Resources(cpu_milli=1000, memory_mib=512)
FIXED: Final = 23456
GRAB: Final = 23457
RANGE: Final = (23000, 23999)
UPLINKS: Final = "10.68.{0}"
"""Addresses of links that no other test uses at the same time."""

SERVER: Final = """
import os, socket, time
server = socket.create_server(("127.0.0.1", {port}))
print("serves", flush=True)
while not os.path.exists("{judge}/close"):
    server.settimeout(0.05)
    try:
        connection, _ = server.accept()
    except TimeoutError:
        continue
    connection.sendall(b"alice")
    connection.close()
server.close()
print("closed", flush=True)
time.sleep(60)
"""

ATTACK: Final = """
import os, socket, sys, threading, time
def reach(address):
    try:
        socket.create_connection((address, {console}), timeout=1).close()
        print("reached", address)
    except OSError:
        pass
tries = [threading.Thread(target=reach, args=(address,)) for address in {addresses}]
for each in tries:
    each.start()
for each in tries:
    each.join()
print("tried", flush=True)
held = []
for port in dict.fromkeys([{grab}, {fixed}, *range({first}, {last} + 1)]):
    try:
        held.append(socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True))
    except OSError:
        if port in ({grab}, {fixed}):
            print("refused", port)
print("holds", flush=True)
while True:
    time.sleep(0.01)
    for server in held[:2]:
        server.setblocking(False)
        try:
            connection, _ = server.accept()
        except OSError:
            continue
        connection.setblocking(True)
        connection.sendall(b"bob")
        connection.close()
"""


def main(folder: Path, mode: Isolation, network: str) -> None:
    """Attack in the isolation mode and network, and print what was reached."""
    if mode is Isolation.NAMESPACES and os.geteuid() == 0:
        permit()
        os.chown(folder, NOBODY, NOBODY)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    os.environ["HOME"] = str(folder)
    settings = {
        "python": find_python(),
        "gpus": {},
        "engine": "none",
        "ports": RANGE,
        "uplink_range": UPLINKS.format("0.0/16"),
    }
    bench = LocalBench(folder, {**settings, "isolation": mode, "network": network})
    with socket_agent(bench.config.root):
        try:
            answer = _attack(bench)
        finally:
            bench.close()
    sys.stdout.write(json.dumps(answer))


def _attack(bench: LocalBench) -> dict[str, Any]:
    alice = _start(bench, ALICE, SERVER.format(port=FIXED, judge=bench.judge), "serves")
    before = asyncio.run(_ask(bench, alice))
    outside = _host_addresses()
    with _console() as port:
        addresses = [*outside, "169.254.77.1", "169.254.169.254", *_near()]
        wanted = {"addresses": addresses, "console": port, "grab": GRAB, "fixed": FIXED}
        script = ATTACK.format(**wanted, first=RANGE[0], last=RANGE[1])
        bob = _start(bench, BOB, script, "holds")
    (bench.judge / "close").touch()
    wait_for(lambda: "closed" in log_of(bench.backend, alice))
    return {
        "bob": [line for line in log_of(bench.backend, bob).splitlines() if line not in ("tried", "holds")],
        "browser": [address for address in outside if _opens(address, GRAB)],
        "before": before,
        "after": asyncio.run(_ask(bench, alice)),
        "carol": _run_beside(bench),
    }


def _start(bench: LocalBench, person: Person, script: str, word: str) -> Handle:
    """Run a Python script as a person's job, until it says a word."""
    command = f"cat > x.py <<'END'\n{script}\nEND\nexec python3 -I x.py"
    handle = bench.backend.submit(bench.submission(role(command, resources=ROOM), person=person))
    wait_for(lambda: word in log_of(bench.backend, handle), 30)
    return handle


async def _ask(bench: LocalBench, handle: Handle) -> str:
    """Return what answers at alice's port, as her browser gets it through the console."""
    try:
        made = await bench.backend.connect(handle, ReplicaRef("worker", 0), "127.0.0.1", FIXED)
    except NoEntry as refused:
        return f"no entry: {refused.barrier}"
    except OSError as error:
        return f"no connection: {error}"
    with closing(made):
        return (await asyncio.get_running_loop().sock_recv(made, 100)).decode()


def _run_beside(bench: LocalBench) -> str:
    """Return how a job goes that wants the port that others hold, and one of the range."""
    ports = (Port(label="web", begin_at=FIXED), Port(label="more"))
    asked = role("echo $PAI_CONTAINER_HOST_web_PORT_LIST", resources=ROOM, ports=ports)
    try:
        handle = bench.backend.submit(bench.submission(asked, person=CAROL))
    except NotSubmitted as reason:
        return reason.reason.code
    wait_for(lambda: "\n" in log_of(bench.backend, handle), 30)
    return log_of(bench.backend, handle).strip()


def _host_addresses() -> list[str]:
    """Return this machine's addresses, but for those of IPv6 that are valid on one link alone."""
    with Netlink() as netlink:
        found = [str(address) for address in netlink.list_addresses()]
    lines = Path("/proc/net/if_inet6").read_bytes().splitlines()
    six = (IPv6Address(int(line.split()[0], 16)) for line in lines)
    return [*found, *(str(address) for address in six if not address.is_link_local)]


def _near() -> list[str]:
    """Return addresses at which the way out of alice's and bob's jobs may end."""
    return [UPLINKS.format(f"0.{last}") for last in range(1, 10)]


@contextmanager
def _console() -> Iterator[int]:
    """Something that listens on every address of this machine, as a console may."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        Thread(target=_accept, args=(server,), daemon=True).start()
        yield server.getsockname()[1]


def _accept(server: socket.socket) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return


def _opens(address: str, port: int) -> bool:
    """Tell whether a browser on this machine gets to a port that a job listens on."""
    try:
        with socket.create_connection((address, port), timeout=1) as made:
            return bool(made.recv(10))
    except OSError:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]), Isolation(sys.argv[2]), sys.argv[3])
