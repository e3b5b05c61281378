"""The ways into a job: its pages by the gateway beside the same server directly, SSH beside a plain sshd.

Both sides are asked in turn, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import asyncssh
import httpx
import psutil
import pytest
import websockets

from tests.bench import served
from tests.bench.figures import Figure, percentile
from tests.bench.wire import Wire
from tests.ports import free_port
from tests.scenes import MACHINE, job_file, submit
from tests.stack import Stack, running
from tests.waiting import wait_for

LARGE: Final = 128 << 20
ROUNDS: Final = 5
TIMES: Final = 500
KEYS: Final = 300
MANY: Final = 200
BEGUN_AT_ONCE: Final = 8
LARGE_SSH: Final = 64 << 20
DIRECT: Final = "directly"
RELAY: Final = "by a relay that does nothing else"
SSHD: Final = "sshd"
TYPED: Final = "stty raw -echo; printf ready; exec cat"
STAYS: Final = "echo in; exec sleep 900"


@dataclass(frozen=True, slots=True)
class Ways:
    """A console, a job that serves something and may be entered, and how one gets to both."""

    stack: Stack
    client: httpx.Client
    job: str
    slug: str
    port: int
    key: Path

    @property
    def host(self) -> str:
        """The endpoint's."""
        return f"{self.slug}.apps.localhost:{self.stack.port}"


def measure() -> list[Figure]:
    """Everything, one after the other."""
    with ways() as there:
        figures = [*_http(there), *_websocket(there)]
        if shutil.which("ssh") is None or not Path("/usr/sbin/sshd").exists():
            pytest.skip("there is no OpenSSH client and server")
        with plain_sshd(there.key) as plain:
            figures += [*_keystrokes(there, plain), *_ssh_bytes(there, plain), *_sessions(there, plain)]
        return [*figures, *_terminals(there)]


@contextmanager
def ways() -> Iterator[Ways]:
    """Of a job in the console's own environment, where its Python lies."""
    local = json.loads(MACHINE["CONSOLE_LOCAL"])
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    settings = {
        **MACHINE,
        "CONSOLE_LOCAL": json.dumps({**local, "isolation": "none", "path": path}),
        "CONSOLE_ENTRIES_PER_PERSON": str(2 * MANY),
        "CONSOLE_ENTRIES": str(2 * MANY),
        "CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON": str(2 * MANY),
    }
    command = f"exec python {served.__file__} $PAI_CONTAINER_HOST_web_PORT_LIST"
    ports = [{"label": "web", "beginAt": 0, "portNumber": 1}]
    with running(settings) as stack, tempfile.TemporaryDirectory() as folder:
        client = stack.client()
        job = submit(client, job_file("served", command=command, portList=ports, memoryMB=8192))
        slug, port = wait_for(partial(_endpoint, stack), 60, 1)
        key = Path(folder, "key")
        subprocess.run(["ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", key], check=True)
        public = key.with_suffix(".pub").read_text()
        stack.python(
            "from jobs.access import sshkeys; from quotas.models import User; "
            f"sshkeys.add(User.objects.get(username='admin'), {public!r})"
        )
        yield Ways(stack, client, job, slug, port, key)


def _endpoint(stack: Stack) -> tuple[str, int] | None:
    told = stack.python(
        "from jobs.models import Endpoint; "
        "print(*Endpoint.objects.filter(ready=True).values_list('slug', 'port'))"
    )
    found = re.search(r"\('(\w+)', (\d+)\)", told)
    return (found[1], int(found[2])) if found else None


def entered(there: Ways) -> str:
    """The Cookie header of a browser that has opened the endpoint's link."""
    home = f"localhost:{there.stack.port}"
    jar: dict[str, dict[str, str]] = {home: {"session": there.client.cookies["session"]}}
    host, target = home, f"/endpoints/{there.slug}/open?next=/page"
    with httpx.Client(base_url=there.stack.base_url, trust_env=False) as browser:
        while True:
            cookies = "; ".join(f"{name}={value}" for name, value in jar.get(host, {}).items())
            answer = browser.get(target, headers={"Host": host, "Cookie": cookies, "Accept": "text/html"})
            for line in answer.headers.get_list("set-cookie"):
                name, _equals, value = line.partition(";")[0].partition("=")
                jar.setdefault(host, {})[name] = value
            if not answer.is_redirect:
                assert answer.status_code == 200, answer.text
                break
            leads = httpx.URL(f"http://{host}").join(answer.headers["location"])
            host, target = leads.netloc.decode(), leads.raw_path.decode()
    return "; ".join(f"{name}={value}" for name, value in jar[there.host].items())


# --- pages and sockets -----------------------------------------------------------------------------------


