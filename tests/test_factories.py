"""The rows that other tests stand on are what they say."""

from __future__ import annotations

import pytest

from jobs.models import Job
from jobs.spec import RoleSpec
from jobs.states import ReplicaState, State
from quotas.access import Verb, can
from quotas.models import Role
from tests.factories import (
    attempt_of,
    make_endpoint,
    make_job,
    make_replica,
    make_spec,
    make_user,
    make_workspace,
    replica_of,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("state", State)
def test_job_factory_makes_a_job_in_every_state(state: State) -> None:
    job = make_job(state)
    assert State(job.state) is state
    assert job.file.spec.replicas == 1
    assert attempt_of(job).replicas.count() == (0 if state is State.QUEUED else 1)


def test_job_factory_makes_each_replica_of_the_spec_and_more() -> None:
    roles = (RoleSpec(name="ps", command="true"), RoleSpec(name="worker", replicas=3, command="true"))
    job = make_job(State.RUNNING, spec=make_spec(roles=roles))
    assert replica_of(job, "worker", 2).ordinal == 3
    failed = make_replica(attempt_of(job), "late", state=ReplicaState.FAILED)
    assert (failed.ordinal, failed.exit_code) == (4, 1)


def test_endpoint_factory_admits_its_owner_and_no_viewer() -> None:
    endpoint = make_endpoint()
    job = endpoint.replica.attempt.job
    viewer = make_user()
    assert can(job.owner, Verb.ENTER, job)
    assert not can(viewer, Verb.ENTER, job)
    assert not Job.objects.visible_to(viewer)


def test_workspace_factory_gives_members_their_roles() -> None:
    admin = make_user()
    workspace = make_workspace(members={admin: Role.ADMIN})
    assert workspace.memberships.get().role == Role.ADMIN
