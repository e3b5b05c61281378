"""A secret that was put in by every way there is, and is then found by no search of anything.

Each way has a canary of its own, so that a find names the way.  The console is a real one, with a broker,
workers and jobs; what is searched is what lies about: database, broker, files, programs, pages, exports.
"""

from __future__ import annotations

import json
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pytest

from jobs import dialects
from jobs.dialects.document import Document
from jobs.spec import JobSpec, RegistryAuth, Resources, RoleSpec, SecretRef
from tests.scenes import MACHINE, state_of, submit
from tests.stack import Stack, running
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

PRINTING: Final = 'echo "begin $API_TOKEN end"; printenv | sort; while true; do sleep 1; done'
MOST_PAGES: Final = 150
NO_PAGES: Final = ("/sign-out", "/accounts/logout", "/admin/logout", "/live/", "/static/")
NAMES: Final = ("API_TOKEN", "REGISTRY_PASSWORD")
IN_THE_JOB: Final = "JOB_CONSOLE_REPLICA="


class Canaries:
    """One value a way."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def new(self, way: str) -> str:
        """A value for that way, which no text has by chance."""
        return self.of.setdefault(way, f"canary{secrets.token_hex(12)}")

    def found(self, data: bytes | str, besides: tuple[str, ...] = ()) -> list[str]:
        """The ways whose canary is in it."""
        text = data.encode() if isinstance(data, str) else data
        return [way for way, value in self.of.items() if way not in besides and value.encode() in text]


@dataclass
class Scene:
    """A console with canaries in it, and jobs that run with them, by the dialect of their file."""

    stack: Stack
    client: httpx.Client
    canaries: Canaries
    jobs: dict[str, str]
    files: dict[str, str]


def spec(name: str) -> JobSpec:
    """A job that prints what it was confided."""
    small = Resources(cpu_milli=100, memory_mib=64)
    return JobSpec(
        name=name,
        roles=(RoleSpec(name="worker", command=PRINTING, image="busybox", resources=small),),
        secret_env={"API_TOKEN": SecretRef(name="API_TOKEN")},
        registry_auth=RegistryAuth(
            registry="registry.example.org", username="me", password=SecretRef(name="REGISTRY_PASSWORD")
        ),
    )


def file_in(dialect: str, values: Mapping[str, str]) -> str:
    """The job in that dialect, with its secrets in clear, as a person brings it."""
    found = dialects.get(dialect)
    rendered = found.render(spec(f"canary-{dialect}".replace("_", "-")), {}).text
    return found.with_secrets(Document(rendered), values)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with running(MACHINE) as stack, closing(stack.client()) as client:
        canaries = Canaries()
        files, jobs = {}, {}
        for name in dialects.NAMES:
            values = {
                "API_TOKEN": canaries.new(f"file {name}"),
                "REGISTRY_PASSWORD": canaries.new(f"registry {name}"),
            }
            files[name] = file_in(name, values)
        own = canaries.new("saved secret")
        client.post("/settings/secrets", data={"name": "HF_TOKEN", "value": own})
        files["own"] = file_in(
            "dlc", {"API_TOKEN": "$SECRET:HF_TOKEN", "REGISTRY_PASSWORD": "$SECRET:HF_TOKEN"}
        )
        for name, file in files.items():
            if name == "own" or canaries.found(file):
                jobs[name] = submit(client, file)
        _type(client, canaries)
        _keep(stack, client, canaries)
        for job in jobs.values():
            wait_for(lambda job=job: state_of(client, job) == "running", timeout=60)  # type: ignore[misc]
            wait_for(lambda job=job: "begin" in _log(client, job))  # type: ignore[misc]
        yield Scene(stack, client, canaries, jobs, files)


def _type(client: httpx.Client, canaries: Canaries) -> None:
    """What somebody types and does not submit, in every place that takes it."""
    draft = file_in("dlc", dict.fromkeys(NAMES, canaries.new("draft")))
    token = client.headers["X-CSRFToken"]
    saved = client.post("/drafts/save", data={"text": draft, "key": "one"})
    number = re.search(r'name="draft" value="(\d+)"', saved.text)
    assert number is not None
    client.post(
        "/drafts/save", data={"text": draft + " ", "key": "two", "draft": number[1], "draft_version": "1"}
    )
    for address in ("/jobs/check", "/jobs/form/panel", "/jobs/form/sent", "/jobs/convert", "/jobs/mend"):
        client.post(address, data={"text": draft, "to": "aihc", "fix": "all", "panel_tab": "sent"})
    broken = draft.replace("JobSpecs", "JobSpecz")
    client.post(
        "/jobs/new", data={"csrfmiddlewaretoken": token, "text": broken, "key": "three", "do": "submit"}
    )
    headers = {"Accept": "application/json"}
    for address in ("check", "convert"):
        client.post(f"/api/console/v1/{address}", json={"file": draft, "to": "dlc"}, headers=headers)
    client.post("/api/console/v1/jobs", json={"file": broken}, headers=headers)
    nowhere = {"file": draft, "workspace": canaries.new("a place that is none")}
    client.post("/api/console/v1/jobs", json=nowhere, headers=headers)


def _keep(stack: Stack, client: httpx.Client, canaries: Canaries) -> None:
    """What is kept for later: a channel, a template, an asset's login, and code behind one."""
    address = f"https://hooks.slack.com/services/{canaries.new('channel')}"
    client.post("/settings/notifications/new/slack", data={"title": "mine", "url": address})
    text = file_in(
        "dlc", {"API_TOKEN": canaries.new("template"), "REGISTRY_PASSWORD": canaries.new("template")}
    )
    kept = {"name": "with a secret", "text": text, "icon": "bolt", "as_default": "on"}
    client.post("/templates/new", data=kept)
    login = canaries.new("asset login")
    stack.python(
        "from jobs.models import Image\n"
        "from quotas.models import Workspace\n"
        "row = Image(name='private', workspace=Workspace.objects.first(), username='me')\n"
        "row.uri = 'registry.example.org/private:1'\n"
        f"row.encrypt('{login}')\n"
        "row.save()\n"
    )
    repository = f"https://me:{canaries.new('code login')}@git.example.org/x.git"
    code = {
        "DisplayName": "code",
        "JobType": "PyTorchJob",
        "UserCommand": "true",
        "JobSpecs": [{"Type": "Worker", "PodCount": 1, "Image": "busybox"}],
        "CodeSource": {"CodeRepo": repository, "MountPath": "/x"},
    }
    client.post("/api/console/v1/jobs", json={"file": json.dumps(code)})


