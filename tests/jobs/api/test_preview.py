"""POST preview: what would become of a file, before anything is submitted."""

from __future__ import annotations

import pytest

from jobs.models import Job
from quotas.models import Cluster, Node, Request, Spec
from tests.factories import make_quota
from tests.jobs.api.conftest import People, api, body_of, file


@pytest.fixture
def people(people: People) -> People:
    """One node on which the file would start, and a price for it."""
    Cluster.objects.update(config={"cpu_milli": 8000, "memory_mib": 16_384, "allow_plain": True})
    Node.objects.create(cluster=people.quota.cluster, name="n1", cpu_milli=8000, memory_mib=16_384)
    Spec.objects.create(name="small", cpu_milli=1000, memory_mib=1024, price_micro=250_000)
    return people


def test_preview_returns_the_content_of_the_panel(people: People) -> None:
    told = body_of(api(people.owner).post("preview", {"file": file()}))
    assert (told["dialect"], told["problems"]) == ("openpai-v1", [])
    found = told["preview"]
    assert (found["starts"], found["nodes"], found["by_engine"]) == (True, ["n1"], False)
    assert found["amounts"] == {"cpu_milli": 1000, "memory_mib": 512, "gpus": {}}
    assert found["price"]["hour_micro"] == 250_000
    assert found["price"]["roles"] == [{"count": 1, "spec": "small", "hour_micro": 250_000}]
    [level] = found["levels"]
    assert level["resources"][0] == {
        "kind": "cpu_milli",
        "used": 0,
        "wanted": 1000,
        "limit": None,
        "free": None,
    }
    [role] = told["sent"]["roles"]
    assert role["script"].endswith("exec /bin/bash -c 'echo hello'\n")
    assert role["env"]["RANK"] in {"0", None}
    assert not Job.objects.exists()
    assert not Request.objects.exists()


def test_preview_of_a_waiting_job_gives_the_reason(people: People) -> None:
    Node.objects.update(cpu_milli=100)
    found = body_of(api(people.owner).post("preview", {"file": file()}))["preview"]
    assert found["starts"] is False
    assert found["reason"]["code"] == "exceeds_cluster"
    assert found["reason"]["message"]


def test_preview_of_an_invalid_file_returns_problems_without_error(people: People) -> None:
    told = body_of(api(people.owner).post("preview", {"file": "{"}))
    assert told["problems"]
    assert (told["preview"], told["sent"]) == (None, None)


def test_preview_hides_workspaces_of_other_users(people: People) -> None:
    foreign = make_quota()
    asked = {"file": file(), "workspace": foreign.workspace.slug}
    for user in (people.owner, people.member, people.stranger):
        told = body_of(api(user).post("preview", asked))
        assert [each["code"] for each in told["problems"]] in (["no_such_place"], ["no_place"])
    assert body_of(api(people.admin).post("preview", asked))["preview"] is not None


def test_preview_requires_only_the_read_scope(people: People) -> None:
    assert api(people.owner, ["read"]).post("preview", {"file": file()}).status_code == 200
    assert api(people.owner, ["submit"]).post("preview", {"file": file()}).status_code == 403
