"""`job-console run` in a process of its own, against a console with the real local backend."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from console.home import CHECKOUT
from jobs.assets.uploads import arrivals
from jobs.logs import log_store
from jobs.models import HeldBlob, Job, JobFile, LogStream, Sweep, TemplateUse, TreeUse
from jobs.submission.sweeps import arrays
from quotas.accounts import tokens
from quotas.models import User
from tests.arrays import SCRIPT as SCRIPT_OF_SIX
from tests.arrays import most_at_a_time
from tests.factories import TEMPLATE_FILE, make_template
from tests.waiting import wait_for

pytestmark = pytest.mark.once

SECONDS = 120


@dataclass
class Terminal:
    """Somebody's terminal: a folder to work in, and a token."""

    folder: Path
    environ: dict[str, str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *arguments: str) -> list[str]:
        """It hears Ctrl-C, even where the tests themselves run in the background and don't."""
        return ["env", "--default-signal=INT", sys.executable, "-m", "jobs.client.cli", *arguments]

    def __call__(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """The command in the folder: its exit status, what it printed, and what it said besides."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


def terminal(console: str, person: User, folder: Path, around: Path) -> Terminal:
    """A terminal of the person's, at that console."""
    token = tokens.issue(person, scopes=["read", "submit", "stop"], lifetime=timedelta(days=1))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONSOLE_", "DJANGO"))}
    environ = {
        **kept,
        "HOME": str(around / "home"),
        "XDG_CONFIG_HOME": str(around / "config"),
        "XDG_CACHE_HOME": str(around / "cache"),
        "PYTHONPATH": str(CHECKOUT),
        "JOB_CONSOLE_URL": console,
        "JOB_CONSOLE_TOKEN": token,
        "LC_ALL": "C.UTF-8",
        "NO_PROXY": "127.0.0.1",
    }
    return Terminal(folder, environ)


@pytest.fixture
def call(console: str, person: User, folder: Path, tmp_path: Path) -> Terminal:
    return terminal(console, person, folder, tmp_path)


def job_of(said: str) -> str:
    found = re.search(r" is job ([a-z0-9]{12})", said)
    assert found, said
    return found[1]


@pytest.mark.parametrize("code", [0, 7])
def test_run_exits_with_exit_code_of_job(call: Terminal, code: int) -> None:
    status, out, err = call("run", "--", "sh", "train.sh", str(code))
    assert (status, out) == (code, "hello\n"), err
    assert TreeUse.objects.filter(job__public_id=job_of(err)).exists()


def test_run_exits_with_128_plus_signal_number(call: Terminal) -> None:
    assert call("run", "--", "sh", "-c", "kill -KILL $$")[0] == 128 + signal.SIGKILL


def test_run_sends_no_ignored_files_and_names_likely_secrets(call: Terminal, folder: Path) -> None:
    (folder / ".jobignore").write_text("data/\n*.log\n!keep.log\n")
    (folder / "data").mkdir()
    for name in ("data/large", "x.log", "keep.log", ".env"):
        (folder / name).write_text("x")
    status, out, err = call("run", "--", "ls", "-A")
    assert (status, out.split()) == (0, [".env", ".jobignore", "keep.log", "train.sh", "word.txt"])
    assert "look like secrets" in err
    assert "  .env" in err


FILE = """\
{"DisplayName": "hello", "JobType": "PyTorchJob", "UserCommand": "%s",
 "JobSpecs": [{"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}]}
"""
SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=by-hand --ntasks=1
echo "$SLURM_JOB_NAME from a file"
"""


def test_submit_sends_job_file_unchanged(call: Terminal, folder: Path) -> None:
    (folder / "job.sh").write_text(SCRIPT)
    status, out, err = call("submit", "job.sh", "--detach")
    job = job_of(err)
    assert (status, out, "by-hand is job" in err) == (0, f"{job}\n", True), err
    kept = Job.objects.get(public_id=job)
    assert (kept.dialect, JobFile.objects.get(job=kept).text) == ("sbatch", SCRIPT)
    assert call("stop", job)[0] == 0


def test_submit_reads_job_file_from_standard_input_and_follows_job(call: Terminal) -> None:
    status, out, err = call("submit", "-", stdin=FILE % "echo hello; exit 3")
    assert (status, out) == (3, "hello\n"), err


def test_submit_of_array_creates_sweep(call: Terminal) -> None:
    status, out, err = call("submit", "-", stdin=f"{SCRIPT_OF_SIX}[ $SLURM_ARRAY_TASK_ID != 5 ]\n")
    assert (status, out) == (1, ""), err
    sweep = Sweep.objects.get()
    assert f"array is sweep {sweep.public_id}: http" in err
    assert "6 jobs, at most 2 at a time" in err
    jobs = [run.job for run in sweep.runs.select_related("job").order_by("number")]
    assert [(job.name, str(job.state)) for job in jobs] == [
        (f"array-{index}", "FAILED" if index == 5 else "SUCCEEDED") for index in range(6)
    ]
    assert all(f"{job.name} ({job.public_id}) · {job.state}" in err for job in jobs)
    streams = [LogStream.objects.get(attempt__job=job, role="main", index=0) for job in jobs]
    written = [log_store.read(stream, 0, 1 << 20).data.decode() for stream in streams]
    number = arrays.number_of(sweep.public_id)
    assert [log.splitlines()[0] for log in written] == [
        f"task {index} of 6 of {number}" for index in range(6)
    ]
    assert most_at_a_time(written) <= 2


def test_submit_of_random_search_creates_sweep_with_objective(call: Terminal) -> None:
    search = ("--param", "env.LR = uniform(0, 1)", "--trials", "2", "--objective", "min val_loss")
    more = ("--early-stop", "9 1", "--at-once", "1", "--json")
    file = FILE % "true"
    assert call("submit", "-", "--trials", "2", stdin=file)[0] == 2
    status, out, err = call("submit", "-", *search, *more, stdin=file)
    assert status == 0, err
    made = json.loads(out)
    sweep = Sweep.objects.get(public_id=made["id"])
    assert (sweep.objective, sweep.goal, sweep.stop_after, sweep.stop_jobs) == ("val_loss", "min", 9, 1)
    assert (sweep.at_once, sweep.runs.count(), [*made["runs"][0]["values"]]) == (1, 2, ["env.LR"])
    assert "2 jobs, at most 1 at a time" in err


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "told"),
    [
        (("nowhere.json",), "", 2, "nowhere.json: No such file"),
        (("-",), '{"jobName": 7}', 125, "jobName"),
        (("-", "--dialect", "latin"), "{}", 2, "latin"),
        (("-", "--cluster", "nowhere"), FILE % "true", 125, "nowhere"),
    ],
)
def test_submit_failure_reports_reason_and_creates_no_job(
    call: Terminal, arguments: tuple[str, ...], stdin: str, status: int, told: str
) -> None:
    ended, _out, err = call("submit", *arguments, stdin=stdin)
    assert (ended, told in err) == (status, True), err
    assert not Job.objects.exists()


def test_run_like_reuses_settings_of_another_job(call: Terminal, folder: Path) -> None:
    status, out, err = call("run", "--cpus", "0.5", "--env", "WORD=one", "--detach", "--", "true")
    job = job_of(err)
    assert (status, out) == (0, f"{job}\n")
    (folder / "new.txt").write_text("new")
    status, out, err = call(
        "run", "--like", job, "--env", "MORE=two", "--", "sh", "-c", "echo $WORD $MORE; ls"
    )
    assert (status, out.splitlines()) == (0, ["one two", "new.txt", "train.sh", "word.txt"]), err
    assert Job.objects.get(public_id=job_of(err)).origin == Job.objects.get(public_id=job)


def test_run_template_of_user_accepts_answers(call: Terminal, person: User) -> None:
    asked = {"name": "lr", "kind": "number", "fills": ["env.LR"], "default": "0.1"}
    text = TEMPLATE_FILE.replace('"Image": "torch:1", ', "")
    own = make_template(person, text=text, parameters=[asked]).public_id
    command = ("--no-code", "--", "sh", "-c", "echo $LR")
    status, out, err = call("run", "--template", own, "--set", "lr=0.5", *command)
    assert (status, out) == (0, "0.5\n"), err
    assert TemplateUse.objects.get(job__public_id=job_of(err)).number == 1
    assert call("run", "--set", "lr=0.5", *command)[0] == 2
    status, _out, err = call("run", "--template", own, "--set", "speed=9", *command)
    assert (status, "lr" in err) == (125, True)
    status, _out, err = call("run", "--template", "nonsense", *command)
    assert (status, own in err, "helloworld" in err) == (2, True, True)


def test_cli_list_status_stop_and_logs_work_on_a_job(call: Terminal) -> None:
    status, out, err = call("run", "--detach", "--", "sleep", "600")
    job = job_of(err)
    assert job in call("list")[1]
    assert call("list", "--json")[1].startswith("[{")
    assert call("status", job)[1].splitlines()[0].endswith(f"({job})")
    assert call("stop", job)[0] == 0
    assert call("logs", "-f", job)[0] != 0
    status, out, err = call("keep", job)
    assert (status, out, err[:24]) == (0, "", "The files are kept until")
    status, out, err = call("run", "--", "echo", "once more")
    assert (status, out) == (0, "once more\n")
    status, out, again = call("again", job_of(err))
    assert (status, out) == (0, "once more\n"), again
    assert call("logs", job_of(err))[:2] == (0, "once more\n")


def test_hold_and_release_work_on_waiting_job(call: Terminal, person: User) -> None:
    first = job_of(call("run", "--detach", "--no-code", "--", "sleep", "600")[2])
    job = job_of(call("run", "--after", first, "--detach", "--no-code", "--", "true")[2])
    status, _out, err = call("hold", job, "--reason", "the data are moving")
    assert (status, f"Held by {person}: the data are moving." in err) == (0, True), err
    assert call("hold", job)[0] == 125, "it is held already"
    assert call("release", job)[0] == 0
    assert call("stop", first)[0] == 0


def test_job_name_refers_to_newest_job(call: Terminal) -> None:
    first = job_of(call("run", "--name", "fast", "--no-code", "--", "printf", "50%%\\r100%%\\n")[2])
    logs = subprocess.run(
        call.command("logs", "fast"), cwd=call.folder, env=call.environ, capture_output=True, check=True
    )
    assert (logs.stdout, logs.stderr) == (b"50%\r100%\n", b"")
    second = job_of(call("run", "--name", "fast", "--no-code", "--detach", "--", "sleep", "600")[2])
    status, out, err = call("status", "fast")
    assert (status, out.splitlines()[0]) == (0, f"fast ({second})")
    assert err == f"2 jobs are called fast; the newest is {second}.\n"
    assert call("stop", "fast")[0] == 0
    header, *rows = call("list")[1].splitlines()
    assert header.split() == ["ID", "STATE", "CREATED", "NAME", "REASON"]
    assert [row.split()[0] for row in rows] == [second, first]
    assert call("logs", "-f", second)[0] != 0


def test_cli_error_exits_with_status_distinct_from_jobs(call: Terminal) -> None:
    status, _out, err = call("status", "nonsense")
    assert (status, "No job with ID or name nonsense" in err) == (125, True)
    status, _out, err = call("run", "--cluster", "nowhere", "--", "true")
    assert (status, "nowhere" in err) == (125, True)
    assert call("run", "--env", "nonsense", "--", "true")[0] == 2


def test_login_stores_token_readable_only_by_owner(call: Terminal, console: str, tmp_path: Path) -> None:
    token = call.environ.pop("JOB_CONSOLE_TOKEN")
    assert "job-console login" in call("list")[2]
    assert call("login", console, stdin="jc_0123456789_wrong\n")[0] == 125
    status, _out, err = call("login", console, stdin=f"{token}\n")
    assert status == 0, err
    kept = tmp_path / "config" / "job-console" / "logins.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert call("list")[0] == 0
    kept.chmod(0o644)
    assert "chmod 600" in call("list")[2]


def test_killed_upload_resumes_at_received_bytes(call: Terminal, person: User) -> None:
    data = os.urandom(150 << 20)
    (call.folder / "weights.bin").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    process = call.start("run", "--", "sha256sum", "weights.bin")
    wait_for(lambda: arrivals.received_bytes(person, digest), SECONDS, interval=0.002)
    process.kill()
    process.communicate()
    assert not HeldBlob.objects.filter(blob__sha256=digest).exists()
    there = arrivals.received_bytes(person, digest)
    assert there > 0
    status, out, err = call("run", "--", "sha256sum", "weights.bin")
    assert (status, out.split()) == (0, [digest, "weights.bin"]), err


class Cable:
    """What lies between a terminal and its console, and can be cut."""

    def __init__(self, console: str) -> None:
        self._far = ("127.0.0.1", int(console.rpartition(":")[2]))
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._near = self._listener.getsockname()
        self.url = f"http://127.0.0.1:{self._near[1]}"
        self._serve()

    def _serve(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, far = listener.accept()[0], socket.create_connection(self._far)
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    @staticmethod
    def _pump(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        for end in (self._listener, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._ends.clear()

    def reconnect(self) -> None:
        self._listener = socket.create_server(self._near)
        self._serve()


def rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it says from here to its end; `communicate` would miss what was read ahead of a line."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process, ThreadPoolExecutor(2) as readers:
        out, err = readers.submit(process.stdout.read), readers.submit(process.stderr.read)
        try:
            process.wait(SECONDS)
        finally:
            process.kill()
    return out.result(), err.result()


def test_run_survives_console_outage_without_losing_log(
    console: str, person: User, folder: Path, tmp_path: Path
) -> None:
    loop = "for n in range(200):\n    print(n, flush=True)\n    time.sleep(0.05)\n"
    (folder / "count.py").write_text(f"import time\n{loop}raise SystemExit(3)\n")
    cable = Cable(console)
    process = terminal(cable.url, person, folder, tmp_path).start("run", "--", "python3", "count.py")
    assert process.stdout is not None
    assert process.stderr is not None
    first = [process.stdout.readline() for _ in range(20)]
    cable.cut()
    said = ""
    while "is not responding" not in said:
        said += process.stderr.readline()
    cable.reconnect()
    out, err = rest(process)
    cable.cut()
    assert [*first, *out.splitlines(keepends=True)] == [f"{n}\n" for n in range(200)]
    assert (process.returncode, "is responding again" in err) == (3, True), err


class Tty:
    """A real terminal around the command."""

    def __init__(self, call: Terminal, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self.said = ""

        def own() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            call.command(*arguments),
            cwd=call.folder,
            env=call.environ,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=own,  # noqa: PLW1509 there are no threads yet that matter
        )
        os.close(slave)

    def until(self, text: str) -> None:
        deadline = time.monotonic() + SECONDS
        while text not in self.said:
            assert time.monotonic() < deadline, self.said
            if select.select([self._master], [], [], 0.2)[0]:
                self.said += os.read(self._master, 65536).decode(errors="replace")

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> int:
        try:
            while True:
                self.said += os.read(self._master, 65536).decode(errors="replace")
        except OSError:
            os.close(self._master)
        return self.process.wait(SECONDS)


def test_run_ctrl_c_prompts_and_stops_job(call: Terminal) -> None:
    tty = Tty(call, "run", "--", "sh", "-c", "echo begun; sleep 600")
    tty.until("begun")
    tty.press("\x03")
    tty.until("Stop the job")
    tty.press("s\n")
    assert tty.close() != 0
    assert Job.objects.get(public_id=job_of(tty.said)).state == "STOPPED"


def test_run_second_ctrl_c_leaves_job_running(call: Terminal) -> None:
    tty = Tty(call, "run", "--", "sh", "-c", "echo begun; sleep 600")
    tty.until("begun")
    tty.press("\x03")
    tty.until("Stop the job")
    tty.until("> ")  # a signal that comes while readline begins is seen with the next key
    tty.press("\x03")
    assert tty.close() == 130
    job = job_of(tty.said)
    assert f"job-console logs -f {job}" in tty.said
    wait_for(lambda: Job.objects.get(public_id=job).state == "RUNNING", SECONDS)  # its log may come first
    call("stop", job)
    call("logs", "-f", job)


def test_run_ctrl_c_without_terminal_leaves_job_running(call: Terminal) -> None:
    process = call.start("run", "--", "sh", "-c", "echo begun; sleep 600")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    job = job_of(err)
    wait_for(lambda: Job.objects.get(public_id=job).state == "RUNNING", SECONDS)  # its log may come first
    call("stop", job)
    call("logs", "-f", job)