def _role(client: httpx.Client, job: str) -> str:
    """What its dialect calls the role."""
    return str(client.get(f"/api/console/v1/jobs/{job}/tasks").json()["tasks"][0]["role"])


def _log(client: httpx.Client, job: str) -> str:
    return client.get(f"/api/console/v1/jobs/{job}/logs", params={"role": _role(client, job)}).text


def test_canary_scene_has_a_job_for_every_secret_path(scene: Scene) -> None:
    assert {"dlc", "aihc", "openpai-v2", "kubeflow", "sbatch", "own"} <= set(scene.jobs)


def test_canary_job_logs_contain_their_secret(scene: Scene) -> None:
    for name, job in scene.jobs.items():
        [path] = (scene.stack.home / "jobs" / job / "1").glob("logs/*.output")
        way = "saved secret" if name == "own" else f"file {name}"
        assert way in scene.canaries.found(path.read_bytes())


def test_database_rows_contain_no_secret(scene: Scene) -> None:
    everything = scene.stack.python(
        "from django.db import connection\n"
        "with connection.cursor() as cursor:\n"
        "    for table in connection.introspection.table_names(cursor):\n"
        "        cursor.execute(f'SELECT * FROM {connection.ops.quote_name(table)}')\n"
        "        for row in cursor.fetchall():\n"
        "            print(table, row)\n"
    )
    assert "jobs_draft" in everything
    assert [line for line in everything.splitlines() if scene.canaries.found(line)] == []


def test_redis_contains_no_secret(scene: Scene) -> None:
    everything = scene.stack.python(
        "import redis\n"
        "from django.conf import settings\n"
        "client = redis.Redis.from_url(settings.REDIS_URL)\n"
        "reading = {b'string': client.get, b'hash': client.hgetall, b'set': client.smembers,\n"
        "    b'list': lambda key: client.lrange(key, 0, -1),\n"
        "    b'zset': lambda key: client.zrange(key, 0, -1, withscores=True), b'stream': client.xrange,\n"
        "    b'none': client.get}\n"  # of a key that has expired meanwhile
        "for key in client.scan_iter():\n"
        "    print(key, reading[client.type(key)](key))\n"
    )
    assert everything.strip(), "something is there to be searched"
    assert scene.canaries.found(everything) == []


