"""OpenSSH, as people have it, into a job that really runs."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from jobs.access import sshhost, sshkeys
from jobs.access.terminal_gateway import channels, server, session
from jobs.models import AccessSession, Event
from tests import required
from tests.jobs.access.terminal_gateway.conftest import EVERYWHERE, Client, People, Place, make_key, shells
from tests.ports import free_port
from tests.processes import count_processes
from tests.waiting import wait_for


@EVERYWHERE
def test_ssh_command_runs_in_the_job_and_returns_its_exit_code(owner: Client, place: Place) -> None:
    done = owner.ssh(place, "pwd; echo $PAI_JOB_NAME; echo wrong >&2; exit 7")
    assert done.stdout.splitlines() == [place.home, "hello"]
    assert done.stderr == "wrong\n"
    assert done.returncode == 7


@EVERYWHERE
def test_ssh_input_returns_complete_and_unchanged(owner: Client, place: Place) -> None:
    text = "中文 and more\n" * 20000
    done = owner.ssh(place, "cat", input=text)
    assert done.stdout == text


def test_ssh_command_ended_by_a_signal_reports_the_signal(owner: Client, place: Place) -> None:
    done = owner.ssh(place, "kill -TERM $$")
    assert done.returncode == 255
    verbose = owner.run("ssh", "-v", f"{place.login()}@127.0.0.1", "kill -TERM $$", text=True)
    assert "exit-signal" in verbose.stderr or verbose.returncode == 255


@EVERYWHERE
def test_ssh_terminal_has_type_and_size_of_the_client(owner: Client, place: Place) -> None:
    done = owner.run(
        "ssh",
        "-tt",
        f"{place.login()}@127.0.0.1",
        "stty size; echo $TERM; tty",
        env={**os.environ, "TERM": "vt100"},
    )
    size, term, tty = done.stdout.splitlines()
    assert len(size.split()) == 2
    assert (term, tty.startswith("/dev/pts/")) == ("vt100", True)


@pytest.mark.parametrize("blocks", range(34, 38))
def test_ssh_output_reaches_a_slow_client_whole(
    owner: Client, place: Place, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    """All between command and client is full when the command ends, or it ends while the client reads."""
    monkeypatch.setattr(channels, "REST_SECONDS", 0.05)
    size = blocks * 64 * 1024
    line = f"head -c {size} /dev/zero; touch over; exit 3"
    with running(owner.command("ssh", f"{place.login()}@127.0.0.1", line), stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        with suppress(AssertionError):
            wait_for((place.work / "over").exists, 1)
        time.sleep(0.3)  # it is the client's delay that is tested
        assert len(client.stdout.read()) == size
        assert client.wait(60) == 3


def test_ssh_command_ends_though_what_it_left_holds_its_output_open(owner: Client, place: Place) -> None:
    done = owner.ssh(place, "sleep 603 & echo in; exit 3")
    assert (done.stdout, done.returncode) == ("in\n", 3)


def test_ssh_shell_reads_typed_commands(owner: Client, place: Place) -> None:
    done = owner.ssh(place, input="cd /tmp; pwd; exit 4\n")
    assert (done.stdout, done.returncode) == ("/tmp\n", 4)


@EVERYWHERE
def test_scp_of_either_protocol_copies_both_ways(owner: Client, place: Place, tmp_path: Path) -> None:
    target = f"{place.login()}@127.0.0.1"
    for name, how in (("sftp", []), ("old", ["-O"])):
        data = os.urandom(3 << 20)
        (tmp_path / name).write_bytes(data)
        assert owner.run("scp", *how, str(tmp_path / name), f"{target}:{name}").returncode == 0, name
        assert (place.work / name).read_bytes() == data, name
        assert owner.run("scp", *how, "-p", f"{target}:{name}", str(tmp_path / "back")).returncode == 0, name
        assert (tmp_path / "back").read_bytes() == data, name


def test_sftp_lists_creates_renames_and_removes(owner: Client, place: Place, tmp_path: Path) -> None:
    (tmp_path / "文件").write_text("文\n")
    batch = f"""
    pwd
    mkdir folder
    put {tmp_path}/文件 folder/a
    rename folder/a folder/b
    chmod 640 folder/b
    symlink folder/b link
    ls -l folder
    get link {tmp_path}/got
    df
    rm link
    rm folder/b
    rmdir folder
    """
    done = owner.run("sftp", "-b", "-", f"{place.login()}@127.0.0.1", input=batch)
    assert done.returncode == 0, done.stderr
    assert "Remote working directory: /job" in done.stdout
    assert (tmp_path / "got").read_text() == "文\n"
    assert not list(place.work.glob("*"))


def test_rsync_updates_a_tree(owner: Client, place: Place, tmp_path: Path) -> None:
    required.skip_without("rsync", "rsync")
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    for number in range(50):
        (tree / "deep" / f"file {number}").write_text(str(number))
    shell = " ".join(owner.command("ssh"))
    command = ["rsync", "-a", "-e", shell, f"{tree}/", f"{place.login()}@127.0.0.1:tree/"]
    subprocess.run(command, check=True, timeout=60)
    (tree / "deep" / "file 1").write_text("another")
    done = subprocess.run([*command, "-v"], check=True, timeout=60, capture_output=True, text=True)
    assert (place.work / "tree/deep/file 1").read_text() == "another"
    assert "file 2" not in done.stdout


def test_ssh_login_by_job_id_alone_enters_the_job(owner: Client, place: Place) -> None:
    assert owner.run("ssh", f"{place.job.public_id}@127.0.0.1", "echo in").stdout == "in\n"


def test_ssh_connection_runs_many_commands_and_leaves_no_process(
    owner: Client, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than may run at a time: those that have ended count no more."""
    monkeypatch.setattr(session, "MOST_SESSIONS", 8)
    control = ["-o", f"ControlPath={owner.folder}/control"]
    target = f"{place.login()}@127.0.0.1"
    with running(owner.command("ssh", *control, "-M", "-N", target)):
        wait_for((owner.folder / "control").exists)
        for _ in range(12):
            done = owner.run("ssh", *control, target, "echo $((1+1))")
            assert done.stdout == "2\n", (_, done)
        owner.run("ssh", *control, target, "sleep 601 >/dev/null 2>&1 </dev/null &")
        wait_for(lambda: count_processes("sleep", "601") == 1)
    wait_for(lambda: count_processes("sleep", "601") == 0)


