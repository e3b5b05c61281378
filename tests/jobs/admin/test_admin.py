"""Actions on many jobs, and on many nodes, in Django admin."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.admin import autodiscover, site
from django.db.models import Model
from django.test import Client
from django.utils import timezone
from django.utils.functional import Promise

from jobs.models import Attempt, Event, Job, NotificationEvent
from jobs.scheduling import admission
from jobs.states import State
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.models import AdminAction, AuditEntry, Maintenance, Node, NodeState, Quota, Request, User
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import make_job, make_user
from tests.jobs.conftest import Place, queued, spec

autodiscover()
pytestmark = pytest.mark.django_db

JOBS, NODES = "/admin/jobs/job/", "/admin/quotas/node/"


@pytest.fixture
def root(db: None) -> User:
    return make_user("root", admin=True)


@pytest.fixture
def admin(client: Client, root: User) -> Client:
    client.force_login(root)
    return client


@pytest.mark.parametrize(
    "model", [each for each in site._registry if each._meta.app_label in {"jobs", "quotas"}]
)
def test_admin_columns_have_translated_names(model: type[Model]) -> None:
    columns = set(site._registry[model].list_display)
    named = [each for each in model._meta.fields if each.name in columns and not each.primary_key]
    assert [each.name for each in named if not isinstance(each.verbose_name, Promise)] == []


def test_admin_job_list_shows_translated_states(admin: Client, place: Place) -> None:
    queued(place)
    page = admin.get(JOBS, headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "排队中" in page
    assert ">QUEUED<" not in page


def hold_amounts(job: Job, place: Place) -> None:
    """Have the job hold a CPU on the place's node, without a time limit."""
    each = Amounts(1000, 1024)
    request = ledger.ask(
        Attempt.objects.get(job=job).key,
        quota=place.quota,
        owner=job.owner,
        parts=[Part(1, each)],
        priority=1,
        declared_s=None,
    )
    ledger.reserve(request, [(place.node.name, each)])


def act(admin: Client, name: str, *rows: Job | Node, confirmed: bool = True, **values: object) -> str:
    """What the page after it says."""
    data = {"action": name, "_selected_action": [row.pk for row in rows], **values}
    if confirmed:
        data["confirmed"] = "yes"
    address = JOBS if isinstance(rows[0], Job) else NODES
    return admin.post(address, data, follow=True).content.decode()


def states(*jobs: Job) -> list[str]:
    return [Job.objects.get(pk=job.pk).state for job in jobs]


@pytest.mark.parametrize("name", ["stop_jobs", "hold_jobs", "release_jobs", "prioritise_jobs", "move_jobs"])
@pytest.mark.parametrize("who", OTHERS)
def test_admin_job_actions_are_refused_to_other_users(who: str, name: str, place: Place) -> None:
    job = queued(place)
    data = {"action": name, "_selected_action": [job.pk], "confirmed": "yes", "why": "x", "priority": 9}
    client_of(who, place.quota).post(JOBS, data)
    job.refresh_from_db()
    assert (job.state, job.priority) == (State.QUEUED, 1)
    assert not AdminAction.objects.exists()


def test_admin_job_actions_are_refused_to_view_only_staff(place: Place) -> None:
    from django.contrib.auth.models import Permission  # noqa: PLC0415

    staff = make_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_job"))
    client, job = Client(), queued(place)
    client.force_login(staff)
    assert client.get(JOBS).status_code == 200
    assert "stop_jobs" not in client.get(JOBS).content.decode()
    act(client, "stop_jobs", job, why="x")
    assert states(job) == [State.QUEUED]


def test_admin_action_unconfirmed_shows_effects_and_changes_nothing(admin: Client, place: Place) -> None:
    runs, waits = make_job(State.RUNNING, quota=place.quota), queued(place)
    text = act(admin, "stop_jobs", runs, waits, confirmed=False)
    assert "Waiting jobs end immediately." in text
    assert runs.public_id in text
    assert states(runs, waits) == [State.RUNNING, State.QUEUED]
    assert not AdminAction.objects.exists()