def _http(there: Ways) -> list[Figure]:
    cookie = entered(there)
    with (
        relay(there.port) as between,
        Wire(there.port, f"localhost:{there.port}") as direct,
        Wire(between, f"localhost:{there.port}") as relayed,
        Wire(there.stack.port, there.host, cookie) as through,
    ):
        sides = (direct, relayed, through)
        down = _in_turn([partial(each.get, f"/large/{LARGE}") for each in sides], ROUNDS)
        body = b"x" * LARGE
        up = _in_turn([partial(each.post, "/taken", body) for each in sides], ROUNDS)
        short = _in_turn([partial(each.get, "/page") for each in (direct, through)], TIMES)
    return [
        _rate("a large file from a job", [down[0], down[2]], "≥ 0.7×"),
        _rate("the same", [down[1], down[2]], beside=RELAY),
        _rate("a large file to a job", [up[0], up[2]], "≥ 0.7×"),
        _rate("the same", [up[1], up[2]], beside=RELAY),
        *_delays("a page of 2 KiB", short, DIRECT, "≤ 5 ms"),
    ]


@contextmanager
def relay(there: int) -> Iterator[int]:
    """The port of one that leads `there`."""
    port = free_port()
    with subprocess.Popen([sys.executable, "-m", "tests.bench.relay", str(port), str(there)]) as process:
        try:
            wait_for(lambda: _opens(port), 30)
            yield port
        finally:
            process.terminate()


def _opens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _websocket(there: Ways) -> list[Figure]:
    cookie = entered(there)
    with (
        Wire(there.port, f"localhost:{there.port}") as direct,
        Wire(there.stack.port, there.host, cookie) as through,
    ):
        for each in (direct, through):
            each.open_socket("/echo")
        times = _in_turn([partial(each.echo, b"x" * 64) for each in (direct, through)], TIMES)
    return _delays("a WebSocket's echo", times, DIRECT, "≤ 5 ms")


def _in_turn(sides: Sequence[Callable[[], float]], times: int) -> list[list[float]]:
    """What each side took, one after the other, again and again; the first time does not count."""
    taken = [[side() for side in sides] for _time in range(times + 1)][1:]
    return [list(each) for each in zip(*taken, strict=True)]


def _rate(
    what: str, times: list[list[float]], target: str = "", size: int = LARGE, beside: str = DIRECT
) -> Figure:
    direct, through = (size / 2**20 / median(each) for each in times)
    return Figure(what, through, "MiB/s", direct, beside, target)


def _delays(what: str, times: list[list[float]], beside: str, target: str = "") -> list[Figure]:
    """Beside the other side, and what is added to it at its p95."""
    plain, ours = ([1000 * one for one in each] for each in times)
    return [
        Figure(f"{what}, p50", percentile(ours, 50), "ms", percentile(plain, 50), beside),
        Figure(f"{what}, p95", percentile(ours, 95), "ms", percentile(plain, 95), beside),
        Figure(f"{what}, added at p95", percentile(ours, 95) - percentile(plain, 95), "ms", target=target),
    ]


# --- SSH -------------------------------------------------------------------------------------------------


@contextmanager
def plain_sshd(key: Path) -> Iterator[int]:
    """OpenSSH's own server on this machine, for whoever runs this; its port."""
    port = free_port()
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # which a package would make at boot
    with tempfile.TemporaryDirectory() as folder:
        host_key = f"{folder}/host"
        subprocess.run(["ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", host_key], check=True)
        options = {
            "ListenAddress": "127.0.0.1",
            "UsePAM": "no",
            "PidFile": "none",
            "StrictModes": "no",
            "MaxStartups": "500",
            "SetEnv": "SHLVL=2",  # a shell that is not the first leaves people's own settings unread
            "AuthorizedKeysFile": str(key.with_suffix(".pub")),
        }
        told = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        command = ["/usr/sbin/sshd", "-D", "-f", "/dev/null", "-p", str(port), "-h", host_key, *told]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(lambda: _greets(port), 20)
                yield port
            finally:
                process.terminate()


def _greets(port: int) -> bool:
    try:
        with asyncio.Runner() as runner:
            reader, writer = runner.run(asyncio.open_connection("127.0.0.1", port))
            said = runner.run(reader.readline())
            writer.close()
    except OSError:
        return False
    return said.startswith(b"SSH-2.0-")


