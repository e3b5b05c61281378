"""Sessions in a container of a real pod."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as websocket_server
from websockets.typing import Subprotocol

from jobs.access.folders.client import FolderClient
from jobs.backends.base import Unreachable
from jobs.backends.kubernetes import sessions
from jobs.backends.kubernetes.client.connection import ApiConnection
from jobs.backends.kubernetes.client.exec import ExecEnd, open_exec, run
from jobs.backends.kubernetes.sessions import ContainerRef, ContainerSession
from jobs.backends.sessions import Barrier, Ended, NoEntry, SessionKind, SessionRequest, Size, Terminal
from tests.jobs.backends.beside import carry_in, carry_out, everything, until
from tests.jobs.backends.kubernetes.pods import start_pod
from tests.kubernetes import images
from tests.kubernetes.cluster import Cluster

SERVER = (
    "import http.server, sys; "
    "http.server.HTTPServer(('127.0.0.1', 8000), http.server.SimpleHTTPRequestHandler).serve_forever()"
)


@pytest.fixture(scope="module")
def here(kubernetes: Cluster, namespace: str) -> ContainerRef:
    """A container that runs for long."""
    env = [{"name": "RANK", "value": "0"}]
    command = f'cd /srv && echo hello >file && python3 -c "{SERVER}" & exec sleep 3600'
    name = start_pod(kubernetes, namespace, command, env=env, workingDir="/srv")
    return ContainerRef(namespace, name, "main")


@asynccontextmanager
async def beside(
    kubernetes: Cluster, ref: ContainerRef, kind: SessionKind, **more: Any
) -> AsyncIterator[ContainerSession]:
    """A session, closed in the end."""
    session = await sessions.begin(kubernetes.connection, ref, SessionRequest(kind, **more))
    try:
        yield session
    finally:
        await session.close()


async def count_sleepers(kubernetes: Cluster, ref: ContainerRef) -> int:
    """Return how many processes run `sleep` for ten minutes and something, those of this module's tests."""
    argv = ["/bin/sh", "-c", "grep -lszx '60[0-9]' /proc/[0-9]*/cmdline | wc -l"]
    _end, output = await run(kubernetes.connection, ref.namespace, ref.pod, ref.container, argv)
    return int(output)


async def wait_for_sleepers(kubernetes: Cluster, ref: ContainerRef, expected: int) -> None:
    """Wait until so many run."""
    async with asyncio.timeout(60):
        while await count_sleepers(kubernetes, ref) != expected:
            pass


async def test_program_has_separate_stderr_and_end_of_input(kubernetes: Cluster, here: ContainerRef) -> None:
    argv = ("sh", "-c", "cat; echo bad >&2; exit 7")
    async with beside(kubernetes, here, SessionKind.PROGRAM, argv=argv) as session:
        await session.write("中文\n\0".encode())
        await session.write(b"")
        await session.write_eof()
        assert await everything(session) == "中文\n\0"
        assert await session.read_error(100) == b"bad\n"
        assert await session.wait() == Ended(exit_code=7)
        with pytest.raises(BrokenPipeError):
            await session.write(b"more")


async def test_program_gets_its_arguments_environment_and_folder(
    kubernetes: Cluster, here: ContainerRef
) -> None:
    argument = "$(touch pwned); `id` \"'\n"
    async with beside(kubernetes, here, SessionKind.PROGRAM, argv=("printf", "%s", argument)) as session:
        assert await everything(session) == argument
    env = {"RANK": "9", "LANG": "C.UTF-8 $(id)", "A;touch x": "y"}
    line = 'echo "$RANK|$LANG|$PWD"; ls'
    async with beside(kubernetes, here, SessionKind.LINE, line=line, env=env) as session:
        assert await everything(session) == "0|C.UTF-8 $(id)|/srv\nfile\n"


async def test_much_input_and_output_pass_unchanged(kubernetes: Cluster, here: ContainerRef) -> None:
    data = os.urandom(3 << 20)
    async with beside(kubernetes, here, SessionKind.LINE, line="cat") as session:

        async def send() -> None:
            await session.write(data)
            await session.write_eof()

        sending = asyncio.ensure_future(send())
        found = b""
        while more := await session.read(1 << 20):
            found += more
        await sending
        assert found == data