def test_admin_stop_ends_jobs_and_shows_the_reason_to_owners(admin: Client, place: Place, root: User) -> None:
    runs, waits, ended = make_job(State.RUNNING, quota=place.quota), queued(place), make_job(State.FAILED)
    text = act(admin, "stop_jobs", runs, waits, ended, why="power cut at noon")
    assert "2 jobs are stopping." in text
    assert "1 unchanged: Nothing to change." in text
    assert states(runs, waits, ended) == [State.RUNNING, State.STOPPED, State.FAILED]
    for job in (runs, waits):
        attempt = Attempt.objects.get(job=job)
        assert (attempt.end_by, attempt.end_why) == (root, "power cut at noon")
        assert Event.objects.filter(job=job, kind=Event.Kind.END_WANTED, actor=root).exists()
    assert AdminAction.objects.get().params["act"] == "stop"


def test_admin_stop_without_a_reason_is_refused(admin: Client, place: Place) -> None:
    job = queued(place)
    assert "This field is required" in act(admin, "stop_jobs", job, why="")
    assert states(job) == [State.QUEUED]


def test_admin_hold_and_release_change_waiting_jobs(admin: Client, place: Place) -> None:
    waits, runs = queued(place), make_job(State.RUNNING, quota=place.quota)
    text = act(admin, "hold_jobs", waits, runs, why="x")
    assert "1 job held." in text
    assert "Not waiting, or not on hold." in text
    assert Request.objects.get().held
    act(admin, "release_jobs", waits)
    assert not Request.objects.get().held


def test_admin_prioritise_changes_priority_up_to_nine(admin: Client, place: Place) -> None:
    job = queued(place)
    assert "less than or equal to 9" in act(admin, "prioritise_jobs", job, priority=10, why="x")
    act(admin, "prioritise_jobs", job, priority=9, why="deadline")
    assert Request.objects.get().priority == 9


def test_admin_move_changes_the_quota_of_a_job(admin: Client, place: Place) -> None:
    job = queued(place)
    there = Quota.objects.create(workspace=place.workspace, cluster=place.cluster, slug="other", name="Other")
    elsewhere = make_job().quota
    asked = act(admin, "move_jobs", job, confirmed=False)
    assert "Other" in asked
    assert elsewhere.name not in asked
    act(admin, "move_jobs", job, quota=there.pk, why="fairness")
    assert Request.objects.get().quota == there


