"""Whoever has no UNIX name does not submit to a cluster that tells people apart, whichever way."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin import site

from jobs import submission
from jobs.admin.clusters import ClusterAdmin
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.messages import problem_message
from jobs.submission import builder
from jobs.submission.checks import preview
from quotas.models import Cluster, Quota, User
from tests.factories import make_cluster, make_quota, make_spec, make_user

pytestmark = pytest.mark.django_db

FILE = json.dumps(
    {
        "jobName": "j",
        "image": "i",
        "taskRoles": [{"name": "r", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 8, "command": "true"}],
    }
)
MADE = submission.JobTarget()


@pytest.fixture
def owner() -> User:
    return make_user("alice", admin=True)


def quota_of(identity: str) -> Quota:
    config = {"identity": identity} if identity else {}
    return make_quota(cluster=make_cluster(backend="slurm", config=config, name="HPC"))


def test_submission_without_unix_name_is_refused_with_hint(owner: User) -> None:
    quota_of("sudo")
    with pytest.raises(Refused) as refused:
        submission.submit(owner, Document(FILE))
    [problem] = refused.value.problems
    said = problem_message(problem)
    assert "HPC" in said
    assert "Ask a console admin" in said
    with pytest.raises(preview.Unreadable) as unreadable:
        preview.of_document(owner, Document(FILE), MADE)
    assert unreadable.value.problems == (problem,)


@pytest.mark.parametrize("identity", ["", "single"])
def test_submission_without_unix_name_works_on_shared_identity_cluster(owner: User, identity: str) -> None:
    quota_of(identity)
    assert submission.submit(owner, Document(FILE)).job.owner == owner


def test_submission_carries_owners_unix_name(owner: User) -> None:
    quota = quota_of("sudo")
    owner.unix_name = "asmith"
    owner.save()
    submission.submit(owner, Document(FILE))
    sent = builder.build_submission(owner, quota, make_spec(), "k-a-1", "a", 1)
    assert sent.person.unix_name == "asmith"


@pytest.mark.parametrize(
    ("identity", "told"),
    [
        ("", "All jobs run as the console's UNIX user"),
        ("sudo", "Each job runs as its owner's UNIX user (People, UNIX name)."),
        ("jwt", "using tokens issued by the console"),
    ],
)
def test_cluster_admin_page_shows_job_identity(identity: str, told: str) -> None:
    cluster = quota_of(identity).cluster
    assert told in ClusterAdmin(Cluster, site).runs_as(cluster)
