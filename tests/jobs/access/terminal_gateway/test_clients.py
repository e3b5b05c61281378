"""How the programs come that people have: by the page's own lines, as VS Code does, and as PyCharm does."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import termios
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import asyncssh
import pytest
from django.conf import LazySettings
from django.conf import settings as django_settings
from django.test import Client as Visitor
from django.urls import reverse

from jobs.access import sshhost
from tests import required
from tests.jobs.access.terminal_gateway.conftest import Client, People, Place
from tests.jobs.access.terminal_gateway.test_ssh import SERVE, running
from tests.ports import free_port
from tests.processes import count_processes
from tests.waiting import wait_for

pytestmark = pytest.mark.once

# --- what the page offers --------------------------------------------------------------------------------


@pytest.fixture
def visitor(people: People, settings: LazySettings) -> Visitor:
    """The owner's browser, at a console whose SSH is on this machine."""
    settings.CONSOLE_SSH_HOST = "127.0.0.1"
    made = Visitor()
    made.force_login(people.owner)
    return made


def connect_tab(visitor: Visitor, place: Place) -> str:
    address = reverse("job", args=[place.job.public_id])
    return visitor.get(address, {"tab": "connect"}).content.decode()


@pytest.fixture
def home(gateway: int, visitor: Visitor, place: Place, tmp_path: Path) -> Path:
    """A home folder with a downloaded key and the page's lines, and nothing else that names a host."""
    folder = tmp_path / ".ssh"
    folder.mkdir(mode=0o700)
    answer = visitor.post(reverse("job_key", args=[place.job.public_id]))
    key = folder / re.findall('filename="(.+)"', answer["Content-Disposition"])[0]
    key.touch(mode=0o600)
    key.write_bytes(answer.content)
    lines = connect_tab(visitor, place).partition('id="ssh-config">')[2].partition("</pre>")[0]
    known = f"[127.0.0.1]:{gateway} {sshhost.public_key(django_settings.CONSOLE_HOME)}\n"
    (folder / "known_hosts").write_text(known)
    told = unescape(lines).replace("~/.ssh/", f"{folder}/")
    strict = f"  UserKnownHostsFile {folder}/known_hosts\n  StrictHostKeyChecking yes\n  BatchMode yes\n"
    (folder / "config").write_text(told + strict)
    return folder


