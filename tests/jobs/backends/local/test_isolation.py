"""From inside a running job: what it can't reach, in each mode that is possible on this machine."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Handle, Person
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.machine import detect_isolation
from jobs.node.sandbox.isolation import Isolation
from jobs.states import State
from tests.jobs.backends.benches import CHECKOUT, LocalBench, log_of, role, wait_until_over
from tests.waiting import wait_for

TRY = """
try_it() {{
  if "$@" > /tmp/got 2>/dev/null; then echo "OPEN: $*: $(head -c 80 /tmp/got)"; else echo shut; fi
}}
for path in {paths}; do
  try_it cat "$path"
  try_it ls "$path"
  ln -sf "$path" /job/link; try_it cat /job/link; rm -f /job/link
  try_it sh -c "echo x >> $path"
done
try_it cat /proc/{pid}/environ
try_it cat /proc/1/environ
try_it ls -l /proc/1/fd/
try_it ls /proc/1/root/
try_it ls /proc/1/cwd/
kill -9 1 2>/dev/null; kill -STOP 1 2>/dev/null
try_it unshare -Urm sh -c 'umount {home} && cat {home}/db.sqlite3'
try_it unshare -Urm sh -c 'mount --bind / /mnt && cat /mnt{home}/db.sqlite3'
echo asked
"""


def _needs(mode: Isolation) -> None:
    possible = detect_isolation(sys.executable)
    if mode is Isolation.PERSONS and possible is not Isolation.PERSONS:
        pytest.skip("user ids for every person need root and mount namespaces")


@pytest.fixture
def persons(tmp_path: Path) -> Iterator[LocalBench]:
    _needs(Isolation.PERSONS)
    bench = LocalBench(tmp_path)
    yield bench
    bench.close()


def _secrets_in(home: Path) -> dict[str, str]:
    return {str(home / name): name for name in ("db.sqlite3", "keys/django", "run/other")}


def test_job_cannot_reach_console_or_jobs_of_other_persons(persons: LocalBench) -> None:
    for name in ("keys", "run"):
        (persons.home / name).mkdir()
    for path, text in _secrets_in(persons.home).items():
        Path(path).write_text(text)
    with socket.socket(socket.AF_UNIX) as broker:
        broker.bind(str(persons.home / "run" / "redis.sock"))
        broker.listen()
        bob = Person("bob", 8)
        other = persons.backend.submit(
            persons.submission(role("echo private > diary; echo my log; exec sleep 60"), person=bob)
        )
        wait_for(lambda: log_of(persons.backend, other))
        paths = [*_secrets_in(persons.home), *_places_of(persons, other)]
        command = TRY.format(paths=" ".join(paths), pid=os.getpid(), home=persons.home)
        mine = persons.backend.submit(
            persons.submission(role(command + _connect(persons.home / "run" / "redis.sock")))
        )
        assert wait_until_over(persons.backend, mine).state is State.SUCCEEDED
        own = persons.attempt(mine)
    lines = log_of(persons.backend, mine).splitlines()
    assert lines[-2:] == ["asked", "no socket"]
    assert set(lines[:-2]) == {"shut"}
    assert not [path for path in own.rglob("*") if path.is_symlink()]


def _places_of(bench: LocalBench, handle: Handle) -> list[str]:
    attempt = bench.attempt(handle)
    return [str(attempt / name) for name in ("logs/worker-0.output", "work/worker-0/diary", "plan.json")]


def _connect(path: Path) -> str:
    script = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"
    return f'\n/usr/bin/env python3 -c "{script}" 2>/dev/null && echo connected || echo no socket\n'


def test_job_cannot_read_its_secrets_file_or_log(persons: LocalBench) -> None:
    command = """
    echo first
    cat /proc/self/fd/1 2>/dev/null && echo OPEN
    echo x > /proc/self/fd/1
    ls -d {attempt} 2>/dev/null && echo OPEN
    echo $TOKEN $JOB_CONSOLE_ENDPOINT_TOKEN
    """
    submission = persons.submission(role("sleep 0"), endpoint_token="of the link")
    attempt = persons.config.root / submission.job_id
    command = command.format(attempt=attempt)
    handle = persons.backend.submit(persons.submission(role(command), endpoint_token="of-the-link"))
    wait_until_over(persons.backend, handle)
    lines = [line for line in log_of(persons.backend, handle).splitlines() if "denied" not in line]
    assert lines[0] == "first"
    assert lines[-1] == "of-the-link"
    assert "OPEN" not in lines


def test_jobs_of_different_persons_run_as_distinct_named_users(persons: LocalBench) -> None:
    who = {}
    for person in (Person("alice", 7), Person("bob", 8)):
        handle = persons.backend.submit(
            persons.submission(role("id -u; id -G; whoami; stat -c %U .; umask"), person=person)
        )
        wait_until_over(persons.backend, handle)
        who[person.name] = log_of(persons.backend, handle).split()
    base = persons.config.uid_base
    assert who["alice"] == [str(base + 7), str(base + 7), "alice", "alice", "0077"]
    assert who["bob"] == [str(base + 8), str(base + 8), "bob", "bob", "0077"]


def test_job_gains_no_privileges_from_setuid_programs(persons: LocalBench) -> None:
    command = "grep -E '^(NoNewPrivs|CapEff|CapBnd|CapPrm)' /proc/self/status"
    handle = persons.backend.submit(persons.submission(role(command)))
    wait_until_over(persons.backend, handle)
    fields = dict(line.split() for line in log_of(persons.backend, handle).splitlines())
    assert fields == {"CapPrm:": "0" * 16, "CapEff:": "0" * 16, "CapBnd:": "0" * 16, "NoNewPrivs:": "1"}


def test_job_inherits_no_descriptor_but_its_streams(persons: LocalBench) -> None:
    handle = persons.backend.submit(persons.submission(role("ls /proc/$$/fd; true")))
    wait_until_over(persons.backend, handle)
    assert log_of(persons.backend, handle).split() == ["0", "1", "2"]


def test_replica_has_private_tmp_shm_and_processes(persons: LocalBench) -> None:
    command = """
    echo $PAI_TASK_INDEX > /tmp/mine; echo $PAI_TASK_INDEX > /dev/shm/mine; echo $PAI_TASK_INDEX > mine
    sleep 0.5; cat /tmp/mine /dev/shm/mine mine; ls /proc | grep -c '^[0-9]'; df --output=size -BM /dev/shm
    """
    handle = persons.backend.submit(persons.submission(role(command, replicas=2)))
    wait_until_over(persons.backend, handle)
    for index in (0, 1):
        words = log_of(persons.backend, handle, index=index).split()
        assert words[:3] == [str(index)] * 3
        assert int(words[3]) < 6
        assert words[-1] == "64M"


def test_shown_folder_below_var_tmp_is_host_folder(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as shown:
        Path(shown).chmod(0o777)
        bench = LocalBench(tmp_path)
        bench.backend = LocalBackend(replace(bench.config, show=(Path(shown),)))
        handle = bench.backend.submit(
            bench.submission(role(f"echo mine > /var/tmp/mine; echo kept > {shown}/it"))
        )
        assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
        assert Path(shown, "it").read_text() == "kept\n"
        assert not Path("/var/tmp/mine").exists()
        bench.close()


@pytest.fixture
def somewhere() -> Iterator[Path]:
    """A folder that nobody can own: pytest's lie below one that is the test user's alone."""
    folder = Path(tempfile.mkdtemp(prefix="job-console-test-"))
    yield folder
    shutil.rmtree(folder)


def _as_nobody(folder: Path, command: str, **told: Any) -> dict[str, Any]:
    process = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.jobs.backends.local.nobody",
            str(folder),
            json.dumps({"command": command, **told}),
        ],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def test_rootless_job_reaches_neither_console_nor_home(somewhere: Path) -> None:
    home = somewhere / "home"
    files = {"db.sqlite3": "rows", "keys/django": "key", "run/other": "x"}
    paths = [str(home / name) for name in (*files, "jobs/job0/1/logs/worker-0.output")]
    command = TRY.format(paths=" ".join(paths), pid=os.getpid(), home=home)
    answer = _as_nobody(somewhere, command, files=files)
    if answer["isolation"] != Isolation.NAMESPACES:
        pytest.skip("this kernel gives ordinary users no namespaces")
    lines = answer["log"].splitlines()
    assert lines[-1] == "asked", answer
    assert set(lines[:-1]) == {"shut"}
    assert answer["state"] == State.SUCCEEDED
    assert answer["diary"] == ""


def test_rootless_job_writes_only_to_its_own_folders(somewhere: Path) -> None:
    command = f"""
    for place in /job /tmp /dev/shm {somewhere}/judge; do touch $place/x && echo wrote $place; done
    for place in / /usr /etc /var {CHECKOUT} /proc/sys/kernel; do
      touch $place/x 2>/dev/null && echo WROTE $place
    done
    pwd; id -u
    """
    answer = _as_nobody(somewhere, command)
    if answer["isolation"] != Isolation.NAMESPACES:
        pytest.skip("this kernel gives ordinary users no namespaces")
    places = ["/job", "/tmp", "/dev/shm", f"{somewhere}/judge"]
    uid = "65534" if os.geteuid() == 0 else str(os.geteuid())
    assert answer["log"].splitlines() == [*(f"wrote {place}" for place in places), "/job", uid]


def test_rootless_session_runs_inside_job_view(somewhere: Path) -> None:
    look = f"cat note; id -u; ls -d {somewhere}/home 2>/dev/null; touch /usr/x 2>/dev/null || echo read-only"
    answer = _as_nobody(somewhere, "echo of the job > note; echo up; sleep 2", beside=look)
    if answer["isolation"] != Isolation.NAMESPACES:
        pytest.skip("this kernel gives ordinary users no namespaces")
    uid = "65534" if os.geteuid() == 0 else str(os.geteuid())
    assert answer["said"].splitlines() == ["of the job", uid, "read-only"]


def test_jobs_without_namespaces_run_as_console_user(somewhere: Path) -> None:
    answer = _as_nobody(somewhere, "pwd", settings={"isolation": Isolation.NONE})
    assert answer["isolation"] == Isolation.NONE
    assert answer["log"].strip() == str(somewhere / "home/jobs/job0/1/work/worker-0")


NAMESPACES = """
exec 2>&1
unshare -U true && echo OPEN
python3 - <<'END'
import ctypes, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
print("unshare", libc.unshare(0x10000000), ctypes.get_errno())
print("clone", libc.syscall(56 if "x86_64" in __import__("os").uname() else 220, 0x10000011, 0, 0, 0, 0))
thread = threading.Thread(target=lambda: print("threads", flush=True))
thread.start()
thread.join()
print(subprocess.run(["echo", "processes"], capture_output=True, text=True).stdout.strip())
held = []
try:
    while len(held) < 1000:
        held.append(libc.inotify_init())
        if held[-1] < 0: break