@contextmanager
def running(command: list[str], **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended at the end, whatever happened."""
    with subprocess.Popen(command, **more) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_ssh_entry_records_a_session_and_two_events(owner: Client, place: Place) -> None:
    owner.ssh(place, "true")
    entry = AccessSession.objects.get()
    wait_for(lambda: AccessSession.objects.exclude(ended_at=None).exists())
    entry.refresh_from_db()
    assert (entry.kind, entry.user, entry.replica) == ("ssh", place.job.owner, place.replica)
    assert (entry.address, entry.why) == ("127.0.0.1", "left")
    assert entry.ssh_key is not None
    assert entry.ssh_key.last_used_at is not None
    events = list(Event.objects.filter(kind__in=["entered", "left"]).values_list("kind", "actor__username"))
    assert events == [("entered", "owner"), ("left", "owner")]


SERVE = (
    "import http.server, os; open('index.html', 'w').write('served by the job'); "
    "s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler); "
    "print(s.server_port, flush=True); s.serve_forever()"
)


def test_ssh_forwarded_connection_closed_by_the_job_ends_for_the_client(
    owner: Client, begin_job: Callable[..., Place]
) -> None:
    place = begin_job(f'exec python3 -c "{SERVE}" 2>/dev/null')
    to = ("-W", f"localhost:{int(place.log())}", f"{place.login()}@127.0.0.1")
    with running(owner.command("ssh", *to), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ssh:
        assert ssh.stdin is not None
        assert ssh.stdout is not None
        ssh.stdin.write(b"GET /index.html HTTP/1.0\r\n\r\n")
        ssh.stdin.flush()
        assert ssh.stdout.read().endswith(b"served by the job")
        ssh.stdin.close()
        assert ssh.wait(60) == 0


@EVERYWHERE
def test_ssh_forward_reaches_a_port_of_the_job(owner: Client, begin_job: Callable[..., Place]) -> None:
    place = begin_job(f'exec python3 -c "{SERVE}" 2>/dev/null')
    port = int(place.log())
    done = owner.run(
        "ssh",
        "-W",
        f"localhost:{port}",
        f"{place.login()}@127.0.0.1",
        input="GET /index.html HTTP/1.0\r\n\r\n",
    )
    assert "served by the job" in done.stdout


def test_ssh_keystrokes_are_echoed_promptly(owner: Client, place: Place) -> None:
    command = owner.command(
        "ssh", "-tt", f"{place.login()}@127.0.0.1", "stty raw -echo; echo ready; exec cat"
    )
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        said = b""
        while b"ready" not in said:
            said += client.stdout.read(100)
        took = []
        for _ in range(50):
            began = time.perf_counter()
            client.stdin.write(b"x")
            assert client.stdout.read(1) == b"x"
            took.append(time.perf_counter() - began)
    assert sorted(took)[len(took) // 2] < 1


SSHD = """
mkdir -p /run/sshd 2>/dev/null; ssh-keygen -q -t ed25519 -N '' -f hostkey
echo '{key}' > keys; chmod 600 keys
echo {port}; exec /usr/sbin/sshd -D -f /dev/null -p {port} -o ListenAddress=127.0.0.1 -h /job/hostkey \
  -o UsePAM=no -o PidFile=none -o StrictModes=no -o AuthorizedKeysFile=/job/keys 2>/dev/null
"""


def test_ssh_gateway_is_jump_host_to_ssh_server_in_the_job(
    owner: Client, begin_job: Callable[..., Place]
) -> None:
    if not Path("/usr/sbin/sshd").exists():
        pytest.skip("there is no OpenSSH server (Debian: openssh-server)")
    port = free_port()
    place = begin_job(SSHD.format(key=(owner.folder / "key.pub").read_text().strip(), port=port))
    config = owner.folder / "config"
    settled = f"IdentityFile {owner.key}\nIdentitiesOnly yes\nStrictHostKeyChecking no\nLogLevel ERROR\n"
    known = f"UserKnownHostsFile {owner.folder}/known_hosts\nBatchMode yes\n"
    config.write_text(
        f"Host jump\nHostName 127.0.0.1\nPort {owner.port}\nUser {place.login()}\nHost *\n{settled}{known}"
    )

    def hop() -> str:
        command = ["ssh", "-F", str(config), "-J", "jump", "-p", str(port), "owner@localhost", "pwd; echo in"]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout

    wait_for(lambda: hop().endswith("in\n"))


def test_ssh_gateway_on_a_taken_port_reports_and_retries(
    people: People, place: Place, settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "AGAIN_SECONDS", 0.1)
    (settings.CONSOLE_HOME / "run").mkdir(exist_ok=True)
    make_key(tmp_path / "key")
    sshkeys.add(people.owner, (tmp_path / "key.pub").read_text())
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings.CONSOLE_SSH_PORT = other.getsockname()[1]
        with shells():
            wait_for(lambda: "in use" in sshhost.trouble(settings.CONSOLE_HOME))
            other.close()
            client = Client(tmp_path, settings.CONSOLE_SSH_PORT)
            wait_for(lambda: client.ssh(place, "echo in").stdout == "in\n")
            assert not sshhost.trouble(settings.CONSOLE_HOME)