def test_ssh_clients_need_only_the_lines_and_key_shown(home: Path, place: Place, tmp_path: Path) -> None:
    required.skip_without("rsync", "rsync")
    (tmp_path / "there").write_text("sent")
    name, config = place.login(), ("-F", str(home / "config"))
    for command in (
        ["ssh", *config, name, "test -d /job"],
        ["scp", *config, str(tmp_path / "there"), f"{name}:by-scp"],
        ["rsync", "-a", "-e", shlex.join(["ssh", *config]), str(tmp_path / "there"), f"{name}:by-rsync"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
    batch = f"put {tmp_path}/there by-sftp\n"
    subprocess.run(["sftp", *config, "-b", "-", name], input=batch.encode(), check=True, timeout=60)
    for way in ("scp", "sftp", "rsync"):
        assert (place.work / f"by-{way}").read_text() == "sent"


def test_ssh_host_key_on_the_page_matches_the_served_key(
    gateway: int, visitor: Visitor, place: Place, tmp_path: Path
) -> None:
    scan = ["ssh-keyscan", "-p", str(gateway), "127.0.0.1"]
    served = subprocess.run(scan, capture_output=True, text=True, check=True, timeout=60).stdout
    (tmp_path / "served").write_text(served)
    command = ["ssh-keygen", "-lf", str(tmp_path / "served")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    fingerprints = {line.split()[1] for line in shown.splitlines()}
    assert fingerprints == {sshhost.fingerprint(django_settings.CONSOLE_HOME)}
    assert fingerprints.pop() in unescape(connect_tab(visitor, place))


def test_ssh_client_rejects_a_different_host_key(home: Path, place: Place, owner: Client) -> None:
    other = (owner.folder / "key.pub").read_text().split()[:2]
    (home / "known_hosts").write_text(f"[127.0.0.1]:{owner.port} {' '.join(other)}\n")
    command = ["ssh", "-F", str(home / "config"), place.login(), "echo in"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (255, "")
    assert "HOST IDENTIFICATION HAS CHANGED" in done.stderr


# --- one command, one terminal ---------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 9, 127, 255])
def test_ssh_command_exit_code_and_output_come_back_unchanged(owner: Client, place: Place, code: int) -> None:
    program = place.work / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho 'NVIDIA-SMI has failed' >&2\nexit {code}\n")
    program.chmod(0o755)
    done = owner.ssh(place, "/job/nvidia-smi")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "NVIDIA-SMI has failed\n")


def test_ssh_command_not_found_is_reported_by_the_job_shell(owner: Client, place: Place) -> None:
    done = owner.ssh(place, "no-such-program")
    assert done.returncode == 127
    assert "not found" in done.stderr


@contextmanager
def terminal(command: list[str], columns: int, rows: int) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A program in a terminal of this size: its descriptor, and the program."""
    ours, theirs = pty.openpty()
    set_size(ours, columns, rows)
    opened = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with running(command, **opened, start_new_session=True, preexec_fn=_take_terminal) as program:
        os.close(theirs)
        try:
            yield ours, program
        finally:
            os.close(ours)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def set_size(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def until(descriptor: int, text: str) -> str:
    """All that is shown up to and with `text`."""
    shown = b""
    while text.encode() not in shown:
        assert select.select([descriptor], [], [], 60)[0], shown
        shown += os.read(descriptor, 4096)
    return shown.decode(errors="replace")


def test_ssh_terminal_follows_the_client_window_size(owner: Client, place: Place) -> None:
    command = owner.command("ssh", "-t", f"{place.login()}@127.0.0.1", "stty size; exec bash --norc")
    with terminal(command, 101, 37) as (screen, program):
        until(screen, "37 101")
        waiting = "while [ $(stty size | cut -d' ' -f2) = 101 ]; do :; done"
        os.write(screen, f"echo wai''ting; {waiting}; stty size; exit 3\n".encode())
        until(screen, "waiting")  # beginning to read a line, Bash itself sets the size that it has just seen
        set_size(screen, 133, 41)
        program.send_signal(signal.SIGWINCH)
        until(screen, "41 133")
        assert program.wait(60) == 3


def test_ssh_ctrl_c_ends_the_program_and_keeps_the_connection(owner: Client, place: Place) -> None:
    command = owner.command("ssh", "-t", f"{place.login()}@127.0.0.1", "bash --norc")
    with terminal(command, 80, 24) as (screen, program):
        os.write(screen, b"echo begi''ns; sleep 604; echo en''ded\n")
        until(screen, "begins")
        wait_for(lambda: count_processes("sleep", "604") == 1)
        os.write(screen, b"\x03")
        os.write(screen, b"echo sti''ll; exit 5\n")
        assert "ended" not in until(screen, "still")
        assert program.wait(60) == 5


def test_ssh_command_reading_part_of_its_input_still_ends(owner: Client, place: Place) -> None:
    done = owner.ssh(place, "head -c 10", input="0123456789" * 100_000)
    assert (done.returncode, done.stdout) == (0, "0123456789")


# --- VS Code ---------------------------------------------------------------------------------------------

INSTALL = f"""
set -e
mkdir -p "$HOME/.vscode-server/bin"
cd "$HOME/.vscode-server"
uname -rsv; uname -m; command -v bash
cat > bin/server.py <<'END'
{SERVE.replace("; ", chr(10))}
END
rm -f .log
nohup python3 bin/server.py > .log 2>&1 < /dev/null &
echo $! > .pid
for _ in $(seq 400); do test -s .log && break; sleep 0.05; done
echo "listeningOn==$(head -n 1 .log)=="
echo "done: $HOME"
"""
"""What its installer does, in small: it looks around, unpacks a server, starts it, says where it listens."""


def through_socks(proxy: int, host: str, port: int) -> str:
    """One request over a SOCKS 5 proxy (RFC 1928), as VS Code makes its connections; what was answered."""
    with socket.create_connection(("127.0.0.1", proxy), timeout=60) as connection:
        connection.sendall(b"\x05\x01\x00")
        assert connection.recv(2) == b"\x05\x00"
        name = host.encode()
        connection.sendall(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
        if connection.recv(10)[:2] != b"\x05\x00":
            return ""
        connection.sendall(b"GET /index.html HTTP/1.0\r\n\r\n")
        answer = b""
        while more := connection.recv(4096):
            answer += more
    return answer.decode()


@contextmanager
def remote_ssh(owner: Client, place: Place) -> Iterator[tuple[int, int, subprocess.Popen[bytes]]]:
    """`ssh -T -D PORT HOST bash -s` with the installer typed into it: the proxy's port, and the server's."""
    proxy = free_port()
    target = f"{place.login()}@127.0.0.1"
    command = owner.command("ssh", "-v", "-T", "-D", str(proxy), "-o", "ConnectTimeout=15", target, "bash -s")
    pipe = subprocess.PIPE
    with running(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(INSTALL.encode())
        told = iter(client.stdout.readline, b"")
        port = next(found[1] for line in told if (found := re.match(b"listeningOn==([0-9]+)==", line)))
        assert next(told) == b"done: /job\n"
        yield proxy, int(port), client


def test_vs_code_installs_and_reaches_its_server_over_one_connection(owner: Client, place: Place) -> None:
    with remote_ssh(owner, place) as (proxy, port, client):
        for host in ("127.0.0.1", "localhost"):
            assert "served by the job" in through_socks(proxy, host, port)
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(b"kill -0 $(cat .pid) && echo its server runs\n")
        assert client.stdout.readline() == b"its server runs\n"
        assert (place.work / ".vscode-server" / "bin" / "server.py").exists()


def test_vs_code_proxy_reaches_only_the_job(owner: Client, place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as database, remote_ssh(owner, place) as (proxy, _port, _ssh):
        assert through_socks(proxy, "127.0.0.1", database.getsockname()[1]) == ""
        assert through_socks(proxy, "169.254.169.254", 80) == ""


def test_vs_code_server_ends_with_connection_and_starts_for_the_next(owner: Client, place: Place) -> None:
    pids = []
    for _ in range(2):
        with remote_ssh(owner, place) as (proxy, port, _client):
            assert "served by the job" in through_socks(proxy, "127.0.0.1", port)
            pids.append((place.work / ".vscode-server" / ".pid").read_text())
        wait_for(lambda: owner.ssh(place, f"kill -0 {pids[-1]}").returncode == 1)


def test_ssh_local_forward_leads_to_the_job(owner: Client, begin_job: Callable[..., Place]) -> None:
    place = begin_job(f'exec python3 -c "{SERVE}" 2>/dev/null')
    local = free_port()
    target = f"{place.login()}@127.0.0.1"
    with running(owner.command("ssh", "-N", "-L", f"{local}:localhost:{place.log().strip()}", target)):
        wait_for(lambda: _get(local))
        assert "served by the job" in _get(local)


def _get(port: int) -> str:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /index.html HTTP/1.0\r\n\r\n")
            answer = b""
            while more := connection.recv(4096):
                answer += more
    except OSError:
        return ""
    return answer.decode()


# --- PyCharm ---------------------------------------------------------------------------------------------


def with_sftp(
    owner: Client,
    place: Place,
    look: Callable[[asyncssh.SSHClientConnection, asyncssh.SFTPClient], Awaitable[None]],
) -> None:
    """Run `look` with one connection and one SFTP version 3 session on it, as PyCharm keeps them."""
    login = place.login()

    async def connect() -> None:
        async with (
            asyncio.timeout(60),
            asyncssh.connect(
                "127.0.0.1",
                owner.port,
                username=login,
                known_hosts=None,
                client_keys=[str(owner.key)],
                config=None,
                agent_path=None,
            ) as connection,
            connection.start_sftp_client(sftp_version=3) as sftp,
        ):
            await look(connection, sftp)

    asyncio.run(connect())


def test_pycharm_deployment_uploads_renames_and_sets_times(owner: Client, place: Place) -> None:
    async def look(_connection: asyncssh.SSHClientConnection, sftp: asyncssh.SFTPClient) -> None:
        assert await sftp.realpath(".") == "/job"
        assert (await sftp.stat("/job")).permissions is not None
        await sftp.mkdir("project")
        with pytest.raises(asyncssh.SFTPFailure):
            await sftp.mkdir("project")
        for text in (b"first", b"second"):  # the second upload replaces the first by way of a draft
            async with sftp.open("project/main.py.~part", "wb") as file:
                await file.write(text)
            if await sftp.exists("project/main.py"):
                with pytest.raises(asyncssh.SFTPFailure):
                    await sftp.rename("project/main.py.~part", "project/main.py")
                await sftp.remove("project/main.py")
            await sftp.rename("project/main.py.~part", "project/main.py")
        await sftp.chmod("project/main.py", 0o750)
        await sftp.utime("project/main.py", (1_700_000_000, 1_700_000_001))
        found = await sftp.stat("project/main.py")
        assert (found.size, found.mtime) == (6, 1_700_000_001)
        assert (found.permissions or 0) & 0o777 == 0o750
        # In OpenSSH's order, which everybody has come to use; this client keeps the draft's with strangers.
        await sftp.symlink("project/link.py", "main.py")
        assert await sftp.readlink("project/link.py") == "main.py"
        assert sorted(await sftp.listdir("project")) == [".", "..", "link.py", "main.py"]
        async with sftp.open("project/other", "wb") as file:
            await file.write(b"other")
        await sftp.posix_rename("project/other", "project/main.py")
        assert (await sftp.stat("project/main.py")).size == 5
        assert (await sftp.statvfs("project")).bavail > 0
        with pytest.raises(asyncssh.SFTPNoSuchFile):
            await sftp.stat("project/none")
        await sftp.rmtree("project")

    with_sftp(owner, place, look)
    assert not (place.work / "project").exists()


HELPER = "import os, sys\nprint(sys.argv[1:], sys.stdin.isatty(), os.getcwd(), os.environ.get('RUN'))\n"


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
def test_pycharm_helpers_upload_and_run_with_the_job_interpreter(
    owner: Client, place: Place, *, tty: bool
) -> None:
    async def look(connection: asyncssh.SSHClientConnection, sftp: asyncssh.SFTPClient) -> None:
        await sftp.makedirs(".pycharm_helpers/pydev")
        async with sftp.open(".pycharm_helpers/pydev/helper.py", "w") as file:
            await file.write(HELPER)
        version = await connection.run("python3 -V", check=True)
        assert str(version.stdout).startswith("Python 3.")
        command = (
            "cd /tmp; env RUN=1 PYTHONUNBUFFERED=1 python3 -u /job/.pycharm_helpers/pydev/helper.py a 'b c'"
        )
        done = await connection.run(command, check=True, term_type="xterm" if tty else None)
        assert str(done.stdout).split() == f"['a', 'b c'] {tty} /tmp 1".split()

    with_sftp(owner, place, look)


def test_pycharm_debugger_reaches_a_job_port_during_file_transfers(
    owner: Client, begin_job: Callable[..., Place]
) -> None:
    place = begin_job(f'exec python3 -c "{SERVE}" 2>/dev/null')
    port = int(place.log())

    async def look(connection: asyncssh.SSHClientConnection, sftp: asyncssh.SFTPClient) -> None:
        async with connection.forward_local_port("127.0.0.1", 0, "localhost", port) as listening:
            reader, writer = await asyncio.open_connection("127.0.0.1", listening.get_port())
            writer.write(b"GET /index.html HTTP/1.0\r\n\r\n")
            async with sftp.open("large", "wb") as file:
                await file.write(b"x" * (4 << 20))
            assert b"served by the job" in await reader.read()
            writer.close()
        assert (await sftp.stat("large")).size == 4 << 20

    with_sftp(owner, place, look)
