"""The whole console as a person starts it: `python -m console.run` in a folder and on a port of its own.

Shared by the tests that look from outside: browser, kill and bench.  Nothing is replaced: a real
broker, real workers, real jobs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx
import psutil

from console.home import CHECKOUT
from console.run.child import read_record
from tests import prepared
from tests.ports import free_port
from tests.postgres import drop_database, fresh_database
from tests.waiting import wait_for

START_SECONDS: Final = 180.0  # on a machine that does much else
STOP_SECONDS: Final = 60.0
ADMIN: Final = "admin"
OPERATOR: Final = "operators-token"
AS_OPERATOR: Final = {"Authorization": f"Bearer {OPERATOR}"}


class Stack:
    """One console; `start` and `stop` may be called again and again.

    `environ` is added to the environment of everything it starts.  `home` is short, because the path of a
    Unix socket is.  `checkout` has its programs; another one than this has other tables, and makes them.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, checkout: Path = CHECKOUT) -> None:
        self.checkout = checkout
        self.home = Path(tempfile.mkdtemp(prefix="jc-"))
        self.port = free_port()
        self.ssh_port = free_port()
        self.password = secrets.token_urlsafe(12)
        scheme = "https" if (environ or {}).get("CONSOLE_TLS") == "auto" else "http"
        self.base_url = f"{scheme}://127.0.0.1:{self.port}"
        inherited = {name: value for name, value in os.environ.items() if not _ours(name)}
        self.environ = {
            **inherited,
            "CONSOLE_HOME": str(self.home),
            "CONSOLE_ADMIN_PASSWORD": self.password,
            "PORT": str(self.port),
            "CONSOLE_SSH_PORT": str(self.ssh_port),
            "PYTHONUNBUFFERED": "1",
            "CONSOLE_METRICS_TOKEN": OPERATOR,
            "CONSOLE_TRUST_EVERYBODY": "1",  # several people, mostly without TLS
            **(environ or {}),
        }
        if url := os.environ.get("DATABASE_URL"):
            name = f"stack_{self.port}_{secrets.token_hex(4)}"
            template = prepared.template(url) if checkout == CHECKOUT else "template1"
            self.environ["DATABASE_URL"] = fresh_database(url, name, template)
        self.directory = checkout
        self.run_command = [sys.executable, "-m", "console.run"]
        self.manage_command = [sys.executable, "manage.py"]
        self._process: subprocess.Popen[bytes] | None = None
        # Certificates, which nobody shows here, are not read.
        self._http = httpx.Client(timeout=5, trust_env=False, verify=False, headers={"Connection": "close"})
        if checkout == CHECKOUT:
            prepared.copy_home(self.home)

    def use(self, checkout: Path) -> None:
        """Have the next start take the programs of another checkout."""
        self.checkout = self.directory = checkout

    # --- start and stop ----------------------------------------------------------------------------------

    def start(self, *, healthy: bool = True) -> None:
        """Start it and wait until pages are served, or (`healthy`) until every part answers."""
        with (self.home / "console.out").open("ab") as output:
            self._process = subprocess.Popen(
                self.run_command,
                cwd=self.directory,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait_until("/healthz" if healthy else "/readyz")

    def wait_until(self, path: str, timeout: float = START_SECONDS) -> None:
        """Wait for 200 at `path`; what the console printed is in the error when it never comes."""
        try:
            wait_for(lambda: self._ended() or self._answers(path), timeout, interval=0.1)
        except AssertionError:
            raise AssertionError(f"{path} does not answer:\n{self.printed()}") from None
        if self._ended():
            raise AssertionError(f"the console has ended:\n{self.printed()}")

    def stop(self) -> None:
        """Ctrl-C; running jobs go on."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            programs = [f"{each.pid} {each.status()} {each.cmdline()}" for each in self.processes()]
            self.crash()
            raise AssertionError("\n".join(["it does not end:", *programs, self.printed()])) from None
        self._process = None

    def crash(self) -> None:
        """SIGKILL to what `make run` became; its programs are not told."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            self._process = None

    def remove(self) -> None:
        """End the console and every job of it, and delete its folder."""
        try:
            self.stop()
        finally:
            self._http.close()
            for process in self.processes():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            shutil.rmtree(self.home, ignore_errors=True)
            if url := self.environ.get("DATABASE_URL"):
                drop_database(url)

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _answers(self, path: str) -> bool:
        """Asked ten times a second."""
        try:
            answer = self._http.get(self.base_url + path)
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    def printed(self) -> str:
        """What it told the terminal, and the end of each program's log."""
        parts = [self.home / "console.out", *sorted((self.home / "run").glob("*.log"))]
        return "\n".join(f"--- {path.name}\n{_tail(path)}" for path in parts)

    # --- its processes -----------------------------------------------------------------------------------

    def pid(self, program: str) -> int:
        """The process of `program` (web, worker-control, worker-logs, beat, watch, redis) that runs now."""
        return wait_for(lambda: self._pid(program), START_SECONDS)

    def _pid(self, program: str) -> int:
        record = read_record(self.home / "run" / f"{program}.process")
        return record.pid if record and psutil.pid_exists(record.pid) else 0

    def kill(self, program: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send `number` to `program` and what it forked; gives back the pid it had."""
        pid = self.pid(program)
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        return pid

    def processes(self) -> list[psutil.Process]:
        """Every process of the console and of its jobs: those whose folder or environment is ours."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            if Path(process.cwd()).is_relative_to(self.home):
                return True
            return process.environ().get("CONSOLE_HOME") == str(self.home)
        except (psutil.Error, OSError):
            return False

    # --- its inside --------------------------------------------------------------------------------------

    def manage(self, *arguments: str, stdin: str = "", timeout: float = 120) -> str:
        """Run `manage.py` with `arguments`; what it printed.  Raises AssertionError when it fails.

        `timeout` is in seconds.
        """
        done = subprocess.run(
            [*self.manage_command, *arguments],
            cwd=self.directory,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        """Run `code` inside Django, beside the console; what it printed."""
        return self.manage("shell", "--no-imports", "-v0", stdin=code)

    def client(self, user: str = ADMIN, password: str | None = None) -> httpx.Client:
        """An HTTP client that has signed in; its `X-CSRFToken` is set."""
        client = httpx.Client(
            base_url=self.base_url, timeout=30, follow_redirects=True, trust_env=False, verify=False
        )
        page = client.get("/sign-in")
        fields = {
            "csrfmiddlewaretoken": _csrf_of(page.text),
            "username": user,
            "password": self.password if password is None else password,
        }
        answer = client.post("/sign-in", data=fields, headers={"Referer": self.base_url})
        assert {"session", "__Host-session"} & set(client.cookies), answer.text
        client.headers["X-CSRFToken"] = _csrf_of(client.get("/jobs/new").text)
        client.headers["Referer"] = self.base_url
        return client


@contextmanager
def running(environ: Mapping[str, str] | None = None, checkout: Path = CHECKOUT) -> Iterator[Stack]:
    """A console for the length of a `with`, gone without a trace afterwards."""
    stack = Stack(environ, checkout)
    try:
        stack.start()
        yield stack
    finally:
        stack.remove()


def _ours(name: str) -> bool:
    return name.startswith(("CONSOLE_", "PYTEST_")) or name in {"PORT", "REDIS_URL", "DJANGO_SETTINGS_MODULE"}


def _tail(path: Path, most: int = 4000) -> str:
    if not path.is_file():
        return ""
    return path.read_bytes()[-most:].decode(errors="replace")


def _csrf_of(html: str) -> str:
    return html.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
