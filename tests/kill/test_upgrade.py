"""A console of the last release is upgraded under running jobs, and rolled back: `docs/upgrading.md` by rows.

The earlier release is its own code, started by its own command; database, broker, jobs and clients are real.
Access keys are not among what is valid as before: that release had none.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from console.home import CHECKOUT
from jobs.client.job_stream import parse_events
from tests import releases
from tests.postgres import drop_database, fresh_database
from tests.stack import AS_OPERATOR, Stack
from tests.waiting import wait_for

pytestmark = [pytest.mark.kill, pytest.mark.sample]

CPUS: Final = 4
DATABASE: Final = "db.sqlite3"
ADD_KEY: Final = """
from jobs.access import sshkeys
from quotas.models import User
sshkeys.add(User.objects.get(username="admin"), {text!r})
"""
ADD_USER: Final = "from quotas.models import User; User.objects.create_user('newcomer')"
COUNT_USERS: Final = "from quotas.models import User; print(User.objects.filter(username='newcomer').count())"


@pytest.fixture(autouse=True)
def _nothing_armed() -> None:
    """Start no console with fault points, which the other kill tests share."""


@dataclass
class Site:
    """A console whose programs are exchanged, the folder that its jobs write to, and its jobs by name."""

    stack: Stack
    judge: Path
    key: Path
    token: str
    jobs: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, token: str = "", **arguments: Any) -> httpx.Response:
        """Ask the native API, with the token that the earlier release gave or another one."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        url = f"{self.stack.base_url}/api/console/v1/{path}"
        with httpx.Client(timeout=30, trust_env=False) as client:
            return client.request(method, url, headers=headers, **arguments)

    def get(self, path: str) -> httpx.Response:
        """Ask as an operator."""
        return httpx.get(f"{self.stack.base_url}/{path}", headers=AS_OPERATOR, trust_env=False)

    def upload(self, content: bytes) -> None:
        """Upload a file of code."""
        answer = self.ask("PUT", f"uploads/blobs/{hashlib.sha256(content).hexdigest()}", content=content)
        assert answer.status_code == 201, answer.text

    def submit(self, name: str, cpus: int, command: str) -> None:
        """Submit a job that records its start."""
        command = f"echo {name} >> {self.judge}/starts; {command}"
        role = {"name": "w", "taskNumber": 1, "cpuNumber": cpus, "memoryMB": 64, "gpuNumber": 0}
        file = json.dumps({"jobName": name, "image": "any", "taskRoles": [role | {"command": command}]})
        answer = self.ask("POST", "jobs", json={"file": file})
        assert answer.status_code == 201, answer.text
        self.jobs[name] = str(answer.json()["id"])

    def write_until_end(self, name: str) -> str:
        """Return a command that writes numbered lines until `end` is called for the job of that name."""
        count = "i=$((i+1)); echo line $i; sleep 0.05"
        return f"i=0; until [ -e {self.judge}/end-{name} ]; do {count}; done; echo last"

    def end(self, name: str) -> None:
        """Let the job of that name end."""
        (self.judge / f"end-{name}").touch()

    def starts(self) -> list[str]:
        """Return the names of all jobs that were started, in that order."""
        return (self.judge / "starts").read_text().split()

    def state(self, name: str) -> str:
        """Return a job's state, or the status of the answer."""
        answer = self.ask("GET", f"jobs/{self.jobs[name]}")
        return str(answer.json()["state"]) if answer.is_success else str(answer.status_code)

    def wait(self, state: str, *names: str) -> None:
        """Wait until these jobs have that state."""
        wait_for(lambda: {self.state(name) for name in names} == {state}, interval=0.1)

    def log(self, name: str) -> str:
        """Return the whole log of a job."""
        params = {"role": "w", "index": "0", "limit": "1000000"}
        return self.ask("GET", f"jobs/{self.jobs[name]}/logs", params=params).text

    def wait_for_logs(self, *names: str) -> None:
        """Wait until the logs of these jobs are whole."""
        for name in names:
            wait_for(lambda name=name: is_whole(self.log(name)), interval=0.1)  # type: ignore[misc]

    def enter(self, name: str, command: str) -> subprocess.Popen[str]:
        """Run a command in a job by SSH."""
        options = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-F", "none")
        target = ("-i", str(self.key), "-p", str(self.stack.ssh_port), f"{self.jobs[name]}.w-0@127.0.0.1")
        return subprocess.Popen(
            ["ssh", *options, *target, command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def copy(self, to: Path) -> None:
        """Copy database and keys of the stopped console, as the page says."""
        home = self.stack.home
        shutil.copytree(home / "keys", to / "keys")
        if url := self.stack.environ.get("DATABASE_URL"):
            subprocess.run(["pg_dump", "--format=custom", f"--file={to}/dump", url], check=True)
        else:
            for path in home.glob(f"{DATABASE}*"):
                shutil.copy2(path, to)

    def put_back(self, copy: Path) -> None:
        """Put the copies in place of what the later release left, as the page says."""
        home = self.stack.home
        shutil.rmtree(home / "keys")
        shutil.copytree(copy / "keys", home / "keys")
        if url := self.stack.environ.get("DATABASE_URL"):
            drop_database(url)
            parts = urlsplit(url)
            fresh_database(parts._replace(path="/postgres").geturl(), parts.path.removeprefix("/"))
            subprocess.run(["pg_restore", f"--dbname={url}", str(copy / "dump")], check=True)
        else:
            for path in home.glob(f"{DATABASE}*"):
                path.unlink()
            for path in copy.glob(f"{DATABASE}*"):
                shutil.copy2(path, home)


class Viewer(threading.Thread):
    """A client of a job's stream, which comes back after each loss with the last event's ID."""

    def __init__(self, site: Site, job: str) -> None:
        super().__init__(daemon=True)
        self.text = ""
        self.connections = 0
        self.has_ended = False
        self._site = site
        self._path = f"/api/console/v1/jobs/{site.jobs[job]}/stream"
        self._last = ""

    def run(self) -> None:
        """Follow the log until it is whole."""
        while not self.has_ended:
            with suppress(httpx.HTTPError, httpx.StreamError):
                self._follow()
            time.sleep(0.2)  # as every client that comes back

    def _follow(self) -> None:
        headers = {"Authorization": f"Bearer {self._site.token}", "Last-Event-ID": self._last}
        url = self._site.stack.base_url + self._path
        with (
            httpx.Client(trust_env=False, timeout=20) as client,
            client.stream("GET", url, params={"log": "w/0"}, headers=headers) as response,
        ):
            response.raise_for_status()
            self.connections += 1
            for event in parse_events(response.iter_raw()):
                if event.name == "log":
                    self.text += event.data
                    self._last = event.identity
                elif event.name == "end":
                    self.has_ended = True
                    return


def files_of(folder: Path) -> dict[str, str]:
    """Return the digest of every file in a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def is_whole(log: str) -> bool:
    """Tell whether a log has each line once, in order, and the last one."""
    count = log.count("\n")
    return log == "".join([*(f"line {number}\n" for number in range(1, count)), "last\n"])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A console of the last release."""
    judge = Path(tempfile.mkdtemp(prefix="jc-judge-", dir="/var/tmp"))
    judge.chmod(0o777)
    key = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    local = {"engine": "none", "allow_plain": True, "cpu_milli": 1000 * CPUS, "show": [str(judge)]}
    environ = {"CONSOLE_LOCAL": json.dumps(local), "CONSOLE_INVENTORY_SECONDS": "3"}
    stack = Stack(environ, releases.unpack(releases.LAST, tmp_path / "earlier"))
    try:
        stack.start()
        stack.python(ADD_KEY.format(text=key.with_suffix(".pub").read_text()))
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        yield Site(stack, judge, key, token)
    finally:
        stack.remove()
        shutil.rmtree(judge, ignore_errors=True)


def test_console_is_upgraded_and_rolled_back_under_running_jobs(site: Site, tmp_path: Path) -> None:
    earlier, copy = site.stack.checkout, tmp_path / "copy"
    fill(site)
    with closing(site.stack.client()) as browser:
        viewer = Viewer(site, "steady")
        viewer.start()
        wait_for(lambda: "line 10\n" in viewer.text)
        stop_and_copy(site, copy)

        stored = {name: files_of(site.stack.home / name) for name in ("logs", "uploads", "jobs")}
        assert all(stored.values())
        site.stack.use(CHECKOUT)
        site.stack.start()
        check_upgraded(site, stored)
        assert browser.get("/jobs/").url.path == "/jobs/"  # sign-ins stay
        wait_for(lambda: viewer.connections > 1)  # open streams connect again
        use_queue(site)

        newer = change(site)
        uploads = files_of(site.stack.home / "uploads")
        site.stack.stop()
        site.put_back(copy)
        site.stack.use(earlier)
        site.stack.start()
        check_rolled_back(site)
        check_unknown_job(site, browser)
        assert site.ask("GET", "jobs", token=newer).status_code == 401
        assert files_of(site.stack.home / "uploads") == uploads

    site.end("steady")
    site.wait("SUCCEEDED", "steady")
    wait_for(lambda: viewer.has_ended)
    assert viewer.connections > 2
    assert is_whole(viewer.text)
    assert site.log("steady") == viewer.text


def fill(site: Site) -> None:
    """Have an ended job, an upload, two running jobs and a queue."""
    site.submit("done", 1, "echo last")
    site.wait("SUCCEEDED", "done")
    site.wait_for_logs("done")
    site.upload(b"code" * 1000)
    for name, cpus in (("steady", 1), ("brief", 2)):
        site.submit(name, cpus, site.write_until_end(name))
        site.wait("RUNNING", name)
    site.submit("first", 2, site.write_until_end("first"))
    site.submit("second", 2, "echo last")
    site.submit("third", 2, site.write_until_end("third"))
    site.submit("held", 3, "echo last")
    assert site.ask("POST", f"jobs/{site.jobs['held']}/hold").is_success
    site.wait("QUEUED", "first", "second", "third", "held")


def stop_and_copy(site: Site, copy: Path) -> None:
    """Stop the console, with which SSH sessions end, and make the copy that is the way back."""
    session = site.enter("steady", f"touch {site.judge}/session; exec sleep 600")
    wait_for((site.judge / "session").exists)
    site.stack.stop()
    session.communicate(timeout=60)
    assert session.returncode
    site.copy(copy)


def check_upgraded(site: Site, stored: dict[str, dict[str, str]]) -> None:
    """Jobs go on; what is stored is untouched; tokens and SSH keys are valid."""
    assert site.get("readyz").status_code == 200
    assert site.get("healthz").json()["version"]
    site.wait("RUNNING", "steady", "brief")
    site.wait("QUEUED", "first", "second", "third", "held")
    for name in ("logs", "uploads"):
        assert stored[name].items() <= files_of(site.stack.home / name).items()
    folder = site.stack.home / "jobs" / site.jobs["done"]
    assert files_of(folder) == {
        path: digest for path, digest in stored["jobs"].items() if path.startswith(f"{folder}/")
    }
    assert site.log("done") == "last\n"
    assert site.enter("steady", "echo inside").communicate(timeout=60)[0] == "inside\n"


def use_queue(site: Site) -> None:
    """Jobs of the earlier release end, and its queue goes on in order."""
    site.end("brief")
    site.wait("SUCCEEDED", "brief")
    site.wait("RUNNING", "first")
    site.end("first")
    site.wait("SUCCEEDED", "first", "second")
    site.wait("RUNNING", "third")
    site.wait_for_logs("brief", "first", "second")
    assert site.starts() == ["done", "steady", "brief", "first", "second", "third"]


def change(site: Site) -> str:
    """Make what the copy does not have: a running job, an upload, a user, and a token, which is returned."""
    site.submit("since", 1, f"{site.write_until_end('since')}; echo since-over >> {site.judge}/starts")
    site.wait("RUNNING", "since")
    site.upload(b"since" * 1000)
    site.stack.python(ADD_USER)
    return str(json.loads(site.stack.manage("issue_token", "admin"))["token"])


def check_rolled_back(site: Site) -> None:
    """Jobs that run are adopted, ends are found with their logs, and nothing is started twice."""
    site.wait("RUNNING", "steady", "third")
    site.wait("SUCCEEDED", "done", "brief", "first", "second")
    site.wait_for_logs("brief", "first", "second")
    assert site.state("held") == "QUEUED"
    assert site.starts() == ["done", "steady", "brief", "first", "second", "third", "since"]
    assert site.stack.python(COUNT_USERS).strip() == "0"


def check_unknown_job(site: Site, browser: httpx.Client) -> None:
    """A job submitted since is unknown, is from elsewhere, and holds its resources until it ends."""
    assert site.state("since") == "404"
    assert site.ask("POST", f"jobs/{site.jobs['held']}/release").is_success
    site.end("third")
    site.wait("SUCCEEDED", "third")
    wait_for(lambda: "from elsewhere: 1 CPU" in " ".join(browser.get("/nodes/").text.split()), interval=0.2)
    site.end("since")
    site.wait("SUCCEEDED", "held")
    assert site.starts()[-2:] == ["since-over", "held"]
