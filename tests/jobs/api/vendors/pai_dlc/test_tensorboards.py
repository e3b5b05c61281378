"""TensorBoards of PAI-DLC: jobs from the built-in template, by owner, members, strangers and admins."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from jobs.models import Attempt, Job, JobFile, Replica, TemplateUse, Visibility
from jobs.states import State
from quotas.models import Node, User
from tests.factories import make_job
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc

PATH = "tensorboards"


def create(user: User, job: Job, **more: Any) -> str:
    """Create a TensorBoard over the job; its id."""
    return str(Dlc(user).post(PATH, {"JobId": f"dlc{job.public_id}", **more})["TensorboardId"])


def job_of(name: str) -> Job:
    """The first job of a TensorBoard."""
    return Job.objects.get(public_id=name.removeprefix("tensorboard-"))


def end(name: str, state: State = State.STOPPED) -> None:
    """What the worker does: every job of the TensorBoard has ended."""
    first = job_of(name)
    for job in (first, *first.descendants.all()):
        Job.objects.filter(pk=job.pk).update(state=state, ended_at=timezone.now(), phase="Ended")
        Attempt.objects.filter(job=job).update(live=False, ended_at=timezone.now())


def run(job: Job) -> None:
    """What the worker does: the job runs."""
    Job.objects.filter(pk=job.pk).update(state=State.RUNNING, started_at=timezone.now())


def ids(answer: dict[str, Any]) -> list[str]:
    return [each["TensorboardId"] for each in answer["Tensorboards"]]


def test_created_tensorboard_shows_the_folders_of_a_job(people: People, job: Job) -> None:
    made = Dlc(people.owner).post(
        PATH,
        {
            "JobId": f"dlc{job.public_id}",
            "DisplayName": "curves",
            "WorkspaceId": "vision",
            "QuotaId": "default",
            "Cpu": 3,
            "Memory": 5,
            "MaxRunningTimeMinutes": 90,
            "Priority": "4",
            "Accessibility": "PUBLIC",
            "SummaryPath": "/mnt/data/summary",
            "TensorboardSpec": {"EcsType": "", "VpcId": "vpc-1"},
        },
    )
    assert made["JobId"] == f"dlc{job.public_id}"
    assert made["RequestId"]
    row = job_of(made["TensorboardId"])
    assert (row.owner, row.quota, row.name, row.priority) == (people.owner, people.quota, "curves", 4)
    assert row.visibility == Visibility.PUBLIC
    assert TemplateUse.objects.get(job=row).shipped == "tensorboard"
    spec = JobFile.objects.get(job=row).spec
    assert [(each.uri, each.read_only) for each in spec.mounts] == [(f"job://{job.public_id}/main/0", True)]
    assert spec.time_limit_s == 5400
    assert (spec.roles[0].resources.cpu_milli, spec.roles[0].resources.memory_mib) == (3000, 5120)
    assert "tensorboard --logdir" in spec.roles[0].command


def test_tensorboard_of_several_sources_mounts_all(people: People, job: Job) -> None:
    other = make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota)
    made = Dlc(people.owner).post(
        PATH,
        {
            "SourceId": f"dlc{job.public_id}",
            "SourceType": "job",
            "TensorboardDataSources": [
                {"SourceType": "dlcjob", "Id": f"dlc{other.public_id}"},
                {"SourceType": "dlcjob", "Id": f"dlc{job.public_id}"},
                {"SourceType": "datasource", "Id": "d-metrics"},
                {"SourceType": "datasource", "Uri": "oss://bucket.oss-cn-x.aliyuncs.com/logs/"},
            ],
        },
    )
    found = Dlc(people.owner).get(f"{PATH}/{made['TensorboardId']}")
    assert [(each["SourceType"], each["Id"]) for each in found["TensorboardDataSources"]] == [
        ("dlcjob", f"dlc{other.public_id}"),
        ("dlcjob", f"dlc{job.public_id}"),
        ("datasource", "d-metrics"),
        ("datasource", ""),
    ]
    assert found["JobId"] in {f"dlc{job.public_id}", f"dlc{other.public_id}"}


def test_tensorboard_is_installed_where_no_node_has_it(people: People, job: Job) -> None:
    Node.objects.create(
        cluster=people.quota.cluster, name="n", cpu_milli=64_000, memory_mib=65536, programs=[]
    )
    lacking = JobFile.objects.get(job=job_of(create(people.owner, job))).spec
    assert lacking.requirements.packages == ("tensorboard",)
    Node.objects.update(programs=["tensorboard"])
    present = JobFile.objects.get(job=job_of(create(people.owner, job))).spec
    assert present.requirements.packages == ()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"DisplayName": "no spaces here"},
        {"DisplayName": "n" * 257},
        {"JobId": "x", "Cpu": 0},
        {"JobId": "x", "Memory": "much"},
        {"JobId": "x", "Priority": 10},
        {"TensorboardDataSources": [{"SourceType": "bucket"}]},
        {"TensorboardDataSources": [5]},
        {"TensorboardSpec": []},
        {"JobId": 7},
    ],
)
def test_tensorboard_with_wrong_values_is_refused(people: People, job: Job, body: dict[str, Any]) -> None:
    if body.get("DisplayName"):
        body = {**body, "JobId": f"dlc{job.public_id}"}
    assert Dlc(people.owner).refusal("post", PATH, body) == (400, "InvalidParameter")


def test_tensorboard_over_unknown_or_foreign_jobs_is_refused(people: People, job: Job) -> None:
    body = {"JobId": f"dlc{job.public_id}"}
    assert Dlc(people.owner).refusal("post", PATH, {"JobId": "dlcnobody12345"}) == (404, "ResourceNotFound")
    assert Dlc(people.stranger).refusal("post", PATH, body) == (404, "ResourceNotFound")
    assert Dlc(people.member).refusal("post", PATH, body) == (403, "NoPermission")
    assert Dlc(people.manager).refusal("post", PATH, body) == (403, "NoPermission")
    assert Dlc(people.owner, ["read"]).refusal("post", PATH, body) == (403, "NoPermission")
    Job.objects.filter(pk=job.pk).update(started_at=None)
    assert Dlc(people.owner).refusal("post", PATH, body) == (409, "OperationConflict")


def test_tensorboard_data_sources_of_the_first_release_are_unsupported(people: People, job: Job) -> None:
    body = {"JobId": f"dlc{job.public_id}", "DataSources": [{"DataSourceId": "d"}]}
    assert Dlc(people.owner).refusal("post", PATH, body) == (400, "UnsupportedOperation")


def test_tensorboard_is_answered_with_its_address(people: People, job: Job) -> None:
    name = create(people.owner, job)
    found = Dlc(people.owner).get(f"{PATH}/{name}", JodId="dlcx", WorkspaceId="vision")
    opening = f"http://testserver/jobs/{job_of(name).public_id}/opening?to=tensorboard"
    assert found["TensorboardUrl"] == opening
    assert found["TensorboardId"] == name
    assert (found["Status"], found["Duration"], found["MaxRunningTimeMinutes"]) == ("Creating", "0", 480)
    assert (found["SourceId"], found["SourceType"]) == (f"dlc{job.public_id}", "job")
    assert (found["UserId"], found["WorkspaceId"], found["QuotaId"]) == ("olga", "vision", "default")
    end(name, State.FAILED)
    found = Dlc(people.owner).get(f"{PATH}/{name}")
    assert (found["Status"], found["TensorboardUrl"]) == ("Failed", "")
    assert found["GmtFinishTime"].endswith("Z")


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (State.QUEUED, "Creating"),
        (State.PENDING, "Creating"),
        (State.RUNNING, "Running"),
        (State.SUCCEEDED, "Succeeded"),
        (State.STOPPED, "Stopped"),
    ],
)
def test_tensorboards_are_listed_by_status(people: People, job: Job, state: State, status: str) -> None:
    name = create(people.owner, job)
    Job.objects.filter(pk=job_of(name).pk).update(state=state)
    dlc = Dlc(people.owner)
    assert ids(dlc.get(PATH, Status=status)) == [name]
    assert ids(dlc.get(PATH, Status="Failed")) == []
    assert dlc.get(PATH)["Tensorboards"][0]["Status"] == status


def test_tensorboards_are_filtered_sorted_and_paged(people: People, job: Job) -> None:
    other = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    first = create(people.owner, job, DisplayName="b")
    second = create(people.owner, other, DisplayName="a", Accessibility="PUBLIC")
    dlc = Dlc(people.owner)

    def found(**query: Any) -> list[str]:
        return ids(dlc.get(PATH, **query))

    assert found() == [second, first]
    assert found(Order="asc") == [first, second]
    assert found(SortBy="DisplayName", Order="asc") == [second, first]
    assert found(PageSize=1, PageNumber=2) == [first]
    assert found(DisplayName="A") == [second]
    assert found(JobId=f"dlc{job.public_id}") == [first]
    assert found(SourceId=f"dlc{other.public_id}", SourceType="job") == [second]
    assert found(JobId="x") == []
    assert found(TensorboardId=first) == [first]
    assert found(WorkspaceId="vision", QuotaId="default", UserId="olga", Username="olga") == [second, first]
    assert found(WorkspaceId="speech") == []
    assert found(Accessibility="PUBLIC") == [second]
    assert found(StartTime="2999-01-01T00:00:00Z") == []
    assert found(EndTime="2000-01-01T00:00:00Z") == []
    assert found(ShowOwn="True", Verbose="true", PaymentType="Free") == [second, first]
    Job.objects.filter(pk=job_of(first).pk).update(created_at=timezone.now() - timedelta(days=8))
    assert found() == [second]
    assert found(StartTime="2000-01-01T00:00:00Z") == [second, first]


def test_tensorboards_of_others_are_listed_without_details(people: People, job: Job) -> None:
    name = create(people.owner, job)
    for user in (people.owner, people.manager, people.admin):
        assert Dlc(user).get(PATH)["Tensorboards"][0]["JobId"] == f"dlc{job.public_id}"
    for dlc in (Dlc(people.member), Dlc(people.manager, ["read"])):
        (found,) = dlc.get(PATH)["Tensorboards"]
        assert found["TensorboardId"] == name
        assert not {"JobId", "SourceId", "TensorboardDataSources"} & set(found)
        assert ids(dlc.get(PATH, JobId=f"dlc{job.public_id}")) == []
        assert ids(dlc.get(PATH, ShowOwn=True)) == []
    assert Dlc(people.stranger).get(PATH)["Tensorboards"] == []


def test_tensorboards_take_a_constant_number_of_queries(
    people: People, job: Job, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _each in range(4):
        create(people.owner, job)
    dlc = Dlc(people.owner)
    with django_assert_max_num_queries(9):
        assert dlc.get(PATH)["TotalCount"] == 4


def test_stopped_tensorboard_starts_again_under_its_id(people: People, job: Job) -> None:
    dlc, name = Dlc(people.owner), create(people.owner, job)
    assert dlc.put(f"{PATH}/{name}/stop", WorkspaceId="vision")["TensorboardId"] == name
    assert dlc.get(f"{PATH}/{name}")["Status"] == "Stopped"
    for _twice in range(2):
        assert dlc.put(f"{PATH}/{name}/start")["TensorboardId"] == name
    again = Job.objects.get(origin=job_of(name))
    found = dlc.get(f"{PATH}/{name}")
    assert (found["Status"], found["JobId"]) == ("Creating", f"dlc{job.public_id}")
    assert again.public_id in found["TensorboardUrl"]
    assert ids(dlc.get(PATH)) == [name]
    assert ids(dlc.get(PATH, Status="Creating")) == [name]
    assert ids(dlc.get(PATH, Status="Stopped")) == []
    assert dlc.refusal("get", f"{PATH}/tensorboard-{again.public_id}") == (404, "ResourceNotFound")
    end(name)
    dlc.put(f"{PATH}/{name}/start")
    assert Job.objects.filter(origin=job_of(name)).count() == 2


def test_deleted_tensorboard_is_gone_with_all_its_jobs(people: People, job: Job) -> None:
    dlc, name = Dlc(people.owner), create(people.owner, job)
    assert dlc.refusal("delete", f"{PATH}/{name}") == (409, "OperationConflict")
    end(name)
    dlc.put(f"{PATH}/{name}/start")
    assert dlc.refusal("delete", f"{PATH}/{name}") == (409, "OperationConflict")
    end(name)
    assert dlc.delete(f"{PATH}/{name}")["TensorboardId"] == name
    assert dlc.refusal("get", f"{PATH}/{name}") == (404, "ResourceNotFound")
    assert not Job.objects.visible_to(people.owner).filter(from_template__shipped="tensorboard").exists()


def test_running_tensorboard_is_extended_and_shared(people: People, job: Job) -> None:
    dlc, name = Dlc(people.owner), create(people.owner, job)
    path = f"{PATH}/{name}"
    assert dlc.refusal("put", path, MaxRunningTimeMinutes=600) == (409, "OperationConflict")
    run(job_of(name))
    assert dlc.put(path, MaxRunningTimeMinutes=600, Accessibility="PUBLIC")["TensorboardId"] == name
    assert Attempt.objects.get(job=job_of(name)).extended_s == 7200
    assert job_of(name).is_public
    dlc.put(path, MaxRunningTimeMinutes=600)
    assert dlc.refusal("put", path, MaxRunningTimeMinutes=60) == (409, "OperationConflict")


def test_priority_of_tensorboard_is_changed_by_admins_alone(people: People, job: Job) -> None:
    name = create(people.owner, job)
    path = f"{PATH}/{name}"
    assert Dlc(people.owner).refusal("put", path, Priority="5") == (403, "NoPermission")
    Dlc(people.admin).put(path, Priority="5")
    assert job_of(name).priority == 5


CHANGES = [("put", ""), ("put", "/start"), ("put", "/stop"), ("delete", "")]


@pytest.mark.parametrize(("method", "suffix"), CHANGES)
def test_tensorboard_is_changed_by_those_who_control_it(
    people: People, job: Job, method: str, suffix: str
) -> None:
    name = create(people.owner, job)
    path = f"{PATH}/{name}{suffix}"
    assert Dlc(people.member).refusal(method, path) == (403, "NoPermission")
    assert Dlc(people.stranger).refusal(method, path) == (404, "ResourceNotFound")
    assert Dlc(people.owner, ["read"]).refusal(method, path) == (403, "NoPermission")
    assert Dlc(people.manager, ["read", "submit", "stop"]).refusal(method, path) == (403, "NoPermission")
    if suffix == "/start":
        assert Dlc(people.manager).refusal(method, path) == (403, "NoPermission")
    else:
        end(name)
        assert Dlc(people.admin).send(method, path).status_code == 200


def test_tensorboard_is_read_by_those_who_read_the_job(people: People, job: Job) -> None:
    name = create(people.owner, job)
    statuses = {
        user.username: Dlc(user).send("get", f"{PATH}/{name}").status_code
        for user in (people.owner, people.member, people.manager, people.stranger, people.admin)
    }
    assert statuses == {"olga": 200, "mei": 403, "otto": 200, "sam": 404, "root": 200}


@pytest.mark.parametrize("name", ["x", "tensorboard-", "tensorboard-nobody12345", "dlc"])
@pytest.mark.parametrize(("method", "suffix"), [("get", ""), *CHANGES])
def test_unknown_tensorboard_is_not_found(people: People, name: str, method: str, suffix: str) -> None:
    assert Dlc(people.owner).refusal(method, f"{PATH}/{name}{suffix}") == (404, "ResourceNotFound")


def test_other_job_is_no_tensorboard(people: People, job: Job) -> None:
    path = f"{PATH}/tensorboard-{job.public_id}"
    assert Dlc(people.owner).refusal("get", path) == (404, "ResourceNotFound")
    assert Dlc(people.owner).refusal("delete", path) == (404, "ResourceNotFound")


def test_shared_url_is_unsupported(people: People, job: Job) -> None:
    path = f"{PATH}/{create(people.owner, job)}/sharedurl"
    assert Dlc(people.owner).refusal("get", path, ExpireTimeSeconds=60) == (400, "UnsupportedOperation")
    assert Replica.objects.filter(attempt__job=job).exists()
