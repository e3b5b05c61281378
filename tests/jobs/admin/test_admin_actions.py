"""What an admin does to the whole house: who may, what follows, and what is written down."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from jobs import notifications, submission
from jobs.access.terminal_gateway.folder_server import FolderVisitor
from jobs.admin import admin_actions
from jobs.lifecycle import pending_reasons
from jobs.messages.notifications import notification_words
from jobs.models import AccessSession, EndpointVisit, Event, Job, NotificationEvent, SshKey
from jobs.scheduling import reconcile
from jobs.states import ReasonCode, State
from quotas import ledger
from quotas.accounts import access_keys, invitations, tokens
from quotas.accounts import services as service_accounts
from quotas.accounts.session_store import reference_of
from quotas.amounts import Amounts
from quotas.audit.action_record import Actor
from quotas.models import (
    AdminAction,
    AuditEntry,
    Banner,
    Cluster,
    Grant,
    Maintenance,
    Membership,
    Quota,
    ReadOnly,
    Request,
    Reservation,
    Role,
    SignIn,
    User,
)
from tests.factories import attempt_of, make_endpoint, make_job, make_membership, make_user, replica_of
from tests.jobs.conftest import Place, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: None) -> User:
    return make_user("root", admin=True)


def acting(user: User, why: str = "the switch burns") -> Actor:
    return Actor(user, "192.0.2.7", why)


def told(job: Job) -> str:
    job.refresh_from_db()
    pending_reasons.load_reasons([job])
    return pending_reasons.reason_of(job).code


ACTS: dict[str, Callable[[Actor, Place], object]] = {
    "freeze": lambda actor, place: admin_actions.freeze(actor, place.cluster),
    "unfreeze": lambda actor, place: admin_actions.unfreeze(actor, place.cluster),
    "read_only": lambda actor, _place: admin_actions.make_read_only(actor),
    "read_write": lambda actor, _place: admin_actions.make_writable(actor),
    "end_person": lambda actor, place: admin_actions.end_everything(actor, place.owner, disable=True),
    "tell_owners": lambda actor, place: admin_actions.notify_owners(actor, place.node, "it reboots"),
    "settle": lambda actor, place: admin_actions.settle(
        actor, make_job(State.LOST, quota=place.quota, owner=place.owner), State.FAILED
    ),
}


TRAIL: dict[str, tuple[dict[str, list[object]], str]] = {
    "freeze": ({"frozen": [False, True]}, "Memory"),
    "unfreeze": ({}, "Memory"),
    "read_only": ({"read_only": [False, True]}, ""),
    "read_write": ({}, ""),
    "end_person": ({"is_active": [True, False]}, "alice"),
    "tell_owners": ({}, "memory/memory-1"),
    "settle": ({"state": ["LOST", "FAILED"]}, ""),
}
"""What the trail has of each act: the changes, and the name; without one, that of the only job, if any."""


@pytest.mark.parametrize("kind", ACTS)
def test_admin_action_is_recorded_with_user_address_and_reason(kind: str, place: Place, root: User) -> None:
    ACTS[kind](acting(root), place)
    row = AdminAction.objects.get()
    assert (row.kind, row.by, row.address, row.why) == (kind, root, "192.0.2.7", "the switch burns")
    assert row.at <= timezone.now()


@pytest.mark.parametrize("who", ["stranger", "member", "workspace admin", "staff", "disabled admin"])
@pytest.mark.parametrize("kind", ACTS)
def test_admin_action_is_refused_to_other_users(kind: str, who: str, place: Place) -> None:
    user = make_user("someone", is_staff=who == "staff")
    if who in {"member", "workspace admin"}:
        make_membership(user, place.workspace, Role.ADMIN if "admin" in who else Role.DEVELOPER)
    if who == "disabled admin":
        user = make_user("gone", admin=True, is_active=False)
    with pytest.raises(submission.Forbidden):
        ACTS[kind](acting(user), place)
    place.owner.refresh_from_db()
    assert place.owner.is_active
    assert not AdminAction.objects.exists()


@pytest.mark.parametrize("kind", ACTS)
def test_admin_action_is_audited_once_under_its_name(kind: str, place: Place, root: User) -> None:
    ACTS[kind](acting(root), place)
    entry = AuditEntry.objects.get(action="act")
    assert (entry.actor, entry.details["kind"], entry.details["why"]) == (root, kind, "the switch burns")
    changes, name = TRAIL[kind]
    assert entry.changes == changes
    jobs = Job.objects.values_list("public_id", flat=True)
    assert entry.object_repr == (name or "".join(jobs))


def test_admin_action_without_effect_is_audited_without_change(place: Place, root: User) -> None:
    for _again in range(2):
        admin_actions.freeze(acting(root), place.cluster)
    admin_actions.unfreeze(acting(root), place.cluster)
    told = [entry.changes for entry in AuditEntry.objects.filter(action="act").order_by("id")]
    assert told == [{"frozen": [False, True]}, {}, {"frozen": [True, False]}]


def test_admin_action_refused_is_not_audited(place: Place, root: User) -> None:
    job = make_job(State.RUNNING, owner=place.owner, quota=place.quota)
    with pytest.raises(submission.NotLost):
        admin_actions.settle(acting(root), job, State.FAILED)
    assert not AuditEntry.objects.filter(action="act").exists()


def test_audit_entry_shows_the_count_of_ended_tokens(place: Place, root: User) -> None:
    tokens.issue(place.owner, scopes=["read"], lifetime=timedelta(days=1))
    admin_actions.end_everything(acting(root), place.owner, disable=False)
    assert "tokens: 1" in AuditEntry.objects.get(action="act").details["ended"]


def test_admin_action_record_cannot_be_changed_or_deleted(root: User, place: Place) -> None:
    admin_actions.freeze(acting(root), place.cluster)
    row = AdminAction.objects.get()
    for change in (
        row.save,
        row.delete,
        AdminAction.objects.all().delete,
        lambda: AdminAction.objects.update(why=""),
    ):
        with pytest.raises(TypeError):
            change()


# --- admission ------------------------------------------------------------------------------------------


def test_paused_cluster_starts_no_jobs_until_resumed(place: Place, root: User, engine: MemoryEngine) -> None:
    running, job = queued(place), queued(place)
    submission.hold(place.owner, job)
    reconcile.drain(place.cluster.pk)
    running.refresh_from_db()
    assert admin_actions.freeze(acting(root), place.cluster)
    assert not admin_actions.freeze(acting(root), place.cluster)
    submission.release(place.owner, job)
    reconcile.drain(place.cluster.pk)
    assert told(job) == ReasonCode.FROZEN
    assert pending_reasons.reason_of(job).params["because"] == "the switch burns"
    running.refresh_from_db()
    assert running.state == State.PENDING
    assert admin_actions.unfreeze(acting(root), Cluster.objects.get(pk=place.cluster.pk))
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.PENDING


@pytest.mark.parametrize("everywhere", [True, False])
def test_maintenance_keeps_longer_jobs_from_starting(
    everywhere: bool, place: Place, engine: MemoryEngine
) -> None:
    now = timezone.now()
    Maintenance.objects.create(
        cluster=None if everywhere else place.cluster,
        text="new disks",
        from_at=now + timedelta(hours=1),
        until_at=now + timedelta(hours=2),
    )
    long, short = (queued(place, spec(time_limit_s=seconds)) for seconds in (7200, 600))
    reconcile.drain(place.cluster.pk)
    assert told(long) == ReasonCode.MAINTENANCE
    short.refresh_from_db()
    assert short.state == State.PENDING


def test_maintenance_only_announced_keeps_no_job_from_starting(place: Place, engine: MemoryEngine) -> None:
    now = timezone.now()
    Maintenance.objects.create(
        text="x", from_at=now, until_at=now + timedelta(hours=2), keeps_free=False, cluster=place.cluster
    )
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.PENDING


# --- a person -------------------------------------------------------------------------------------------


def test_account_shutdown_ends_all_of_one_user_and_no_other(place: Place, root: User) -> None:
    other = make_user("bob")
    mine, his = (make_job(State.RUNNING, owner=user, quota=place.quota) for user in (place.owner, other))
    waits = queued(place)
    clients = {}
    for user, job in ((place.owner, mine), (other, his)):
        clients[user.username] = Client()
        clients[user.username].force_login(user)
        tokens.issue(user, scopes=["read"], lifetime=timedelta(days=1))
        access_keys.issue(user, scopes=["read"])
        SshKey.objects.create(user=user, fingerprint=f"SHA256:{user}")
        AccessSession.objects.create(user=user, replica=replica_of(job), kind="ssh")
        endpoint = make_endpoint(replica_of(job))
        EndpointVisit.objects.create(user=user, endpoint=endpoint, secret=user.username)
    before = admin_actions.count_presence(place.owner)
    counts = {"jobs": 2, "sessions": 1, "tokens": 1, "service_tokens": 0, "invitations": 0}
    keys = {"access_keys": 1, "service_keys": 0, "ssh_keys": 1}
    assert before == admin_actions.Presence(**counts, **keys, entries=1, visits=1)
    theirs = admin_actions.count_presence(other)
    assert admin_actions.end_everything(acting(root), place.owner, disable=False) == before
    waits.refresh_from_db()
    assert waits.state == State.STOPPED
    attempt = attempt_of(mine)
    assert (attempt.end_kind, attempt.end_by, attempt.end_why) == ("admin_stop", root, "the switch burns")
    left = admin_actions.count_presence(place.owner)
    assert (left.sessions, left.tokens, left.ssh_keys, left.visits) == (0, 0, 0, 0)
    assert left.access_keys == 0
    assert AccessSession.objects.get(user=place.owner).end_asked_by == root
    assert admin_actions.count_presence(other) == theirs
    assert clients["alice"].get("/").status_code == 302
    assert clients["bob"].get("/").status_code == 200
    place.owner.refresh_from_db()
    assert place.owner.is_active
    assert "jobs: 2" in AdminAction.objects.get().params["ended"]


@pytest.fixture
def doors(place: Place) -> dict[str, User]:
    """Alice and Bob, each with a listed sign-in, a grant, a service account with a token, an invitation."""
    people = {"alice": place.owner, "bob": make_user("bob")}
    for name, user in people.items():
        Membership.objects.update_or_create(
            user=user, workspace=place.workspace, defaults={"role": Role.ADMIN}
        )
        Grant.objects.create(user=user, provider="dex", refresh_token="r", checked_at=timezone.now())
        account = service_accounts.make(
            user, place.workspace, f"{name}-ci", role=Role.DEVELOPER, contact=name
        )
        tokens.issue(account.user, scopes=["read"], lifetime=timedelta(days=1))
        access_keys.issue(account.user, scopes=["read"], lifetime=timedelta(days=1))
        invitations.invite(user, place.workspace, Role.DEVELOPER)
    return people


def signed_in(user: User) -> str:
    """The key of a session that is listed."""
    client = Client()
    client.force_login(user)
    key = reference_of(client.session.session_key)
    SignIn.objects.get_or_create(session_key=key, defaults={"user": user, "how": "password"})
    return key


def test_account_shutdown_ends_sign_in_leftovers_of_one_user_only(
    place: Place, root: User, doors: dict[str, User]
) -> None:
    for user in doors.values():
        signed_in(user)
    theirs = admin_actions.count_presence(doors["bob"])
    found = admin_actions.end_everything(acting(root), doors["alice"], disable=False)
    assert (found.sessions, found.service_tokens, found.service_keys, found.invitations) == (1, 1, 1, 1)
    left = admin_actions.count_presence(doors["alice"])
    assert (left.sessions, left.service_tokens, left.service_keys, left.invitations) == (0, 0, 0, 0)
    assert [row.user for row in SignIn.objects.all()] == [doors["bob"]]
    assert [row.user for row in Grant.objects.all()] == [doors["bob"]]
    assert admin_actions.count_presence(doors["bob"]) == theirs
    assert theirs.service_tokens == theirs.service_keys == theirs.invitations == 1
    assert AuditEntry.objects.filter(action="sign_in_ended", person=doors["alice"]).count() == 1
    revoked = AuditEntry.objects.get(content_type__model="accesstoken", changes__has_key="revoked")
    assert revoked.person is not None
    assert revoked.person.username == "alice-ci"
    assert AuditEntry.objects.filter(content_type__model="accesskey", changes__has_key="revoked").count() == 1


def test_account_shutdown_ends_file_transfers_of_the_user(place: Place, root: User) -> None:
    key = signed_in(place.owner)
    token = tokens.verify(tokens.issue(place.owner, scopes=["read"], lifetime=timedelta(days=1)))
    assert token is not None
    visitors = [
        FolderVisitor(place.owner.pk, key, 0, 0, 0),
        FolderVisitor(place.owner.pk, "", token.pk, 0, 0),
    ]
    assert [visitor.person() for visitor in visitors] == [place.owner, place.owner]
    admin_actions.end_everything(acting(root), place.owner, disable=False)
    assert [visitor.person() for visitor in visitors] == [None, None]


def test_account_shutdown_can_disable_the_account(place: Place, root: User) -> None:
    admin_actions.end_everything(acting(root), place.owner, disable=True)
    place.owner.refresh_from_db()
    assert not place.owner.is_active
    assert Session.objects.count() == 0


# --- a node ---------------------------------------------------------------------------------------------


def test_notify_owners_on_a_node_notifies_once_and_marks_their_jobs(place: Place, root: User) -> None:
    job, elsewhere = queued(place), queued(place)
    for each, node in ((job, place.node.name), (elsewhere, "another")):
        request = Request.objects.get(holder=attempt_of(each).key)
        ledger.reserve(request, [(node, Amounts(1000, 1024))])
    assert admin_actions.notify_owners(acting(root), place.node, "it reboots at noon") == [job]
    event = NotificationEvent.objects.get(kind=notifications.Kind.MESSAGE)
    assert event.people == [place.owner.pk]
    message = notification_words(event.kind, event.params)
    assert (message.title, message.text) == ("Message from root.", "memory-1: it reboots at noon")
    assert not Banner.objects.exists(), "one way only"
    told = Event.objects.get(kind=Event.Kind.TOLD)
    assert (told.job, told.actor, told.params["why"]) == (job, root, "it reboots at noon")


# --- maintenance ----------------------------------------------------------------------------------------


def window(place: Place | None, begins: int = 1, **columns: object) -> Maintenance:
    now = timezone.now()
    times = {"from_at": now + timedelta(hours=begins), "until_at": now + timedelta(hours=begins + 1)}
    cluster = place.cluster if place else None
    return Maintenance.objects.create(text="new disks", cluster=cluster, **{**times, **columns})


def test_maintenance_is_announced_once_to_affected_job_owners(place: Place) -> None:
    bob, carol, dave = (make_user(name) for name in ("bob", "carol", "dave"))
    for state, owner in (
        (State.RUNNING, place.owner),
        (State.QUEUED, place.owner),
        (State.QUEUED, bob),
        (State.SUCCEEDED, carol),
    ):
        make_job(state, owner=owner, quota=place.quota)
    make_job(State.RUNNING, owner=dave)
    assert admin_actions.announce(window(place)) == 2
    event = NotificationEvent.objects.get(kind=notifications.Kind.MAINTENANCE)
    assert event.people == sorted([place.owner.pk, bob.pk])
    said = notification_words(event.kind, event.params)
    assert said.title.startswith("Maintenance of Memory begins at ")
    assert said.text == "new disks"
    assert admin_actions.announce(window(None)) == 3, "every cluster's"
    assert (
        notification_words(notifications.Kind.MAINTENANCE, NotificationEvent.objects.latest("id").params).text
        == "new disks"
    )


def test_maintenance_in_the_past_is_announced_to_no_user(place: Place) -> None:
    make_job(State.RUNNING, owner=place.owner, quota=place.quota)
    assert admin_actions.announce(window(place, begins=-2)) == 0
    assert not NotificationEvent.objects.filter(kind=notifications.Kind.MAINTENANCE).exists()


# --- a lost job -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.STOPPED])
def test_lost_job_settled_by_hand_frees_its_reservation(state: State, place: Place, root: User) -> None:
    job = make_job(State.LOST, owner=place.owner, quota=place.quota)
    attempt = attempt_of(job)
    request = ledger.ask(
        attempt.key, quota=place.quota, owner=place.owner, parts=[], priority=1, declared_s=None
    )
    ledger.reserve(request, [("memory-1", Amounts(1000, 1024))])
    admin_actions.settle(acting(root), job, state)
    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, attempt.live) == (state, False)
    assert not Reservation.objects.filter(active=True).exists()
    event = Event.objects.get(job=job, kind=Event.Kind.ENDED)
    assert (event.actor, event.params["because"]) == (root, "the switch burns")
    with pytest.raises(submission.NotLost):
        admin_actions.settle(acting(root), job, State.FAILED)
    assert AdminAction.objects.count() == 1, "an act that was refused was not done"


def test_settle_refuses_a_job_not_lost(place: Place, root: User) -> None:
    job = make_job(State.RUNNING, owner=place.owner, quota=place.quota)
    with pytest.raises(submission.NotLost):
        admin_actions.settle(acting(root), job, State.FAILED)


# --- the queue ------------------------------------------------------------------------------------------


def test_prioritise_changes_only_waiting_jobs(place: Place, root: User) -> None:
    job = queued(place)
    assert submission.prioritise(root, job, 7, why="deadline")
    assert not submission.prioritise(root, job, 7)
    job.refresh_from_db()
    assert (job.priority, Request.objects.get().priority) == (7, 7)
    event = Event.objects.get(kind=Event.Kind.PRIORITISED)
    assert event.params == {"before": 1, "after": 7, "why": "deadline"}
    with pytest.raises(submission.NotWaiting):
        submission.prioritise(root, make_job(State.RUNNING, quota=place.quota), 7)
    with pytest.raises(submission.Forbidden):
        submission.prioritise(place.owner, job, 9)


def beside(place: Place, **columns: object) -> Quota:
    fields = {"workspace": place.workspace, "cluster": place.cluster, "slug": "other", "name": "Other"}
    return Quota.objects.create(**{**fields, **columns})


def test_move_changes_the_quota_of_a_waiting_job(place: Place, root: User) -> None:
    job, there = queued(place), beside(place)
    assert submission.move(root, job, there)
    assert not submission.move(root, job, there)
    job.refresh_from_db()
    assert (job.quota, Request.objects.get().quota) == (there, there)
    assert Event.objects.get(kind=Event.Kind.MOVED).params["after"] == "Other"
    with pytest.raises(submission.Forbidden):
        submission.move(place.owner, job, place.quota)
    with pytest.raises(submission.NotWaiting):
        submission.move(root, make_job(State.RUNNING, quota=place.quota), there)


@pytest.mark.parametrize("wrong", ["workspace", "closed", "small", "not a member"])
def test_move_refuses_a_quota_not_allowed_or_too_small(wrong: str, place: Place, root: User) -> None:
    job = queued(place)
    columns: dict[str, dict[str, object]] = {
        "workspace": {"workspace": make_job(State.RUNNING).workspace},
        "closed": {"accepts_jobs": False},
        "small": {"cpu_milli": 1},
        "not a member": {},
    }
    there = beside(place, **columns[wrong])
    if wrong == "not a member":
        place.owner.memberships.all().delete()
    with pytest.raises(submission.CannotMove):
        submission.move(root, job, there)
    job.refresh_from_db()
    assert job.quota == place.quota


def test_read_only_mode_lasts_until_made_writable(root: User) -> None:
    admin_actions.make_read_only(acting(root, "the database moves"))
    admin_actions.make_read_only(acting(root, "it still moves"))
    assert ReadOnly.objects.get().why == "it still moves"
    admin_actions.make_writable(acting(root))
    assert not ReadOnly.objects.exists()