def test_console_home_files_outside_the_job_contain_no_secret(scene: Scene) -> None:
    leaks = []
    for path in sorted(scene.stack.home.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        found = scene.canaries.found(path.read_bytes())
        if not found:
            continue
        inside = path.relative_to(scene.stack.home).parts
        # What the job itself wrote lies where it wrote it; what it is told, in a file that nobody else reads.
        own = inside[0] == "jobs" and (inside[3] in {"work", "tmp", "logs"} or inside[-1] == "secrets.json")
        if not own or stat.S_IMODE(path.stat().st_mode) & 0o077:
            leaks.append((str(path), found))
    assert leaks == []


def test_process_arguments_and_environments_contain_no_secret(scene: Scene) -> None:
    leaks, searched = [], 0
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            arguments = b"\0".join(part.encode() for part in process.cmdline())
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            searched += 1
            told = scene.canaries.found(arguments)
            if IN_THE_JOB.encode() not in environment:
                told += scene.canaries.found(environment)
            leaks += [(process.pid, way) for way in told]
    assert searched > 5
    assert leaks == []


def test_exports_contain_no_secret(scene: Scene) -> None:
    site = scene.stack.manage("site_export")
    assert scene.canaries.found(site) == []
    for address in ("/audit/export", "/audit/export?format=json", "/reports?format=csv"):
        assert scene.canaries.found(scene.client.get(address).text) == [], address


def test_pages_and_api_responses_contain_no_secret(scene: Scene) -> None:
    """From the first page wherever links lead, those of the API and of what is beside the job pages too."""
    v1 = "/api/console/v1"
    waiting = [
        "/",
        "/jobs/",
        "/drafts/",
        "/templates/",
        "/settings",
        "/settings/secrets",
        "/admin/",
        "/audit",
        "/reports",
    ]
    waiting += [f"{v1}/jobs", f"{v1}/usage", f"{v1}/schema", "/notices/"]
    for job in scene.jobs.values():
        here, role = f"{v1}/jobs/{job}", _role(scene.client, job)
        waiting += [here, f"{here}/tasks", f"{here}/events", f"{here}/endpoints", f"{here}/logs?role={role}"]
        waiting += [f"/jobs/{job}/file?as={name}" for name in dialects.NAMES]
        waiting += [f"/jobs/{job}/logs?role={role}&download=1", f"/jobs/{job}/logs?role={role}&q=canary"]
        waiting += [f"/jobs/new?like={job}", f"/templates/new?job={job}"]
    seen: set[str] = set()
    leaks = []
    while waiting and len(seen) < MOST_PAGES:
        address = waiting.pop(0)
        if address in seen or address.startswith(NO_PAGES) or "/stream" in address:
            continue
        seen.add(address)
        answer = scene.client.get(address)
        # What somebody typed and did not submit is theirs to go on with.
        theirs = address.startswith(("/drafts/", "/jobs/new?draft=", "/templates/new?draft="))
        if found := scene.canaries.found(answer.content, ("draft",) if theirs else ()):
            leaks.append((address, found))
        if "html" in answer.headers.get("Content-Type", ""):
            links = re.findall(r'(?:href|hx-get|data-[a-z-]*url)="(/[^"#]*)', answer.text)
            waiting += [link.replace("&amp;", "&") for link in links if link not in seen]
    assert len(seen) > 100
    assert leaks == []


def test_submission_preview_contains_no_secret(scene: Scene) -> None:
    for file in scene.files.values():
        for address, more in (
            ("/jobs/form/panel", {"panel_tab": "cost"}),
            ("/jobs/form/panel", {"panel_tab": "sent"}),
            ("/jobs/form/sent", {"sent_role": "Worker"}),
        ):
            answer = scene.client.post(address, data={"text": file, **more}, headers={"HX-Request": "true"})
            assert scene.canaries.found(answer.text) == [], address


def test_log_stream_contains_no_secret(scene: Scene) -> None:
    for job in scene.jobs.values():
        got, role = b"", _role(scene.client, job)
        with scene.client.stream("GET", f"/jobs/{job}/stream", params={"log": f"{role}/0"}) as answer:
            for piece in answer.iter_raw():
                got += piece
                if b"PATH" in got:
                    break
        assert b"begin" in got
        assert scene.canaries.found(got) == []


def test_stored_logs_mask_secrets(scene: Scene) -> None:
    job = submit(scene.client, scene.files["dlc"])
    wait_for(lambda: state_of(scene.client, job) == "running" and "begin" in _log(scene.client, job))
    scene.client.post(f"/jobs/{job}/stop")

    def sealed() -> bool:
        rows: Any = scene.stack.python(
            "from jobs.models import LogStream\n"
            f"print(LogStream.objects.filter(attempt__job__public_id='{job}', sealed=True).count())\n"
        )
        return bool(int(rows.split()[-1]))

    wait_for(sealed, timeout=60, interval=0.5)
    kept = b"".join(path.read_bytes() for path in (scene.stack.home / "logs").rglob("*") if path.is_file())
    assert b"begin ****" in kept
    assert scene.canaries.found(kept) == []
