"""Jobs that run although a restored database does not know them: adopted, or ended."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.exceptions import PermissionDenied
from django.core.management import CommandError, call_command

from jobs.backends.base import Handle
from jobs.models import Event, Job, LogStream
from jobs.scheduling import orphans, reconcile
from jobs.scheduling.orphans import NotAdoptable, Orphan
from jobs.spec import JobSpec, Resources, RoleSpec
from jobs.states import State
from quotas import encryption
from quotas.audit.action_record import Actor
from quotas.models import AdminAction, AuditEntry, Request, Reservation, User
from tests.factories import make_user
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

SPEC = spec("lost", roles=(RoleSpec(name="w", command="true", resources=Resources(cpu_milli=3000)),))


@pytest.fixture
def admin(db: None) -> Actor:
    return Actor(make_user("root", admin=True), why="the disk broke")


def orphaned(place: Place, job_spec: JobSpec = SPEC) -> Orphan:
    """A job that runs on the cluster, and of which the database has nothing."""
    job = queued(place, job_spec)
    reconcile.drain(place.cluster.pk)
    key = attempt_of(job).key
    Reservation.objects.filter(request__holder=key).delete()
    Request.objects.filter(holder=key).delete()
    job.delete()
    (found,) = orphans.find()
    assert found.key == key
    return found


def test_known_attempts_and_those_of_other_consoles_are_no_orphans(
    place: Place, engine: MemoryEngine
) -> None:
    queued(place)
    reconcile.drain(place.cluster.pk)
    (handle,) = engine.jobs
    engine.jobs[Handle("h-other9-0123456789ab-1")] = engine.jobs[handle]
    assert orphans.find() == []
    engine.away = True
    assert orphans.find() == []


def test_adopted_orphan_is_its_owners_running_job_again(
    place: Place, engine: MemoryEngine, admin: Actor
) -> None:
    orphan = orphaned(place)
    assert str(orphan) == f"lost ({orphan.public_id}), alice, vision"
    job = orphans.adopt(admin, orphan)
    assert (job.public_id, job.owner, job.workspace) == (orphan.public_id, place.owner, place.workspace)
    assert job.file.spec == SPEC
    attempt = attempt_of(job)
    token = engine.submissions[orphan.key].endpoint_token
    assert (attempt.key, attempt.handle, attempt.live) == (orphan.key, f"h-{orphan.key}", True)
    assert encryption.decrypt(attempt.endpoint_token) == token
    assert LogStream.objects.filter(attempt=attempt).count() == 1
    reservation = Reservation.objects.get(request__holder=orphan.key, active=True)
    assert reservation.quota == place.quota
    assert reservation.placement[0][0] == "memory-1"
    assert reservation.amounts["cpu_milli"] == 3000
    engine.run(Handle(attempt.handle))
    reconcile.observe(place.cluster.pk)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert engine.starts == {orphan.key: 1}
    assert orphans.find() == []
    assert Event.objects.filter(job=job, kind=Event.Kind.FOUND_AGAIN, actor=admin.user).exists()
    assert AdminAction.objects.get().done == "adopted an orphaned job"


@pytest.mark.parametrize(
    ("lack", "why"),
    [
        ("record", "There is no record"),
        ("owner", "has no account with the number"),
        ("quota", "There is no quota default of the workspace vision"),
        ("process", "It has ended meanwhile."),
    ],
)
def test_orphan_whose_origin_is_incomplete_is_not_adopted(
    lack: str, why: str, place: Place, engine: MemoryEngine, admin: Actor
) -> None:
    orphan = orphaned(place)
    if lack == "record":
        engine.submissions.clear()
    if lack == "owner":
        User.objects.filter(pk=place.owner.pk).update(username="somebody-else")
    if lack == "quota":
        place.quota.delete()
    orphan = orphans.get(orphan.key) or orphan
    if lack == "process":
        engine.jobs.clear()
    with pytest.raises(NotAdoptable, match=why):
        orphans.adopt(admin, orphan)
    assert not Job.objects.exists()
    assert not AdminAction.objects.exists()


def test_orphan_is_ended_by_admins_alone(place: Place, engine: MemoryEngine, admin: Actor) -> None:
    orphan = orphaned(place)
    for act in (orphans.end, orphans.adopt):
        with pytest.raises(PermissionDenied):
            act(Actor(place.owner), orphan)
    assert engine.orders == []
    orphans.end(admin, orphan)
    assert engine.orders == [(Handle(f"h-{orphan.key}"), "TERM", orphans.GRACE_S)]
    assert AuditEntry.objects.filter(details__act="end_orphan").count() == 1


def test_orphans_command_lists_adopts_and_kills(place: Place, engine: MemoryEngine, admin: Actor) -> None:
    first = orphaned(place)
    out = StringIO()
    call_command("orphans", stdout=out)
    assert out.getvalue() == f"{first.key}  memory  {first}\n"
    with pytest.raises(CommandError, match="There is no orphan x"):
        call_command("orphans", "--adopt", "x")
    with pytest.raises(CommandError, match="There is no admin alice"):
        call_command("orphans", "--kill", first.key, "--as", "alice")
    call_command("orphans", "--kill", first.key, stdout=out)
    assert engine.stopped == [Handle(f"h-{first.key}")]
    call_command("orphans", "--adopt", first.key, "--as", "root", stdout=out)
    assert Job.objects.get().public_id == first.public_id