finally:
    print("inotify", len(held) - 1)
END
ulimit -u
echo x > /var/tmp/mine; cat /tmp/mine
echo y > /run/lock/mine; cat /run/lock/mine
"""


def test_job_cannot_create_user_namespace_and_has_private_scratch_folders(persons: LocalBench) -> None:
    handle = persons.backend.submit(persons.submission(role(NAMESPACES)))
    assert wait_until_over(persons.backend, handle).state is State.SUCCEEDED
    lines = log_of(persons.backend, handle).splitlines()
    assert "OPEN" not in lines
    assert {"unshare -1 1", "clone -1", "threads", "processes"} <= set(lines)
    assert lines[-2:] == ["x", "y"]
    assert not Path("/var/tmp/mine").exists()
    assert not Path("/run/lock/mine").exists()


def test_rootless_job_leaves_inotify_and_processes_to_others(somewhere: Path) -> None:
    answer = _as_nobody(somewhere, NAMESPACES, settings={"limits": "watchdog", "pids": 300})
    if answer["isolation"] != Isolation.NAMESPACES:
        pytest.skip("this kernel gives ordinary users no namespaces")
    lines = answer["log"].splitlines()
    assert "OPEN" not in lines, lines
    assert {"unshare -1 1", "clone -1", "threads", "processes"} <= set(lines)
    limit = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    assert f"inotify {limit // 4}" in lines
    assert lines[-3:] == ["300", "x", "y"]