def test_admin_action_over_the_selection_limit_changes_nothing(
    admin: Client, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quotas.admin.bulk.MOST_AT_ONCE", 1)
    jobs = [queued(place), queued(place)]
    assert "Too many selected: at most 1 at a time." in act(admin, "stop_jobs", *jobs, why="x")
    assert states(*jobs) == [State.QUEUED, State.QUEUED]


# --- nodes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", OTHERS)
def test_admin_node_actions_are_refused_to_other_users(who: str, place: Place) -> None:
    data = {"action": "cordon", "_selected_action": [place.node.pk], "confirmed": "yes", "why": "x"}
    client_of(who, place.quota).post(NODES, data)
    place.node.refresh_from_db()
    assert place.node.state == NodeState.SCHEDULABLE


def test_admin_nodes_are_cordoned_drained_and_uncordoned(admin: Client, place: Place, root: User) -> None:
    node = place.node
    assert "0 jobs use these nodes." in act(admin, "cordon", node, confirmed=False)
    node.refresh_from_db()
    assert node.state == NodeState.SCHEDULABLE
    act(admin, "cordon", node, why="new disks")
    node.refresh_from_db()
    assert (node.state, node.state_why, node.state_by) == (NodeState.CORDONED, "new disks", root)
    over: dict[str, Any] = {"empty_by_0": "2001-01-01", "empty_by_1": "10:00"}
    assert "This time is in the past." in act(admin, "drain", node, why="new disks", **over)
    later: dict[str, Any] = {"empty_by_0": "2999-01-01", "empty_by_1": "10:00"}
    act(admin, "drain", node, why="new disks", **later)
    node.refresh_from_db()
    assert node.state == NodeState.DRAINING
    assert node.empty_by is not None
    assert node.empty_by > timezone.now()
    act(admin, "uncordon", node)
    node.refresh_from_db()
    assert node.state == NodeState.SCHEDULABLE
    assert Node.objects.get().empty_by is None
    assert [row.params["state"] for row in AdminAction.objects.all()] == [
        "schedulable",
        "draining",
        "cordoned",
    ]


# --- maintenance ----------------------------------------------------------------------------------------


def save_window(admin: Client, place: Place, row: Maintenance | None = None, **changed: str) -> str:
    """What the page after it says."""
    values = {"text": "new disks", "cluster": str(place.cluster.pk), "keeps_free": "on", "lead_hours": "24"}
    values |= {"from_at_0": "2099-01-02", "from_at_1": "10:00:00"}
    values |= {"until_at_0": "2099-01-02", "until_at_1": "12:00:00", **changed}
    way = f"{row.pk}/change/" if row else "add/"
    page = admin.post(f"/admin/quotas/maintenance/{way}", values)
    shown = re.search(r'name="shown" value="(\w+)"', page.content.decode())
    assert shown is not None, "it is shown before it is saved"
    answer = admin.post(f"/admin/quotas/maintenance/{way}", {**values, "shown": shown[1]}, follow=True)
    assert answer.redirect_chain, "it was saved"
    return answer.content.decode()


def announced() -> int:
    return NotificationEvent.objects.filter(kind="node.maintenance").count()


def test_admin_maintenance_is_announced_only_when_created_or_moved(admin: Client, place: Place) -> None:
    queued(place)
    assert "1 person notified." in save_window(admin, place)
    row = Maintenance.objects.get()
    assert announced() == 1
    assert "person notified" not in save_window(admin, place, row)
    save_window(admin, place, row, lead_hours="12")
    assert announced() == 1, "nothing of that is news"
    save_window(admin, place, row, from_at_1="09:00:00")
    assert announced() == 2
    assert AuditEntry.objects.filter(content_type__model="maintenance", action="create").count() == 1


def test_admin_maintenance_names_its_jobs_before_it_is_saved(admin: Client, place: Place) -> None:
    """A waiting job without a time limit is kept from starting only within the lead time that was chosen."""
    waits, runs = queued(place), make_job(State.RUNNING, quota=place.quota, name="long-run")
    hold_amounts(runs, place)
    soon = timezone.localtime() + timedelta(hours=2)
    values = {"text": "new disks", "cluster": str(place.cluster.pk), "keeps_free": "on"}
    values |= {"from_at_0": f"{soon:%Y-%m-%d}", "from_at_1": f"{soon:%H:%M:%S}"}
    values |= {"until_at_0": "2099-01-02", "until_at_1": "12:00:00"}
    address = "/admin/quotas/maintenance/add/"
    default = str(Maintenance._meta.get_field("lead_hours").default)
    text = unescape(admin.post(address, {**values, "lead_hours": default}).content.decode())
    assert "No job that waits now is kept from starting." in text
    assert f"it is not stopped: long-run ({runs.owner})" in text
    text = unescape(admin.post(address, {**values, "lead_hours": "24"}).content.decode())
    assert f"1 waiting job can't start before the maintenance ends: {waits.name} ({waits.owner})" in text
    assert "Times are in the time zone UTC." in text
    text = unescape(admin.post(address, {**values, "lead_hours": "24", "_edit": "yes"}).content.decode())
    assert "Not saved yet." in text
    assert 'value="new disks"' in text
    assert not Maintenance.objects.exists()


def test_admin_drain_names_jobs_and_time_zone(admin: Client, place: Place) -> None:
    job = make_job(State.RUNNING, quota=place.quota, name="long-run")
    hold_amounts(job, place)
    text = act(admin, "drain", place.node, confirmed=False)
    assert "1 job uses these nodes." in text
    assert f"Jobs: long-run ({job.owner})" in text
    assert "Time zone: UTC." in text
    assert "1 node draining." in act(admin, "drain", place.node, why="new disks")
    assert "1 node uncordoned." in act(admin, "uncordon", place.node)


def test_admin_lists_of_nodes_and_clusters_offer_no_deletion(admin: Client, place: Place) -> None:
    for address in (NODES, "/admin/quotas/cluster/"):
        page = admin.get(address).content.decode()
        assert place.node.name in page or place.cluster.name in page
        assert 'value="delete_selected"' not in page


def test_admin_ledger_lists_name_jobs(admin: Client, place: Place) -> None:
    waits, runs = queued(place), make_job(State.RUNNING, quota=place.quota, name="long-run")
    hold_amounts(runs, place)
    assert waits.name in admin.get("/admin/quotas/request/").content.decode()
    page = admin.get("/admin/quotas/reservation/").content.decode()
    assert "long-run" in page
    assert runs.owner.get_username() in page


# --- the list of jobs -----------------------------------------------------------------------------------


def names_of(admin: Client, **query: str) -> set[str]:
    return {job.name for job in admin.get(JOBS, query).context["cl"].result_list}


def test_admin_job_list_filters_searches_and_exports(admin: Client, place: Place) -> None:
    Quota.objects.update(most_jobs=0)
    queued(place, spec("resnet-50"))
    other = make_job(State.RUNNING, priority=7)
    Quota.objects.exclude(pk=place.quota.pk).update(name="Elsewhere")
    admission.admit(place.cluster.pk)
    listed = admin.get(JOBS).content.decode()
    assert "1 (in quota: 1)" in listed or "–" in listed
    assert names_of(admin, q="resnet") == {"resnet-50"}
    assert names_of(admin, quota__id__exact=str(place.quota.pk)) == {"resnet-50"}
    assert names_of(admin, priority="7") == {other.name}
    assert names_of(admin, owner=other.owner.username) == {other.name}
    assert names_of(admin, gpus="8+") == set()
    assert names_of(admin, position="apart") == {"resnet-50"}
    exported = admin.get(f"{JOBS}export/", {"q": "resnet"}).content.decode()
    assert "resnet-50" in exported
    assert other.name not in exported


def test_admin_quota_form_saves_job_policies(admin: Client, place: Place) -> None:
    address = f"/admin/quotas/quota/{place.quota.pk}/change/"
    page = admin.get(address)
    form = page.context["adminform"].form
    data = {name: "" if value is None else value for name, value in form.initial.items()}
    data = {
        name: value
        for name, value in data.items()
        if value is not False and not isinstance(value, (list, dict))
    }
    data |= {"gpus_by_type": "", "idle_exempt_roles": "[]", "idle_exempt_labels": "{}", "may_borrow": "on"}
    data |= {"policies-TOTAL_FORMS": "2", "policies-INITIAL_FORMS": "0"}
    data |= {"policies-0-highest_priority": "5", "policies-1-highest_priority": "4"}
    refused = admin.post(address, data)
    assert refused.context["adminform"].form.errors == {}
    assert "same role and user" in refused.content.decode()
    data |= {"policies-TOTAL_FORMS": "1", "fair_share_weight": "3", "least_running_minutes": "20"}
    admin.post(address, data)
    place.quota.refresh_from_db()
    assert (place.quota.fair_share_weight, place.quota.least_running_s) == (3, 1200.0)
    assert place.quota.policies.get().highest_priority == 5
