"""Rules of the vendors' pages: a note where the job runs here, a problem with its source at the vendor."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from jobs import submission
from jobs.backends import registry
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.form.target import describe_target
from jobs.messages.findings import Finding, of_problem
from jobs.models import Job
from jobs.submission.checks import findings, page_rules
from jobs.submission.checks.page_rules import PAGE_RULES, SOURCES, Subject, Vendor
from quotas.models import Kind, Quota, Source
from tests.factories import make_quota
from tests.jobs.conftest import Place

ROLE: Final = {"Type": "Worker", "PodCount": 1, "Image": "i", "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}
DLC: Final[dict[str, Any]] = {
    "DisplayName": "job",
    "JobType": "PyTorchJob",
    "JobSpecs": [ROLE],
    "UserCommand": "true",
    "JobMaxRunningTimeMinutes": 60,
}
TASK: Final = {
    "name": "main",
    "taskNumber": 1,
    "cpuNumber": 1,
    "memoryMB": 512,
    "gpuNumber": 0,
    "command": "true",
}
SCM: Final[dict[str, Any]] = {"jobName": "job", "image": "i", "taskRoles": [TASK]}
AIHC: Final[dict[str, Any]] = {
    "name": "job",
    "queue": "default",
    "jobType": "PyTorchJob",
    "command": "true",
    "jobSpec": {"image": "i", "replicas": 1, "resources": [{"name": "cpu", "quantity": 1}]},
}
BID: Final = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.45}


def settings(**values: object) -> dict[str, Any]:
    """Return a DLC job with advanced settings."""
    return {**DLC, "Settings": {"AdvancedSettings": values}}


AGAINST: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "lingjun_frameworks": ("lingjun", {**DLC, "JobType": "XGBoostJob"}),
    "variables_most": ("default", {**DLC, "Envs": {f"V{number}": "1" for number in range(21)}}),
    "priority_for_quota": ("public", {**DLC, "Priority": 9}),
    "bid_discount": ("spot", {**DLC, "JobSpecs": [{**ROLE, "SpotSpec": BID}]}),
    "ports_listed": ("default", settings(customPortList="10000;60000-70000")),
    "ports_not_masters": ("default", settings(customPortList="23000-24000")),
    "ports_number": ("default", settings(customPortNumPerWorker="65537")),
    "ports_one_way": ("default", settings(customPortList="10000", customPortNumPerWorker="2")),
    "no_ports_number_on_lingjun": ("lingjun", settings(customPortNumPerWorker="2")),
    "unique_name": ("default", SCM),
    "least_memory": ("default", {**SCM, "jobName": "other", "taskRoles": [{**TASK, "memoryMB": 50}]}),
    "least_cores": ("default", {**SCM, "jobName": "other", "taskRoles": [{**TASK, "cpuNumber": 0}]}),
    "only_pytorch": ("default", {**AIHC, "jobType": "TFJob"}),
    "queue": ("default", {name: value for name, value in AIHC.items() if name != "queue"}),
}
"""For each rule a target and a job file that violates it."""

KEEPING: Final = {Vendor.DLC: DLC, Vendor.SCM: {**SCM, "jobName": "other"}, Vendor.AIHC: AIHC}
RAISED: Final = frozenset({"least_cores"})
"""The reader raises the value, so that the job that is sent keeps the rule."""


@pytest.fixture
def quotas(place: Place) -> dict[str, Quota]:
    """A quota of each sort, by short name."""
    made = [
        make_quota(place.workspace, place.cluster, "lingjun", kind=Kind.LINGJUN),
        make_quota(place.workspace, place.cluster, "public", source=Source.PUBLIC),
        make_quota(place.workspace, place.cluster, "spot", source=Source.PREEMPTIBLE),
        place.quota,
    ]
    return {quota.slug: quota for quota in made}


def test_page_rules_have_each_a_violating_job() -> None:
    assert {rule.code for rule in PAGE_RULES} == AGAINST.keys()


def test_job_against_page_is_noted_here_and_refused_at_the_vendor(
    place: Place, quotas: dict[str, Quota]
) -> None:
    submission.submit(place.owner, Document(json.dumps(SCM)))
    for rule in PAGE_RULES:
        slug, file = AGAINST[rule.code]
        usual = KEEPING[rule.vendor]
        assert messages(place, slug, file) - messages(place, slug, usual), rule.code
        found = violations(place, quotas[slug], file, rule.vendor)
        assert bool(found) == (rule.code not in RAISED), rule.code
        assert all(each.source == SOURCES[rule.vendor] and "%(" not in each.message for each in found)
        assert not violations(place, place.quota, usual, rule.vendor), rule.code


def messages(place: Place, slug: str, file: dict[str, Any]) -> set[str]:
    """Return the notes on a job that runs here."""
    target = submission.JobTarget(quota=slug)
    found = findings.examine(place.owner, Document(json.dumps(file)), place=target)
    assert not found.problems
    return {note.message for note in found.notes}


def violations(place: Place, quota: Quota, file: dict[str, Any], vendor: str) -> list[Finding]:
    """Return the problems of a job that goes to the vendor."""
    spec = Document(json.dumps(file)).parsed.spec
    return [
        of_problem(each)
        for each in page_rules.problems(Subject(place.owner, spec, describe_target(quota)), vendor)
    ]


def test_job_for_cluster_of_vendor_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "vendor_of", lambda _name: "dlc")
    _slug, file = AGAINST["variables_most"]
    with pytest.raises(Refused) as refused:
        submission.submit(place.owner, Document(json.dumps(file)))
    (problem,) = refused.value.problems
    assert of_problem(problem).message == (
        "The job sets 21 environment variables; the PAI-DLC page accepts at most 20."
    )
    assert problem.source == "DLC page"


def test_priority_on_public_resources_does_not_count(place: Place, quotas: dict[str, Quota]) -> None:
    file = Document(json.dumps({**DLC, "Priority": 9}))
    submission.submit(place.owner, file, place=submission.JobTarget(quota="public"))
    submission.submit(place.owner, file, place=submission.JobTarget(quota="default"))
    assert dict(Job.objects.values_list("quota__slug", "priority")) == {"public": 1, "default": 9}
