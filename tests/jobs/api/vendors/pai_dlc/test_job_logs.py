"""GetPodLogs, GetJobEvents, GetPodEvents, and the ids of pods."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.utils import timezone

from jobs.lifecycle import transitions
from jobs.logs import tail
from jobs.models import Attempt, Event, Job, LogChunk, LogStream, Replica
from jobs.spec import PodContainer, RoleSpec
from jobs.states import State
from quotas.accounts import tokens
from tests.factories import make_job, make_replica, make_spec, replica_of
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc


@pytest.fixture
def job(people: People) -> Job:
    spec = make_spec(roles=(RoleSpec(name="Worker", command="w", replicas=2),))
    return make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec)


def write(replica: Replica, content: bytes) -> LogStream:
    """Let the replica have written that, in a log that is stored."""
    stream = LogStream.objects.get(
        attempt=replica.attempt, run=replica.run, role=replica.role, index=replica.index
    )
    name = storages["logs"].save(f"{stream.pk}/0", ContentFile(content))
    LogChunk.objects.create(stream=stream, offset=0, length=len(content), storage_name=name)
    stream.sealed, stream.size, stream.state = True, len(content), LogStream.State.COMPLETE
    stream.save()
    return stream


def pod(job: Job, index: int = 0) -> str:
    return f"jobs/dlc{job.public_id}/pods/dlc{job.public_id}-worker-{index}"


def logs(people: People, job: Job, **query: Any) -> list[str]:
    found: list[str] = Dlc(people.owner).get(f"{pod(job)}/logs", **query)["Logs"]
    return found


def test_pod_logs_are_lines_of_that_pod(people: People, job: Job) -> None:
    write(replica_of(job, "Worker", 0), b"one\r\ntwo\nhalf")
    write(replica_of(job, "Worker", 1), "zwölf\n".encode())
    assert logs(people, job) == ["one", "two", "half"]
    answer = Dlc(people.owner).get(f"{pod(job, 1)}/logs")
    assert answer["Logs"] == ["zwölf"]
    assert answer["PodId"] == f"dlc{job.public_id}-worker-1"
    assert answer["ContainerInfo"]["MainContainer"] == answer["Containers"][0]


def test_pod_logs_are_the_last_lines(people: People, job: Job) -> None:
    write(replica_of(job, "Worker"), b"".join(b"line %d\n" % number for number in range(20_000)))
    assert logs(people, job, MaxLines=2) == ["line 19998", "line 19999"]
    assert len(logs(people, job)) == 2000
    assert len(logs(people, job, DownloadToFile="True")) == 20_000
    assert logs(people, job, DownloadToFile="true")[0] == "line 0"


def test_pod_logs_have_notice_for_bytes_that_a_cap_left_out(people: People, job: Job) -> None:
    head, rest = b"head\n" * 10, b"tail\n" * 10
    stream = write(replica_of(job, "Worker"), head)
    name = storages["logs"].save(f"{stream.pk}/1000", ContentFile(rest))
    LogChunk.objects.create(stream=stream, offset=1000, length=len(rest), storage_name=name)
    stream.cut_from, stream.cut_to, stream.size = len(head), 1000, 1000 + len(rest)
    stream.state = LogStream.State.TRUNCATED
    stream.save()
    found = logs(people, job)
    assert found[:10] == ["head"] * 10
    assert found[-10:] == ["tail"] * 10
    assert "950 bytes were left out here" in "".join(found)


def test_pod_logs_name_containers_and_are_those_of_the_chosen_ones(people: People) -> None:
    role = RoleSpec(
        name="Worker",
        command="w",
        init_containers=(PodContainer(name="fetch", command=("sh",)),),
        sidecars=(PodContainer(name="side", command=("sh",)),),
    )
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=make_spec(roles=(role,)))
    write(replica_of(job, "Worker"), b"[fetch] one\ntwo\n[side] three\n[other] four\n")
    answer = Dlc(people.owner).get(f"{pod(job)}/logs")
    assert answer["Containers"] == ["main", "fetch", "side"]
    assert answer["ContainerInfo"] == {"MainContainer": "main", "SidecarContainers": ["side"]}
    assert answer["Logs"] == ["[fetch] one", "two", "[side] three", "[other] four"]
    assert logs(people, job, Containers="side,fetch") == ["one", "three"]
    assert logs(people, job, Containers="main") == ["two", "[other] four"]


def test_pod_logs_without_log_are_empty(people: People, job: Job) -> None:
    assert logs(people, job) == []
    LogStream.objects.all().delete()
    assert logs(people, job) == []


def test_pod_logs_of_time_when_pod_did_not_run_are_empty(people: People, job: Job) -> None:
    replica = replica_of(job, "Worker")
    write(replica, b"one\n")
    now = timezone.now()
    begin, end = now - timedelta(hours=2), now - timedelta(hours=1)
    Replica.objects.filter(pk=replica.pk).update(started_at=begin, ended_at=end)

    def text(hours: float) -> str:
        return (now - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")

    assert logs(people, job, StartTime=text(1.5)) == ["one"]
    assert logs(people, job, StartTime=text(0.5)) == []
    assert logs(people, job, EndTime=text(3)) == []
    assert logs(people, job, StartTime=text(3), EndTime=text(1.5)) == ["one"]


def test_pod_logs_of_live_pod_mask_secrets(
    people: People, job: Job, settings: LazySettings, tmp_path: Path
) -> None:
    settings.CONSOLE_SHARED_FOLDER = tmp_path
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "log").write_text("my hunter22 leaks\nlast line of the log\n" + "x\n" * 100)
    replica = replica_of(job, "Worker")
    replica.attempt.confided = _encrypted(["hunter22"])
    replica.attempt.save()
    LogStream.objects.filter(attempt=replica.attempt, index=0).update(live_path="log")
    text = "\n".join(logs(people, job))
    assert "leaks" in text
    assert "hunter22" not in text


def _encrypted(values: list[str]) -> str:
    import json  # noqa: PLC0415

    from quotas import encryption  # noqa: PLC0415

    return encryption.encrypt(json.dumps(values))


def test_pod_logs_by_uid_are_those_of_an_earlier_attempt(people: People, job: Job) -> None:
    write(replica_of(job, "Worker"), b"first\n")
    second = Attempt.objects.create(job=job, number=2, key="second")
    Job.objects.filter(pk=job.pk).update(attempt_number=2)
    write(make_replica(second, "Worker", 0, run=1), b"second\n")
    pods = Dlc(people.owner).get(f"jobs/dlc{job.public_id}")["Pods"]
    uid = next(each for each in pods if each["PodId"].endswith("-0"))["HistoryPods"][0]["PodUid"]
    assert logs(people, job) == ["second"]
    answer = Dlc(people.owner).get(f"{pod(job)}/logs", PodUid=uid)
    assert (answer["Logs"], answer["PodUid"]) == (["first"], uid)
    missing = Dlc(people.owner).refusal("get", f"{pod(job)}/logs", PodUid="0" * 36)
    assert missing == (404, "ResourceNotFound")


@pytest.mark.parametrize("pod_id", ["x", "dlc-worker-0", "dlc{id}-worker-9", "dlc{id}-Worker-0", "dlc{id}"])
def test_pod_that_is_none_is_not_found(people: People, job: Job, pod_id: str) -> None:
    name = pod_id.format(id=job.public_id)
    for what in ("logs", "events"):
        path = f"jobs/dlc{job.public_id}/pods/{name}/{what}"
        assert Dlc(people.owner).refusal("get", path) == (404, "ResourceNotFound")


def test_pod_of_another_job_is_not_found(people: People, job: Job) -> None:
    other = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=_spec_of(job))
    path = f"jobs/dlc{job.public_id}/pods/dlc{other.public_id}-worker-0/logs"
    assert Dlc(people.owner).refusal("get", path) == (404, "ResourceNotFound")


def _spec_of(job: Job) -> Any:
    return job.file.spec


def test_job_events_are_plain_strings_in_order(people: People, job: Job) -> None:
    transitions.record(job, Event.Kind.SUBMITTED, actor=people.owner)
    transitions.record(job, Event.Kind.STARTED)
    transitions.record(job, Event.Kind.ENDED, params={"state": "FAILED", "reason": "exit_code"})
    answer = Dlc(people.owner).get(f"jobs/dlc{job.public_id}/events")
    assert answer["JobId"] == f"dlc{job.public_id}"
    texts = [event.partition(" ")[2] for event in answer["Events"]]
    assert texts == ["Submitted (olga)", "Started", "Ended: Failed: A replica failed."]
    assert len(Dlc(people.owner).get(f"jobs/dlc{job.public_id}/events", MaxEventsNum=1)["Events"]) == 1
    later = "2999-01-01T00:00:00Z"
    assert Dlc(people.owner).get(f"jobs/dlc{job.public_id}/events", StartTime=later)["Events"] == []
    assert len(Dlc(people.owner).get(f"jobs/dlc{job.public_id}/events", EndTime=later)["Events"]) == 3


def test_pod_events_are_those_of_that_pod(people: People, job: Job) -> None:
    for index in (0, 1):
        where = {"role": "Worker", "index": index, "node": f"node{index}"}
        transitions.record(job, Event.Kind.REPLICA_STARTED, params=where)
    answer = Dlc(people.owner).get(f"{pod(job, 1)}/events")
    assert [event.partition(" ")[2] for event in answer["Events"]] == ["Worker-1 started on node1"]
    uid = answer["PodUid"]
    assert Dlc(people.owner).get(f"{pod(job, 1)}/events", PodUid=uid)["Events"] == answer["Events"]


@pytest.mark.parametrize("suffix", ["events", "pods/dlc{id}-worker-0/events", "pods/dlc{id}-worker-0/logs"])
def test_logs_and_events_are_for_those_who_may_read(people: People, job: Job, suffix: str) -> None:
    path = f"jobs/dlc{job.public_id}/{suffix.format(id=job.public_id)}"
    assert Dlc(people.stranger).refusal("get", path) == (404, "ResourceNotFound")
    assert Dlc(people.member).refusal("get", path) == (403, "NoPermission")
    assert Dlc(people.manager, {"read"}).refusal("get", path) == (403, "NoPermission")
    assert Dlc(people.owner, set(tokens.SCOPES) - {"read"}).refusal("get", path) == (403, "NoPermission")
    for reader in (people.owner, people.manager, people.admin):
        assert Dlc(reader).get(path)["JobId"] == f"dlc{job.public_id}"


def test_read_lines_reaches_as_far_as_needed(people: People, job: Job) -> None:
    stream = write(replica_of(job, "Worker"), io.BytesIO(b"x" * 100_000 + b"\n" + b"y\n").getvalue())
    assert tail.read_lines(stream, 1) == ["y"]
    assert [len(line) for line in tail.read_lines(stream, 5)] == [100_000, 1]