def ssh(there: Ways, port: int, user: str, *words: str) -> list[str]:
    """An OpenSSH client's command."""
    quiet = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
    key = ["-F", "none", "-i", str(there.key), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"]
    return ["ssh", *key, *quiet, "-p", str(port), f"{user}@127.0.0.1", *words]


def me() -> str:
    """Whoever runs this."""
    return pwd.getpwuid(os.geteuid()).pw_name


class Typing:
    """A terminal that shows each key again."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._keys, self._screen = self._process.stdin, self._process.stdout
        said = b""
        while b"ready" not in said:
            piece = self._screen.read(100)
            assert piece, said
            said += piece

    def key(self) -> float:
        """Seconds until it is shown."""
        began = time.perf_counter()
        self._keys.write(b"x")
        assert self._screen.read(1) == b"x"
        return time.perf_counter() - began

    def close(self) -> None:
        """Hang up."""
        self._process.kill()
        self._process.communicate()


def _keystrokes(there: Ways, plain: int) -> list[Figure]:
    with ExitStack() as stack:
        sides = []
        for port, user in ((plain, me()), (there.stack.ssh_port, there.job)):
            typing = Typing(ssh(there, port, user, "-tt", TYPED))
            stack.callback(typing.close)
            sides.append(typing.key)
        return _delays("a key typed over SSH and shown", _in_turn(sides, KEYS), SSHD)


def _ssh_bytes(there: Ways, plain: int) -> list[Figure]:
    def took(port: int, user: str) -> float:
        began = time.perf_counter()
        command = ssh(there, port, user, f"head -c {LARGE_SSH} /dev/zero")
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    sides = [partial(took, plain, me()), partial(took, there.stack.ssh_port, there.job)]
    return [_rate("bytes over SSH, the connection's start included", _in_turn(sides, 3), "", LARGE_SSH, SSHD)]


# --- memory ----------------------------------------------------------------------------------------------


def _sessions(there: Ways, plain: int) -> list[Figure]:
    """`MANY` shells by SSH at a time."""
    sshd = next(each for each in psutil.process_iter() if _listens(each, plain))
    asleep = asyncio.run(_held(partial(_one_session, there, plain, me()), lambda: _family(sshd)))
    shells = psutil.Process(there.stack.pid("shells"))
    own = asyncio.run(
        _held(partial(_one_session, there, there.stack.ssh_port, there.job), lambda: _of(shells))
    )
    return [
        Figure(f"{MANY} SSH sessions: the gateway's process, each", own[0], "KiB"),
        Figure(f"{MANY} SSH sessions: with their helpers, each", sum(own), "KiB", sum(asleep), SSHD),
    ]


def _terminals(there: Ways) -> list[Figure]:
    """`MANY` terminals in as many tabs."""
    shells = psutil.Process(there.stack.pid("shells"))
    web = psutil.Process(there.stack.pid("web"))
    before = _pss([web])
    during: list[float] = []

    def look() -> tuple[float, float]:
        during.append(_pss([web]))
        return _of(shells)

    own = asyncio.run(_held(partial(_one_terminal, there), look))
    return [
        Figure(f"{MANY} terminals: the web process, each", (during[-1] - before) / MANY, "KiB"),
        Figure(f"{MANY} terminals: the shells' process, each", own[0], "KiB"),
        Figure(f"{MANY} terminals: with their helpers, each", sum(own), "KiB"),
    ]


async def _held(
    one: Callable[[AsyncExitStack], Coroutine[Any, Any, None]], look: Callable[[], tuple[float, float]]
) -> tuple[float, float]:
    """KiB that each of `MANY` costs, by what `look` finds without them and with them."""
    gate = asyncio.Semaphore(BEGUN_AT_ONCE)
    async with AsyncExitStack() as stack:

        async def begin() -> None:
            async with gate:
                await one(stack)

        await begin()
        before = look()
        await asyncio.gather(*(begin() for _ in range(MANY)))
        after = look()
    return (after[0] - before[0]) / MANY, (after[1] - before[1]) / MANY


async def _one_session(there: Ways, port: int, user: str, stack: AsyncExitStack) -> None:
    connection = await stack.enter_async_context(
        asyncssh.connect(
            "127.0.0.1",
            port,
            username=user,
            client_keys=[str(there.key)],
            known_hosts=None,
            config=None,
            agent_path=None,
        )
    )
    process = await connection.create_process(STAYS, term_type="xterm")
    said = await process.stdout.readline()
    assert said == "in\r\n", said


async def _one_terminal(there: Ways, stack: AsyncExitStack) -> None:
    path = f"/jobs/{there.job}/terminals"
    answer = await asyncio.to_thread(there.client.post, path)
    key = answer.json()["key"]
    address = f"ws://127.0.0.1:{there.stack.port}/terminals/{key}/socket?columns=80&rows=24"
    cookie = {"Cookie": f"session={there.client.cookies['session']}"}
    screen = await stack.enter_async_context(
        websockets.connect(
            address, origin=websockets.Origin(there.stack.base_url), additional_headers=cookie, proxy=None
        )
    )
    while not isinstance(await screen.recv(), bytes):
        continue


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        return f"-p {port}" in " ".join(process.cmdline()) and "sshd" in process.name()
    except psutil.Error:
        return False


def _of(process: psutil.Process) -> tuple[float, float]:
    """KiB of the process, and of its helpers without what people run in them."""
    helpers = [each for each in process.children(recursive=True) if each.name().startswith("jc-")]
    return _pss([process]), _pss(helpers)


def _family(process: psutil.Process) -> tuple[float, float]:
    helpers = [each for each in process.children(recursive=True) if each.name() == "sshd"]
    return _pss([process]), _pss(helpers)


def _pss(processes: list[psutil.Process]) -> float:
    found = 0
    for process in processes:
        try:
            found += process.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return found / 1024