async def test_terminal_can_be_resized(kubernetes: Cluster, here: ContainerRef) -> None:
    terminal = Terminal("xterm", Size(columns=91, rows=33))
    async with beside(kubernetes, here, SessionKind.SHELL, terminal=terminal) as session:
        await session.write(b"PS1=; tty; stty size; echo $TERM, done\n")
        said = await until(session, "xterm, done")
        assert "33 91" in said
        assert "/dev/pts/" in said
        session.resize(Size(columns=120, rows=40))
        await session.write(b"until stty size | grep 120; do :; done\n")
        await until(session, "40 120")
        await session.write(b"exit 3\n")
        assert await session.wait() == Ended(exit_code=3)
        assert await session.read_error(10) == b""


async def test_signal_reaches_the_foreground(kubernetes: Cluster, here: ContainerRef) -> None:
    async with beside(kubernetes, here, SessionKind.SHELL, terminal=Terminal()) as session:
        await session.write(
            b"""sh -c 'trap "echo caught" INT; echo "re"ady; while :; do sleep 0.1; done'\n"""
        )
        await until(session, "ready")
        session.signal("INT")
        session.signal("no such signal")
        await until(session, "caught")
    async with beside(kubernetes, here, SessionKind.LINE, line="echo up; exec sleep 600") as session:
        await until(session, "up")
        session.signal("TERM")
        assert await session.wait() == Ended(signal="TERM")


async def test_close_ends_all_processes_of_the_session(kubernetes: Cluster, here: ContainerRef) -> None:
    async with beside(kubernetes, here, SessionKind.SHELL, terminal=Terminal()) as session:
        await session.write(b"setsid sleep 601 & (trap '' HUP; sleep 602) & echo star''ted; sleep 603\n")
        await until(session, "started")
        await wait_for_sleepers(kubernetes, here, 3)
    assert await count_sleepers(kubernetes, here) == 0


async def test_processes_end_when_the_console_is_gone(kubernetes: Cluster, here: ContainerRef) -> None:
    session = await sessions.begin(
        kubernetes.connection,
        here,
        SessionRequest(SessionKind.LINE, line="sleep 601 & echo up; exec sleep 602"),
    )
    await until(session, "up")
    for each in (session._guard, session._program):
        each._socket.transport.abort()
    await wait_for_sleepers(kubernetes, here, 0)
    await session.close()


async def test_background_process_is_waited_for(kubernetes: Cluster, here: ContainerRef) -> None:
    line = "(sleep 1; echo late >/tmp/late) >/dev/null 2>&1 </dev/null & echo gone"
    async with beside(kubernetes, here, SessionKind.LINE, line=line) as session:
        assert await everything(session) == "gone\n"
        assert await session.wait() == Ended(exit_code=0)
        await session.wait_for_processes()
        argv = ["cat", "/tmp/late"]
        end, output = await run(kubernetes.connection, here.namespace, here.pod, here.container, argv)
        assert (end.exit_code, output) == (0, b"late\n")


async def test_files_are_served_by_python_in_the_image(kubernetes: Cluster, here: ContainerRef) -> None:
    async with beside(kubernetes, here, SessionKind.FILES) as session:
        await session.write(struct.pack(">IBI", 5, 1, 3))
        length, kind, version = struct.unpack(">IBI", (await session.read(65536))[:9])
        assert (kind, version) == (2, 3)
        assert length > 5
        await session.write_eof()
        assert await session.wait() == Ended(exit_code=0)


async def test_folders_are_listed_and_changed(kubernetes: Cluster, here: ContainerRef) -> None:
    async with beside(kubernetes, here, SessionKind.FOLDERS) as session:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=theirs)
        carrying = asyncio.gather(carry_in(reader, session), carry_out(session, writer))
        with ours:
            client = await asyncio.to_thread(FolderClient, ours)
            page = await asyncio.to_thread(partial(client.look, ["work"], "name", 0, 200, down=False))
            assert isinstance(page, Mapping)
            assert [row["name"] for row in page["rows"]] == ["file"]
        async with asyncio.timeout(60):
            await carrying
        assert await session.wait() == Ended(exit_code=0)


async def test_session_ends_with_its_pod(kubernetes: Cluster, namespace: str) -> None:
    name = start_pod(kubernetes, namespace, "exec sleep 600")
    ref = ContainerRef(namespace, name, "main")
    async with beside(
        kubernetes, ref, SessionKind.LINE, line="trap '' HUP TERM; echo up; sleep 600"
    ) as session:
        await until(session, "up")
        kubernetes.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", grace_s=0)
        async with asyncio.timeout(60):
            await session.wait()
            await everything(session)


