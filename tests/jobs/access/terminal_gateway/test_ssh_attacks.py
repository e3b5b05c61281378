"""What nobody may do by SSH, and how soon a right that is gone shows."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from django.conf import LazySettings, settings

from jobs.access import sessions, sshkeys
from jobs.models import AccessSession, Job, SshKey
from jobs.states import State
from quotas.models import Membership, Role, User
from tests import postgres
from tests.jobs.access.terminal_gateway.conftest import Client, People, Place, make_key
from tests.jobs.access.terminal_gateway.test_ssh import SERVE, running
from tests.ports import free_port
from tests.processes import count_processes
from tests.waiting import wait_for

pytestmark = pytest.mark.once

STAY = "echo in; exec sleep 602"


def enters(client: Client, place: Place) -> bool:
    return client.ssh(place, "echo in").stdout == "in\n"


def test_ssh_gateway_admits_owner_and_operator_and_refuses_others(
    client_of: Callable[[User], Client], people: People, place: Place
) -> None:
    may = {user.username: enters(client_of(user), place) for user in vars(people).values()}
    assert may == {"owner": True, "member": False, "operator": True, "stranger": False}
    assert AccessSession.objects.count() == 2


def test_ssh_gateway_refuses_members_at_a_public_job(
    client_of: Callable[[User], Client], people: People, place: Place
) -> None:
    Job.objects.filter(pk=place.job.pk).update(visibility="PUBLIC")
    assert not enters(client_of(people.member), place)


def test_ssh_gateway_refuses_an_unknown_key(owner: Client, place: Place) -> None:
    SshKey.objects.all().delete()
    done = owner.ssh(place, "echo in")
    assert done.returncode == 255
    assert "Permission denied" in done.stderr
    assert not AccessSession.objects.exists()


def test_ssh_key_made_for_one_job_opens_no_other(
    gateway: int, people: People, begin_job: Callable[..., Place], tmp_path: Path
) -> None:
    here, there = begin_job(), begin_job()
    _row, private = sshkeys.make(people.owner, here.job)
    client = Client(tmp_path, gateway)
    client.key.touch(mode=0o600)
    client.key.write_text(private)
    assert enters(client, here)
    assert not enters(client, there)
    sshkeys.make(people.owner, here.job)
    assert not enters(client, here)


def test_ssh_gateway_offers_no_password_login(owner: Client, place: Place) -> None:
    owner.options = ["-o", "PubkeyAuthentication=no"]
    done = owner.ssh(place, "echo in")
    assert "Permission denied (publickey)." in done.stderr
    assert done.stdout == ""


def test_ssh_gateway_refuses_an_ended_job(owner: Client, place: Place) -> None:
    Job.objects.filter(pk=place.job.pk).update(state=State.SUCCEEDED)
    done = owner.ssh(place, "echo in")
    assert done.stdout == ""
    assert done.returncode == 126
    assert "not running" in done.stderr


def _disable(place: Place) -> None:
    User.objects.filter(pk=place.job.owner_id).update(is_active=False)


def _demote(place: Place) -> None:
    Membership.objects.filter(user=place.job.owner).update(role=Role.VIEWER)


def _remove_key(place: Place) -> None:
    SshKey.objects.all().delete()


def _end(place: Place) -> None:
    Job.objects.filter(pk=place.job.pk).update(state=State.FAILED)


def _delete(place: Place) -> None:
    Job.objects.filter(pk=place.job.pk).update(deleted_at="2026-01-01T00:00Z")


def _ask(place: Place) -> None:
    admin = User.objects.create_superuser("root-of-all")
    assert sessions.ask_end(AccessSession.objects.all(), admin) == 1


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        (_disable, "right_lost"),
        (_demote, "right_lost"),
        (_remove_key, "right_lost"),
        (_delete, "right_lost"),
        (_end, "job_ended"),
        (_ask, "asked"),
    ],
    ids=["disabled", "demoted", "key removed", "deleted", "ended", "asked"],
)
def test_ssh_session_ends_when_the_right_is_lost(
    owner: Client, place: Place, loss: Callable[[Place], None], why: str
) -> None:
    command = owner.command("ssh", f"{place.login()}@127.0.0.1", STAY)
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"in\n"
        loss(place)
        assert client.wait(60) == 255
    wait_for(lambda: AccessSession.objects.get().why == why)
    wait_for(lambda: not count_processes("sleep", "602"))


def test_ssh_forward_reaches_only_ports_of_the_job(owner: Client, place: Place) -> None:
    target = f"{place.login()}@127.0.0.1"
    with socket.create_server(("127.0.0.1", 0)) as database:
        port = database.getsockname()[1]
        owner.options = ["-o", "LogLevel=INFO"]
        for where in (f"127.0.0.1:{port}", f"localhost:{settings.CONSOLE_SSH_PORT}", "169.254.169.254:80"):
            done = owner.run("ssh", "-W", where, target, input="GET / HTTP/1.0\r\n\r\n")
            assert (done.returncode, done.stdout) == (255, ""), where
            assert "administratively prohibited" in done.stderr
        database.settimeout(0.2)
        with pytest.raises(TimeoutError):
            database.accept()


SPELLINGS = (
    *("127.1", "0", "2130706433", "0x7f000001", "0.0.0.0", "[::ffff:127.0.0.1]", "[::1]", "127.0.0.2"),
    *("localhost.", "LOCALHOST", "rebound.example", "metadata.google.internal", "../localhost"),
)


def test_ssh_forward_by_any_host_spelling_reaches_no_other_local_port(owner: Client, place: Place) -> None:
    with socket.create_server(("", 0)) as database:
        database.settimeout(0.1)
        for name in SPELLINGS:
            where = f"{name}:{database.getsockname()[1]}"
            done = owner.run("ssh", "-W", where, f"{place.login()}@127.0.0.1", input="GET / HTTP/1.0\r\n\r\n")
            assert (done.returncode, done.stdout) == (255, ""), name
        with pytest.raises(TimeoutError):
            database.accept()


def test_ssh_forward_reaches_own_port_and_refuses_port_of_another_job(
    owner: Client, begin_job: Callable[..., Place]
) -> None:
    theirs, mine = (begin_job(f'exec python3 -c "{SERVE}" 2>/dev/null') for _ in range(2))
    assert "served by the job" in _asked(owner, mine, int(mine.log())).stdout
    assert _asked(owner, mine, int(theirs.log())).stdout == ""
    assert "served by the job" in _asked(owner, theirs, int(theirs.log())).stdout


def _asked(client: Client, place: Place, port: int) -> subprocess.CompletedProcess[str]:
    target = f"{place.login()}@127.0.0.1"
    return client.run("ssh", "-W", f"localhost:{port}", target, input="GET /index.html HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize("loss", ["disabled", "ended"])
def test_ssh_forwarded_connection_ends_when_the_right_is_lost(
    owner: Client, begin_job: Callable[..., Place], loss: str
) -> None:
    place = begin_job(ECHO)
    local = free_port()
    target = f"{place.login()}@127.0.0.1"
    with running(owner.command("ssh", "-N", "-L", f"{local}:localhost:{place.log().strip()}", target)) as ssh:
        with wait_for(lambda: _echoes(local)) as connection:
            (_disable if loss == "disabled" else _end)(place)
            assert connection.recv(100) == b""
        assert ssh.wait(60) == 255


ECHO = (
    "exec python3 -c \"import socket; s = socket.create_server(('127.0.0.1', 0)); "
    "print(s.getsockname()[1], flush=True)\nwhile True:\n c = s.accept()[0]\n"
    ' while d := c.recv(100): c.sendall(d)"'
)


def _echoes(port: int) -> socket.socket | None:
    """A connection that has come back with what it was sent."""
    try:
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        connection.sendall(b"still")
        answer = connection.recv(100)
    except OSError:
        return None
    return connection if answer == b"still" else None


def test_ssh_gateway_is_no_jump_host_to_another_job(
    owner: Client, begin_job: Callable[..., Place], gateway: int
) -> None:
    first, second = begin_job(), begin_job()
    jump = " ".join(owner.command("ssh", "-W", "%h:%p", f"{first.login()}@127.0.0.1"))
    done = owner.run("ssh", "-o", f"ProxyCommand={jump}", f"{second.login()}@127.0.0.1", "echo in")
    assert done.stdout == ""


def test_ssh_gateway_refuses_remote_port_forwarding(owner: Client, place: Place) -> None:
    owner.options = ["-o", "ExitOnForwardFailure=yes"]
    target = f"{place.login()}@127.0.0.1"
    done = owner.run("ssh", "-R", f"{free_port()}:127.0.0.1:1", target, "echo in")
    assert done.stdout == ""
    assert "remote port forwarding failed" in done.stderr


def test_ssh_gateway_refuses_agent_and_x11_forwarding(owner: Client, place: Place, tmp_path: Path) -> None:
    agent = str(tmp_path / "agent")
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(agent)
        listening.listen()
        owner.options = ["-o", "IdentityAgent=none", "-o", f"ForwardAgent={agent}", "-o", "ForwardX11=yes"]
        environ = {**os.environ, "DISPLAY": "127.0.0.1:7"}
        done = owner.ssh(place, 'echo "[$SSH_AUTH_SOCK$DISPLAY]"; ls -d /tmp/ssh* 2>/dev/null', env=environ)
    assert done.stdout == "[]\n"


def test_ssh_gateway_drops_dangerous_client_variables(owner: Client, place: Place) -> None:
    owner.options = ["-o", "SendEnv=LD_PRELOAD BASH_ENV LC_ALL JOB_CONSOLE_REPLICA CUDA_VISIBLE_DEVICES"]
    sent = {"LC_ALL": "C", "BASH_ENV": "/etc/x", "JOB_CONSOLE_REPLICA": "x", "CUDA_VISIBLE_DEVICES": "7"}
    line = 'echo "$LC_ALL,$BASH_ENV,$LD_PRELOAD,$CUDA_VISIBLE_DEVICES,$JOB_CONSOLE_REPLICA"'
    done = owner.ssh(place, line, env={**os.environ, **sent})
    assert done.stdout == f"C,,,,{place.handle}.{place.work.name}\n"


def test_sftp_follows_no_link_out_of_the_job(owner: Client, place: Place, tmp_path: Path) -> None:
    key = settings.CONSOLE_HOME / "keys" / "secret_key"
    made = f"ln -s {key} key; ln -s / all; ln -s ../../../../../../.. up; ln {key} hard 2>/dev/null; true"
    assert owner.ssh(place, made).returncode == 0
    target = f"{place.login()}@127.0.0.1"
    inner = f"{place.work.parent.parent}/secrets.json"
    for path in ("key", f"all{key}", f"up{key}", "hard", str(key), f"all{inner}", "/proc/1/root/etc/shadow"):
        done = owner.run("scp", f"{target}:{path}", str(tmp_path / "got"))
        assert done.returncode != 0, path
        assert not (tmp_path / "got").exists()


def test_ssh_gateway_limits_entries_per_user(owner: Client, place: Place, settings: LazySettings) -> None:
    settings.CONSOLE_ENTRIES_PER_PERSON = 2
    command = owner.command("ssh", f"{place.login()}@127.0.0.1", STAY)
    with ExitStack() as stack:
        for _ in range(2):
            client = stack.enter_context(running(command, stdout=subprocess.PIPE))
            assert client.stdout is not None
            assert client.stdout.readline() == b"in\n"
        done = owner.ssh(place, "echo in")
        assert done.stdout == ""
        assert "too many active sessions" in done.stderr
    wait_for(lambda: not AccessSession.objects.filter(ended_at=None).exists())
    assert enters(owner, place)


def test_ssh_key_too_weak_or_invalid_is_rejected(people: People, tmp_path: Path, owner: Client) -> None:
    make_key(tmp_path / "short", "-t", "rsa", "-b", "1024")
    make_key(tmp_path / "long", "-t", "rsa", "-b", "2048")
    make_key(tmp_path / "curve", "-t", "ecdsa")
    refused = {
        "short": (tmp_path / "short.pub").read_text(),
        "private": (tmp_path / "long").read_text(),
        "not_one": (tmp_path / "long.pub").read_text() * 2,
        "unknown": "ssh-ed25519 AAAA",
        "weak": "ssh-dss AAAAB3NzaC1kc3MAAACBAP somebody",
        "there": (owner.folder / "key.pub").read_text(),
    }
    for code, text in refused.items():
        with pytest.raises(sshkeys.BadKey) as bad:
            sshkeys.add(people.owner, text)
        assert bad.value.code == code
    with pytest.raises(sshkeys.BadKey) as bad:
        sshkeys.add(people.stranger, refused["there"])
    assert bad.value.code == "taken"
    for name in ("long", "curve"):
        added = sshkeys.add(people.owner, (tmp_path / f"{name}.pub").read_text())
        shown = ["ssh-keygen", "-lf", f"{tmp_path}/{name}.pub"]
        said = subprocess.run(shown, capture_output=True, text=True, check=True)
        assert added.fingerprint in said.stdout
        assert added.title == "somebody@somewhere"


def test_ssh_gateway_kill_leaves_no_process_and_spares_the_job(
    people: People, place: Place, tmp_path: Path, settings: LazySettings
) -> None:
    (settings.CONSOLE_HOME / "run").mkdir(exist_ok=True)
    port = free_port()
    make_key(tmp_path / "key")
    sshkeys.add(people.owner, (tmp_path / "key.pub").read_text())
    client = Client(tmp_path, port)
    database = postgres.url_of_the_tests(settings.DATABASES["default"])
    environ = {**os.environ, "CONSOLE_SSH_PORT": str(port), "DATABASE_URL": database}
    command = [sys.executable, "manage.py", "shells"]
    with running(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: enters(client, place), 60)
        line = "(trap '' HUP; sleep 602) & echo in; sleep 602"
        with running(
            client.command("ssh", f"{place.login()}@127.0.0.1", line), stdout=subprocess.PIPE
        ) as ssh:
            assert ssh.stdout is not None
            assert ssh.stdout.readline() == b"in\n"
            process.send_signal(signal.SIGKILL)
            process.wait()
            wait_for(lambda: not count_processes("sleep", "602"))
    assert not place._is_over()
