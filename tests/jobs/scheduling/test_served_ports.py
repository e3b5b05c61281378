"""What replicas were seen to serve, as rows: they come, change and go, and keep their addresses meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobs.backends.base import EndpointSeen, Observation, ReplicaSeen
from jobs.messages.endpoints import endpoint_message
from jobs.models import Endpoint, Job
from jobs.scheduling import observations
from jobs.states import Phase, PortSource, Reason, ReasonCode, ReplicaState, State, Unready
from tests.factories import attempt_of, make_job, replica_of

pytestmark = pytest.mark.django_db
HOST = "127.0.0.1"


@pytest.fixture
def job() -> Job:
    return make_job(State.RUNNING)


def see(job: Job, *endpoints: EndpointSeen, **replica: Any) -> None:
    """Let this be what is seen now."""
    attempt = attempt_of(job)
    seen = ReplicaSeen("main", 0, ReplicaState.RUNNING, node="localhost", endpoints=endpoints)
    running = Observation(
        State.RUNNING,
        Reason(ReasonCode.RUNNING),
        Phase.RUNNING,
        (replace(seen, **replica),),
        version=f"{attempt.observed_version}+",
    )
    observations.apply(attempt, running)


def announced(label: str, port: int, **more: Any) -> EndpointSeen:
    return EndpointSeen(label, HOST, port, **{"ready": True, "source": PortSource.ANNOUNCED, **more})


def test_endpoint_announced_later_appears_and_keeps_address(job: Job) -> None:
    see(job)
    assert not Endpoint.objects.exists()
    see(job, announced("gradio", 7860, ready=False, why=Unready.STARTING, path="/ui"))
    first = Endpoint.objects.get()
    assert (first.source, first.path, first.lacks(replica_of(job))) == ("announced", "/ui", Unready.STARTING)
    see(job, announced("gradio", 7861))
    again = Endpoint.objects.get()
    assert (again.slug, again.port, again.path, again.lacks(replica_of(job))) == (first.slug, 7861, "", "")


def test_endpoint_no_longer_announced_is_removed(job: Job) -> None:
    see(job, announced("a", 1), announced("b", 2), EndpointSeen("asked", HOST, 3, ready=True))
    see(job, announced("b", 2), EndpointSeen("asked", HOST, 3, ready=False, why=Unready.SILENT))
    assert set(Endpoint.objects.values_list("label", flat=True)) == {"b", "asked"}


def test_endpoint_of_ended_replica_shows_ended(job: Job) -> None:
    see(job, announced("a", 1))
    see(job, state=ReplicaState.SUCCEEDED)
    assert Endpoint.objects.get().lacks(replica_of(job)) == Unready.ENDED


def test_endpoint_label_on_two_ports_creates_two_endpoints(job: Job) -> None:
    asked = EndpointSeen("web", HOST, 1, ready=False, why=Unready.OTHER_PORT, params={"port": 1, "other": 2})
    see(job, asked, announced("web", 2))
    rows = list(Endpoint.objects.order_by("ordinal").values_list("ordinal", "port", "ready"))
    assert rows == [(0, 1, False), (1, 2, True)]


@pytest.mark.parametrize("code", Unready)
def test_endpoint_message_exists_for_every_code_with_or_without_params(code: Unready) -> None:
    params = {"port": 8888, "other": 8889, "address": "10.1.2.3", "status": 503}
    full, bare = endpoint_message(code, params), endpoint_message(code, {})
    assert "…" not in full
    assert bare.endswith(".")


def test_endpoint_message_for_other_port_names_both_ports() -> None:
    told = endpoint_message("other_port", {"port": 8888, "other": 8889})
    assert "8888" in told
    assert "8889" in told