async def test_container_that_has_ended_is_not_entered(kubernetes: Cluster, namespace: str) -> None:
    name = start_pod(kubernetes, namespace, "true")
    for ref in (ContainerRef(namespace, name, "main"), ContainerRef(namespace, "absent", "main")):
        with pytest.raises(NoEntry) as refused:
            await sessions.begin(kubernetes.connection, ref, SessionRequest(SessionKind.SHELL))
        assert refused.value.barrier is Barrier.NOT_RUNNING


async def test_missing_program_is_told(kubernetes: Cluster, here: ContainerRef, namespace: str) -> None:
    with pytest.raises(NoEntry) as refused:
        await sessions.begin(
            kubernetes.connection, here, SessionRequest(SessionKind.PROGRAM, argv=("no-such-program",))
        )
    assert refused.value.barrier is Barrier.NO_PROGRAM
    assert "no-such-program" in refused.value.detail
    bare = ContainerRef(namespace, start_pod(kubernetes, namespace, "", image=images.PAUSE), "main")
    for kind in SessionKind:
        with pytest.raises(NoEntry) as refused:
            await sessions.begin(kubernetes.connection, bare, SessionRequest(kind, argv=("x",)))
        assert refused.value.barrier is Barrier.NO_PROGRAM, kind


async def test_unreachable_apiserver_is_unreachable(here: ContainerRef) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable):
        await sessions.begin(
            ApiConnection(f"http://127.0.0.1:{port}"), here, SessionRequest(SessionKind.SHELL)
        )


async def test_connect_reaches_a_port_of_the_pod(kubernetes: Cluster, here: ContainerRef) -> None:
    loop = asyncio.get_running_loop()
    for host in ("localhost", here.pod):
        with await sessions.connect(kubernetes.connection, here, host, 8000) as made:
            assert not made.getblocking()
            await loop.sock_sendall(made, b"GET /file HTTP/1.0\r\n\r\n")
            answer = b""
            while data := await loop.sock_recv(made, 65536):
                answer += data
            assert answer.endswith(b"\r\n\r\nhello\n")


@pytest.mark.parametrize(
    ("host", "port"), [("localhost", 8001), ("169.254.169.254", 80), ("localhost", 65536), ("10.96.0.1", 443)]
)
async def test_connect_reaches_nothing_else(
    kubernetes: Cluster, here: ContainerRef, host: str, port: int
) -> None:
    with pytest.raises(NoEntry) as refused:
        await sessions.connect(kubernetes.connection, here, host, port)
    assert refused.value.barrier is Barrier.NOT_ITS_OWN


# --- a newer protocol --------------------------------------------------------------------------------------


@asynccontextmanager
async def newer_apiserver() -> AsyncIterator[tuple[ApiConnection, list[bytes]]]:
    """A stand-in for an apiserver since 1.30, which there is none of here: `cat` by v5.channel.k8s.io."""
    messages: list[bytes] = []

    async def serve(socket: ServerConnection) -> None:
        async for message in socket:
            assert isinstance(message, bytes)
            messages.append(message)
            if message[:1] == b"\0":
                await socket.send(b"\1" + message[1:])
            if message == b"\xff\0":
                await socket.send(b"\3" + b'{"status": "Success"}')
                return

    protocols = [Subprotocol("v5.channel.k8s.io"), Subprotocol("v4.channel.k8s.io")]
    async with websocket_server(serve, "127.0.0.1", 0, subprotocols=protocols) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield ApiConnection(f"http://127.0.0.1:{port}"), messages


async def test_newer_apiserver_is_told_of_the_input_s_end() -> None:
    async with newer_apiserver() as (connection, messages):
        stream = await open_exec(connection, "space", "pod", "main", ["cat"])
        assert stream.can_end_input
        await stream.write(b"some\n")
        await stream.write_eof()
        assert await stream.read(100) == b"some\n"
        assert await stream.read(100) == b""
        assert await stream.wait() == ExecEnd(0)
        await stream.close()
        assert messages == [b"\0some\n", b"\xff\0"]
        with pytest.raises(BrokenPipeError):
            await stream.write(b"more")
