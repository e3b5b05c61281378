"""The target that a quota is, and what the rules tell about it when a job is submitted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs import submission
from jobs.dialects.document import Document
from jobs.form import rules
from jobs.form.target import JobTarget, add_datasets, describe_target, find_kinds
from jobs.models import Dataset, JobFile, Vpc
from jobs.spec import Mount
from quotas.admission import Price
from quotas.models import Cluster, GpuType, Kind, Quota, Role, Source, SpotPrice, User
from tests.factories import make_cluster, make_quota, make_spec, make_user, make_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return make_user("alice")


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster("local", region="cn-wulanchabu")


def quota(alice: User, cluster: Cluster, **columns: Any) -> Quota:
    return make_quota(make_workspace(members={alice: Role.DEVELOPER}), cluster, **columns)


def dlc(**more: Any) -> str:
    worker = {"Type": "Worker", "Image": "i", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}
    job = {"DisplayName": "j", "JobType": "XGBoostJob", "JobSpecs": [worker], "UserCommand": "true"}
    return json.dumps({**job, **more})


def test_target_describes_quota(alice: User, cluster: Cluster) -> None:
    there = quota(alice, cluster, name="Q", kind=Kind.LINGJUN, source=Source.PUBLIC)
    found = describe_target(there)
    assert (found.quota, found.region, found.lingjun, found.is_quota) == ("Q", "cn-wulanchabu", True, False)
    assert (found.most_gpus, found.most_cpu_milli) == (2, 8000)
    assert found.kinds == {Kind.LINGJUN}
    make_quota(there.workspace, cluster)
    assert find_kinds(there) == describe_target(there, kinds=find_kinds(there)).kinds == set(Kind)


def test_target_kinds_are_those_accepting_jobs_in_workspace(alice: User, cluster: Cluster) -> None:
    there = quota(alice, cluster)
    make_quota(there.workspace, cluster, kind=Kind.LINGJUN, accepts_jobs=False)
    make_quota(there.workspace, make_cluster("off", enabled=False), kind=Kind.LINGJUN)
    make_quota(None, cluster, kind=Kind.LINGJUN)
    assert find_kinds(there) == {Kind.GENERAL}


def test_target_prices_are_current_under_gpu_type_names(alice: User, cluster: Cluster) -> None:
    GpuType.objects.create(name="A100", aliases=["NVIDIA-A100"])
    SpotPrice.objects.create(cluster=cluster, gpu_type="A100", market_micro=3, price_micro=2)
    found = describe_target(quota(alice, cluster, source=Source.PREEMPTIBLE))
    assert found.prices == {"A100": Price(3, 2)}
    assert found.gpu_names["nvidia-a100"] == "A100"


def test_rule_violation_is_reported_and_stored_with_job(alice: User, cluster: Cluster) -> None:
    quota(alice, cluster, kind=Kind.LINGJUN)
    submitted = submission.submit(alice, Document(dlc()))
    told = {note.code: note.params for note in submitted.notes}
    assert told["lingjun_frameworks"]["field"] == "framework"
    kept = [note["code"] for note in JobFile.objects.get(job=submitted.job).notes]
    assert "lingjun_frameworks" in kept


def test_lingjun_rules_stay_silent_on_general_quota(alice: User, cluster: Cluster) -> None:
    quota(alice, cluster)
    assert "lingjun_frameworks" not in {note.code for note in submission.submit(alice, Document(dlc())).notes}


def test_job_of_other_vendor_is_not_judged_by_dlc_rules(alice: User, cluster: Cluster) -> None:
    quota(alice, cluster, kind=Kind.LINGJUN, source=Source.PUBLIC)
    text = json.dumps({"jobName": "j", "image": "i", "taskRoles": [{"name": "main", "command": "true"}]})
    codes = {note.code for note in submission.submit(alice, Document(text)).notes}
    assert not codes & {"quota_for_quota", "priority_for_quota", "lingjun_frameworks"}


def test_automatic_fault_tolerance_acts_and_reserves_nothing(alice: User, cluster: Cluster) -> None:
    quota(alice, cluster)
    settings = {"EnableErrorMonitoringInAIMaster": True}
    submitted = submission.submit(alice, Document(dlc(JobType="PyTorchJob", Settings=settings)))
    assert not {note.code for note in submitted.notes} & {"aimaster_not_here", "no_effect"}
    assert submitted.job.tolerates_faults
    asked = submission.parts_of(JobFile.objects.get(job=submitted.job).spec)
    assert [(part.count, part.each.cpu_milli) for part in asked] == [(1, 1000)]


def test_empty_target_is_general_quota() -> None:
    assert (JobTarget().is_quota, JobTarget().lingjun) == (True, False)


def test_target_describes_datasets_of_mounts(alice: User, cluster: Cluster) -> None:
    there = quota(alice, cluster)
    vpc = Vpc.objects.create(key="v-1", name="V", vpc_id="vpc-7", workspace=there.workspace)
    Dataset.objects.create(key="d-1", name="Own", workspace=there.workspace, source="cpfs", vpc=vpc)
    Dataset.objects.create(key="d-2", name="Open", source="extreme_nas")
    Dataset.objects.create(key="d-3", name="Others", workspace=make_workspace(), vpc=vpc)
    mounts = (Mount(id="d-1@v2"), Mount(id="d-2"), Mount(id="d-3"), Mount(uri="oss://b/"))
    found = add_datasets(JobTarget(), alice, make_spec(mounts=mounts))
    assert (dict(found.vpc_of), set(found.public_data)) == ({"d-1": "vpc-7"}, {"d-2"})
    assert set(found.granted_data) == {"d-2"}
    said = [
        each.statement
        for each in rules.rulings(make_spec(mounts=mounts), found)
        if each.code == "storage_grant"
    ]
    assert [(each.field, each.at) for each in said] == [("mounts[].uri", (3,)), ("mounts[].id", (1,))]
    codes = {
        ruling.code for ruling in rules.rulings(make_spec(mounts=mounts), found) if ruling.statement.broken
    }
    assert codes == {"cpfs_needs_vpc", "public_data_read_only"}
