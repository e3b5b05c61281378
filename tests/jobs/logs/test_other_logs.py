"""Logs of jobs that others run: only theirs, only where an admin lets them be read."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from jobs.logs import external_logs
from jobs.models import ExternalJob
from quotas.models import Cluster, Quota, User, Workspace
from tests.factories import make_membership, make_user
from tests.jobs.conftest import Place
from tests.jobs.engine import MemoryEngine
from tests.jobs.scheduling.test_other_jobs import THEIRS, taken

ME = pwd.getpwuid(os.geteuid()).pw_name


@dataclass
class Log:
    """A job of others that writes to `file`, below the folder that is listed."""

    folder: Path
    file: Path
    job: ExternalJob

    def writes_to(self, path: Path | str, user: str = ME) -> ExternalJob:
        ExternalJob.objects.update(output=str(path), user=user)
        self.job.refresh_from_db()
        return self.job


@pytest.fixture
def log(place: Place, engine: MemoryEngine, tmp_path: Path) -> Log:
    folder = tmp_path / "homes"
    (folder / "carol").mkdir(parents=True)
    file = folder / "carol" / "out"
    file.write_bytes(b"first\nlast\n")
    taken(place, engine, THEIRS)
    Cluster.objects.update(config={"logs": [str(folder)]})
    made = Log(folder, file, ExternalJob.objects.get())
    made.writes_to(file)
    return made


def test_external_log_is_read(log: Log) -> None:
    assert external_logs.has_log(log.job)
    assert external_logs.read(log.job) == external_logs.Window(b"first\nlast\n", 0, 11, 11)


def linked(log: Log) -> Path:
    (log.folder / "link").symlink_to(log.file)
    return log.folder / "link"


def below_a_link(log: Log) -> Path:
    (log.folder / "link").symlink_to(log.file.parent)
    return log.folder / "link" / "out"


def pipe(log: Log) -> Path:
    os.mkfifo(log.folder / "pipe")
    return log.folder / "pipe"


def outside(log: Log) -> Path:
    (log.folder.parent / "elsewhere").write_text("secret")
    return log.folder.parent / "elsewhere"


def beside(log: Log) -> Path:
    path = log.folder.with_name("homes-of-others")
    path.write_text("secret")
    return path


@pytest.mark.parametrize(
    "path",
    [
        linked,
        below_a_link,
        pipe,
        outside,
        beside,
        lambda log: f"{log.folder}/../elsewhere",
        lambda log: log.folder,
        lambda log: log.folder / "carol",
        lambda log: log.folder / "none",
        lambda _: "",
        lambda log: f"{log.file}\0",
    ],
)
def test_external_log_at_invalid_path_is_not_read(log: Log, path: Callable[[Log], Path | str]) -> None:
    outside(log)
    log.job.output = str(path(log))
    assert external_logs.read(log.job) is None


@pytest.mark.parametrize("user", ["nobody", "no-such-user", str(os.geteuid() + 1)])
def test_external_log_in_file_of_other_user_is_not_read(log: Log, user: str) -> None:
    assert external_logs.read(log.writes_to(log.file, user)) is None


def test_external_log_of_user_given_by_number_is_read(log: Log) -> None:
    assert external_logs.read(log.writes_to(log.file, str(os.geteuid()))) is not None


def test_external_log_within_console_home_is_not_read(log: Log, settings: LazySettings) -> None:
    settings.CONSOLE_HOME = log.folder / "carol"
    assert external_logs.read(log.job) is None


@pytest.mark.parametrize("listed", [[], "/", None, [7]])
def test_external_log_without_listed_folder_is_missing(log: Log, listed: object) -> None:
    Cluster.objects.update(config={"logs": listed})
    job = ExternalJob.objects.select_related("cluster").get()
    assert not external_logs.has_log(job)
    assert external_logs.read(job) is None


def test_external_log_is_read_in_windows_of_whole_lines(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_logs, "WINDOW", 20)
    text = b"".join(b"line %04d\n" % number for number in range(10))
    log.file.write_bytes(text)
    parts, before = [], None
    while before != 0:
        found = external_logs.read(log.job, before=before)
        assert found is not None
        parts.append(found.data)
        before = found.start
    assert b"".join(reversed(parts)) == text
    parts, after = [], 0
    while after < len(text):
        found = external_logs.read(log.job, after=after)
        assert found is not None
        parts.append(found.data)
        after = found.end
    assert b"".join(parts) == text
    assert all(part.endswith(b"\n") for part in parts)


# --- the page --------------------------------------------------------------------------------------------


def shown(client: Client, person: User, pk: int, **query: str) -> tuple[int, str]:
    client.force_login(person)
    response = client.get(reverse("jobs_others_log", args=[pk]), query)
    return response.status_code, response.content.decode()


def test_external_log_is_visible_to_viewers_of_the_job(client: Client, place: Place, log: Log) -> None:
    stranger = make_user("erin")
    make_membership(user=stranger, workspace=Workspace.objects.create(slug="other", name="Other"))
    admin = User.objects.create_superuser("root")
    for person in (place.owner, admin):
        status, text = shown(client, person, log.job.pk)
        assert status == 200
        assert "first\nlast</pre>" in text
        assert (
            reverse("jobs_others_log", args=[log.job.pk])
            in client.get(reverse("jobs_others")).content.decode()
        )
    assert shown(client, stranger, log.job.pk)[0] == 404
    Quota.objects.all().delete()
    assert shown(client, place.owner, log.job.pk)[0] == 404


def test_external_log_page_hides_cause_of_unreadable_log(client: Client, place: Place, log: Log) -> None:
    log.writes_to(log.file, "nobody")
    status, text = shown(client, place.owner, log.job.pk)
    assert status == 200
    assert "No log available" in text
    assert "first" not in text


def test_external_log_page_shows_hostile_bytes_as_text(client: Client, place: Place, log: Log) -> None:
    log.file.write_bytes(b"<script>\x1b]0;title\x07\x1b[31mred\x1b[0m\x00\xff\xfe\rdone\n")
    text = shown(client, place.owner, log.job.pk)[1]
    assert "done</pre>" in text
    assert "\x1b" not in text
    log.file.write_bytes(b"<script>\xff\x1b[31mred\n")
    assert "&lt;script&gt;\ufffdred</pre>" in shown(client, place.owner, log.job.pk)[1]


def test_external_log_page_without_listed_folder_is_missing_and_unlinked(
    client: Client, place: Place, log: Log
) -> None:
    Cluster.objects.update(config={})
    assert shown(client, place.owner, log.job.pk)[0] == 404
    assert '/log"' not in client.get(reverse("jobs_others")).content.decode()


@pytest.mark.parametrize("number", ["x", "-1", "9" * 30, ""])
def test_external_log_page_invalid_position_shows_end(
    client: Client, place: Place, log: Log, number: str
) -> None:
    assert "last</pre>" in shown(client, place.owner, log.job.pk, before=number, after=number)[1]
