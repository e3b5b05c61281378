"""The page of one job, for everybody who may look at it or may not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest
from django.utils.timezone import now

from jobs.jobtemplates import SHIPPED
from jobs.lifecycle.transitions import new_attempt
from jobs.models import (
    AccessSession,
    Attempt,
    Event,
    Job,
    JobFile,
    Replica,
    ReplicaUsage,
    TemplateUse,
    Visibility,
)
from jobs.spec import CompletionPolicy, RoleSpec
from jobs.states import ReasonCode, ReplicaState, State
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.models import PriceSpan, Reservation, Spec
from tests.factories import attempt_of, make_endpoint, make_job, make_replica, make_spec, replica_of
from tests.jobs.web.conftest import People, browser, fragment, seen, write_log

Queries = Callable[..., AbstractContextManager[object]]
SECRET = "echo the owner alone reads this"


@pytest.fixture
def job(people: People) -> Job:
    spec = make_spec(name="train", roles=(RoleSpec(name="main", command=SECRET),))
    return make_job(
        State.RUNNING, owner=people.owner, quota=people.quota, spec=spec, text=SECRET, dialect="openpai-v1"
    )


def url(job: Job, tab: str = "") -> str:
    return f"/jobs/{job.public_id}/" + (f"?tab={tab}" if tab else "")


@pytest.mark.parametrize("tab", ["", "replicas", "logs", "events", "file"])
def test_job_page_shows_every_tab_to_owner_and_managers(people: People, job: Job, tab: str) -> None:
    for user in (people.owner, people.manager, people.admin):
        response = browser(user).get(url(job, tab))
        assert response.status_code == 200
        assert "Clone & edit" in seen(response)


@pytest.mark.parametrize("tab", ["", "replicas", "logs", "events", "file"])
def test_job_page_shows_members_only_name_state_and_reason(people: People, job: Job, tab: str) -> None:
    text = seen(browser(people.member).get(url(job, tab)))
    assert "train" in text
    assert "Running" in text
    assert SECRET not in text
    assert "log-view" not in text
    assert f"/jobs/{job.public_id}/stop" not in text


def test_job_page_of_shared_job_is_readable_but_not_stoppable(people: People, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    text = seen(browser(people.member).get(url(job, "file")))
    assert SECRET in text
    assert f"/jobs/{job.public_id}/stop" not in text


@pytest.mark.parametrize("part", [None, "job-head", "job-tab"])
def test_job_page_is_hidden_from_strangers(people: People, job: Job, part: str | None) -> None:
    headers = fragment(part) if part else {}
    assert browser(people.stranger).get(url(job), headers=headers).status_code == 404
    assert browser().get(url(job), headers=headers).status_code == 302


def test_job_page_fragment_has_same_access_check(people: People, job: Job) -> None:
    text = seen(browser(people.member).get(url(job, "file"), headers=fragment("job-tab")))
    assert SECRET not in text


def test_job_page_head_is_refreshed_alone(people: People, job: Job) -> None:
    text = seen(browser(people.owner).get(url(job, "events"), headers=fragment("job-head")))
    assert text.startswith('<div id="job-head"')
    assert f'hx-get="/jobs/{job.public_id}/?tab=events"' in text
    assert "<html" not in text


def test_job_page_head_shows_time_limit_cost_and_link(people: People) -> None:
    spec = make_spec(time_limit_s=7200)
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec)
    parts = [Part(1, Amounts(1000, 1 << 20))]
    key = attempt_of(job).key
    request = ledger.ask(
        key, quota=people.quota, owner=people.owner, parts=parts, priority=1, declared_s=None
    )
    ledger.reserve(request, [])
    Reservation.objects.update(created_at=now() - timedelta(hours=1))
    head = seen(browser(people.owner).get(url(job), headers=fragment("job-head")))
    assert "Time limit ends" in head
    assert "Cost" not in head, "where nothing has a price"
    assert f'data-copy="http://testserver/jobs/{job.public_id}/"' in head
    Spec.objects.create(name="s", cpu_milli=1000, memory_mib=1 << 20, price_micro=2_000_000)
    PriceSpan.objects.update(begins=now() - timedelta(days=1))
    head = seen(browser(people.owner).get(url(job), headers=fragment("job-head")))
    assert "Cost so far: 2.00" in head
    assert "Cost" not in seen(browser(people.member).get(url(job), headers=fragment("job-head")))


def test_job_page_of_waiting_job_shows_reason_and_remedy(people: People) -> None:
    params = {"cluster": "This machine", "gpu_type": "TITANX", "types": None}
    job = make_job(owner=people.owner, quota=people.quota, reason_code="no_such_gpu", reason_params=params)
    text = seen(browser(people.owner).get(url(job)))
    assert "TITANX" in text
    assert "Remove the GPU request or choose another cluster." in text


def test_job_page_of_failure_shows_cause_and_last_lines_as_text(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    Replica.objects.filter(pk=replica_of(job).pk).update(exit_code=127)
    lines = [f"line {number}" for number in range(40)]
    write_log(job, ("\n".join(lines) + "\n\x1b[31m<b>nvidia-smi: not found</b>\x1b[0m\n").encode())
    response = browser(people.owner).get(url(job))
    assert response.context["last_lines"].split("\n") == [*lines[-19:], "<b>nvidia-smi: not found</b>"]
    assert b"&lt;b&gt;nvidia-smi" in response.content
    assert "Exit code 127" in seen(response)


def test_failure_line_leads_to_its_place_in_the_log(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota, reason_code=ReasonCode.EXIT_CODE)
    fault = {"code": "python", "origin": "own", "line": "KeyError: '<b>'", "role": "main", "index": 0}
    Attempt.objects.filter(job=job).update(fault={**fault, "offset": 12345})
    write_log(job, b"KeyError\n")
    page = browser(people.owner).get(url(job))
    assert "Replica main-0 failed: KeyError: '<b>'" in seen(page)
    assert b"<b>'" not in page.content
    link = f"/jobs/{job.public_id}/?tab=logs&replica=main/0&at=12345"
    assert link in seen(page)
    assert 'data-at="12345"' in seen(browser(people.owner).get(link))
    assert "KeyError" not in seen(browser(people.member).get(url(job)))


def test_job_page_shows_success_with_failed_replicas(people: People) -> None:
    spec = make_spec(
        roles=(RoleSpec(name="main", command="x", completion=CompletionPolicy(min_failed=None)),)
    )
    job = make_job(
        State.SUCCEEDED,
        owner=people.owner,
        quota=people.quota,
        spec=spec,
        replicas_failed=1,
        reason_code=ReasonCode.COMPLETED_WITH_FAILURES,
        reason_params={"failed": 1, "total": 1},
    )
    Replica.objects.filter(pk=replica_of(job).pk).update(state=ReplicaState.FAILED, exit_code=127)
    text = seen(browser(people.owner).get(url(job)))
    assert "1 of 1 replicas failed" in text
    assert "Exit code 127" in text
    assert 'data-tab-state="warning"' in text


def test_job_page_hides_failure_cause_from_members(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    write_log(job, b"a secret of hers\n")
    assert "a secret of hers" not in seen(browser(people.member).get(url(job)))


def test_job_page_keeps_submission_notes(people: People, job: Job) -> None:
    text = '{\n  "tmp": {}\n}'
    notes = [{"code": "form_snapshot", "pointer": "/tmp", "params": {"key": "tmp"}}]
    JobFile.objects.filter(job=job).update(text=text, notes=notes)
    shown = seen(browser(people.owner).get(url(job)))
    assert "tmp is cluster information from SCM's form" in shown
    assert "line 2, column" in shown


def test_job_page_links_origin_and_derived_jobs(people: People, job: Job) -> None:
    child = make_job(owner=people.owner, quota=people.quota, name="train-2", origin=job)
    hidden = make_job(owner=people.stranger, name="hidden", origin=job)
    assert f'<a href="/jobs/{job.public_id}/">train</a>' in seen(browser(people.owner).get(url(child)))
    parent = seen(browser(people.owner).get(url(job)))
    assert f'<a href="/jobs/{child.public_id}/">train-2</a>' in parent
    assert hidden.public_id not in parent


def test_job_page_opens_endpoints_once_ready(people: People, job: Job) -> None:
    endpoint = make_endpoint(replica_of(job), ready=False)
    assert "No process is listening yet." in seen(browser(people.owner).get(url(job)))
    endpoint.ready = True
    endpoint.save()
    for tab in ("", "replicas"):
        assert "Open jupyter" in seen(browser(people.owner).get(url(job, tab)))


def test_replicas_tab_is_paginated(people: People) -> None:
    spec = make_spec(roles=(RoleSpec(name="worker", command="x", replicas=250),))
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec)
    client = browser(people.owner)
    first = client.get(url(job, "replicas")).context["replicas"]
    assert [row.replica.index for row in first.rows] == list(range(100))
    assert first.previous_query == ""
    second = client.get(url(job) + first.next_query).context["replicas"]
    last = client.get(url(job) + second.next_query).context["replicas"]
    assert [row.replica.index for row in last.rows] == list(range(200, 250))
    assert last.next_query == ""
    back = client.get(url(job) + last.previous_query).context["replicas"]
    assert [row.replica.index for row in back.rows] == list(range(100, 200))


def test_replicas_tab_marks_unused_image(people: People, job: Job) -> None:
    Replica.objects.filter(pk=replica_of(job).pk).update(image_used=False)
    assert "image not used" in seen(browser(people.owner).get(url(job, "replicas")))


def test_replicas_tab_shows_earlier_attempt(people: People, job: Job) -> None:
    Replica.objects.filter(pk=replica_of(job).pk).update(node="old-node")
    make_replica(new_attempt(job, 2), node="new-node", run=1)
    Job.objects.filter(pk=job.pk).update(attempt_number=2)
    client = browser(people.owner)
    assert "new-node" in seen(client.get(url(job, "replicas")))
    assert "old-node" in seen(client.get(url(job, "replicas&attempt=1")))
    assert "Attempts" in seen(client.get(url(job)))


def test_logs_tab_opens_log_of_first_failure(people: People) -> None:
    spec = make_spec(roles=(RoleSpec(name="worker", command="x", replicas=3),))
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec)
    client = browser(people.owner)
    assert client.get(url(job, "logs")).context["log"].index == 0
    Replica.objects.filter(attempt=attempt_of(job), index=2).update(state=ReplicaState.FAILED)
    assert client.get(url(job, "logs")).context["log"].index == 2
    text = seen(client.get(url(job, "logs&replica=worker/1")))
    assert 'data-role="worker" data-index="1"' in text
    assert f'data-logs-url="/jobs/{job.public_id}/logs"' in text


@pytest.mark.parametrize("query", ["replica=nobody/0", "replica=main/99", "attempt=x"])
def test_logs_tab_with_missing_log_returns_page(people: People, job: Job, query: str) -> None:
    assert browser(people.owner).get(url(job, f"logs&{query}")).status_code == 200


def test_events_tab_shows_sentences_newest_first(people: People, job: Job) -> None:
    Event.objects.create(job=job, kind=Event.Kind.SUBMITTED, actor=people.owner)
    params = {"role": "main", "index": 0, "state": "FAILED", "exit_code": 127}
    Event.objects.create(job=job, kind=Event.Kind.REPLICA_ENDED, params=params)
    text = seen(browser(people.owner).get(url(job, "events")))
    assert text.index("main-0 ended: Failed") < text.index("Submitted by alice")
    assert "Exit code 127 (command not found)" in text


@pytest.mark.once
def test_events_tab_has_text_for_every_event_kind(people: People, job: Job) -> None:
    client = browser(people.owner)
    shown = {}
    for kind in Event.Kind.values:
        job.events.all().delete()
        job.events.create(kind=kind)
        tab = client.get(url(job, "events"), headers=fragment("job-tab"))
        shown[kind] = [told.text for told in tab.context["events"]]
    assert [kind for kind, texts in shown.items() if len(texts) != 1 or not texts[0]] == []


@pytest.mark.once
def test_job_page_renders_every_reason(people: People, job: Job) -> None:
    client = browser(people.owner)
    statuses = {}
    for code in ReasonCode:
        Job.objects.filter(pk=job.pk).update(reason_code=code, reason_params={})
        statuses[code] = client.get(url(job), headers=fragment("job-head")).status_code
    assert [code for code, status in statuses.items() if status != 200] == []
    assert client.get(url(job)).status_code == 200, "and the rest of the page, which has no reason"


@pytest.mark.parametrize("state", list(State))
def test_job_page_renders_every_state(people: People, state: State) -> None:
    job = make_job(state, owner=people.owner, quota=people.quota, dialect="openpai-v1")
    text = seen(browser(people.owner).get(url(job)))
    assert (f"/jobs/{job.public_id}/stop" in text) is not job.is_ended
    assert (f"/jobs/{job.public_id}/delete" in text) is job.is_ended


def live_logs(people: People, job: Job) -> list[str]:
    """The logs that the job's page opens with."""
    content = browser(people.owner).get(url(job)).content.decode()
    return re.findall(r'<log-view[^>]*data-role="([^"]*)"\s+data-index="0"', content)


@pytest.mark.parametrize("state", list(State))
def test_overview_shows_log_unless_head_shows_its_end(people: People, state: State) -> None:
    spec = make_spec(roles=(RoleSpec(name="chief", command="x"), RoleSpec(name="worker", command="x")))
    job = make_job(state, owner=people.owner, quota=people.quota, spec=spec, dialect="openpai-v1")
    assert live_logs(people, job) == ([] if state is State.FAILED else ["chief"])


def test_live_log_is_not_part_of_refreshed_fragments(people: People, job: Job) -> None:
    for part in ("job-head", "job-tab"):
        assert b"<log-view" not in browser(people.owner).get(url(job), headers=fragment(part)).content


def test_live_log_is_limited_to_readers(people: People, job: Job) -> None:
    assert b"<log-view" not in browser(people.member).get(url(job)).content
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    assert b"<log-view" in browser(people.member).get(url(job)).content


def test_job_page_query_count_does_not_grow_with_replicas_and_history(
    people: People, django_assert_max_num_queries: Queries
) -> None:
    spec = make_spec(roles=(RoleSpec(name="worker", command="x", replicas=60),))
    job = make_job(
        State.FAILED, owner=people.owner, quota=people.quota, spec=spec, dialect="openpai-v1", text="{}"
    )
    for replica in Replica.objects.filter(attempt__job=job)[:10]:
        make_endpoint(replica)
    for _each in range(30):
        Event.objects.create(job=job, kind=Event.Kind.SUBMITTED, actor=people.owner)
        make_job(owner=people.owner, quota=people.quota, origin=job)
    Attempt.objects.filter(job=job).update(ended_at=now())
    client = browser(people.owner)
    client.get(url(job))
    for tab, most in {"": 26, "replicas": 21, "logs": 17, "events": 15, "file": 15}.items():
        with django_assert_max_num_queries(most):
            client.get(url(job, tab))


def test_job_page_shows_retained_folder_and_container_of_failed_replica(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    folder, command = "jobs/abc/1/work/main-0", "podman export --output=x.tar x"
    params = {"exit_code": 1, "kept_s": 3600, "kept_folder": folder, "kept_container": command}
    rows = Replica.objects.filter(pk=replica_of(job).pk)
    rows.update(exit_code=1, reason_params=params, ended_at=now())
    text = seen(browser(people.owner).get(url(job)))
    assert "Retained for debugging. Will be removed:" in text
    assert folder in text
    assert command in text
    assert command not in seen(browser(people.member).get(url(job)))
    rows.update(ended_at=now() - timedelta(seconds=3601))
    assert "Retained for debugging" not in seen(browser(people.owner).get(url(job)))
    rows.update(reason_params={"exit_code": 1}, ended_at=now())
    assert "Retained for debugging" not in seen(browser(people.owner).get(url(job)))


def test_terminal_tab_shows_the_job_id_in_the_head(people: People, job: Job) -> None:
    AccessSession.objects.create(user=people.owner, replica=replica_of(job), kind=AccessSession.Kind.TERMINAL)
    head = seen(browser(people.owner).get(url(job, "terminal"))).partition('id="job-head"')[2]
    shown = head.partition('class="mono clip"')[2].partition("</span>")[0]
    assert shown.rpartition(">")[2] == job.public_id


def test_overview_of_never_started_job_has_no_log(people: People) -> None:
    never = make_job(State.STOPPED, owner=people.owner, quota=people.quota)
    Replica.objects.filter(attempt__job=never).delete()
    assert "<log-view" not in seen(browser(people.owner).get(url(never)))


def test_main_button_of_interactive_job_opens_its_endpoint(people: People, job: Job) -> None:
    client = browser(people.owner)
    assert "btn-primary" not in seen(client.get(url(job))).partition('id="job-head"')[2].partition("</h1>")[2]
    TemplateUse.objects.create(job=job, shipped="jupyterlab", number=SHIPPED["jupyterlab"].version)
    page = seen(client.get(url(job)))
    assert "Starting…" in page
    assert f"/jobs/{job.public_id}/opening?to=jupyterlab" in page
    endpoint = make_endpoint(replica_of(job), label="jupyterlab")
    page = seen(client.get(url(job)))
    assert "Starting…" not in page
    assert f'class="btn btn-primary" href="/endpoints/{endpoint.slug}/open"' in page
    assert "Open JupyterLab" in page
    assert "Open JupyterLab" not in seen(browser(people.member).get(url(job)))


def test_grid_shows_every_replica_and_filters_by_state(
    people: People, django_assert_max_num_queries: Queries
) -> None:
    spec = make_spec(roles=(RoleSpec(name="w", command="x", replicas=300),))
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec, dialect="openpai-v1")
    Job.objects.filter(pk=job.pk).update(replicas_total=300)
    failed = Replica.objects.filter(attempt__job=job, index__in=(1, 299))
    failed.update(state=ReplicaState.FAILED, exit_code=3)
    params = {"code": "straggler", "role": "w", "index": 1}
    Event.objects.create(job=job, kind=Event.Kind.FAULT, params=params, attempt=job.attempt_number)
    client = browser(people.owner)
    with django_assert_max_num_queries(22):
        page = seen(client.get(url(job, "replicas")))
    assert (page.count('class="cell-'), page.count('class="cell-failed"')) == (300, 2)
    slow = [row for row in page.partition("<tbody>")[2].split("</tr>") if "straggler" in row]
    assert ['replica=w/1"' in row for row in slow] == [True]
    assert f'href="/jobs/{job.public_id}/?tab=logs&replica=w/299"' in page
    rows = seen(client.get(url(job, "replicas") + "&state=FAILED")).partition("<tbody>")[2]
    assert rows.count("<tr>") == 2
    assert "w-299" in rows


def test_tab_keys_follow_their_order(people: People, job: Job) -> None:
    tabs = seen(browser(people.owner).get(url(job))).partition('class="tabs"')[2].partition("</nav>")[0]
    assert re.findall(r'data-key="(.)"', tabs) == [*"12345678t"]


def test_metrics_tab_shows_each_metric_its_unit_totals_and_stragglers(
    people: People, job: Job, django_assert_max_num_queries: Queries
) -> None:
    attempt = attempt_of(job)
    points = [[now().timestamp(), None, 6, 100, 1.5, None, 0.25, 0.25]]
    columns = {"at": now(), "cpu_s": 1, "cpu_milli": 60, "memory_mib": 100, "points": points}
    for replica in (replica_of(job), make_replica(attempt, "main", 1)):
        ReplicaUsage.objects.create(replica=replica, **columns)
    params = {"code": "straggler", "role": "main", "index": 1}
    Event.objects.create(job=job, kind=Event.Kind.FAULT, params=params, attempt=attempt.number)
    client = browser(people.owner)
    client.get(url(job, "metrics"))
    with django_assert_max_num_queries(21):
        page = seen(client.get(url(job, "metrics")))
    first, second, total = page.partition("<tbody>")[2].partition("</tbody>")[0].split("</tr>")[:3]
    for row, figures in ((first, ["6%", "1.5 MiB/s", "–", "0.2 MiB/s"]), (total, ["12%", "3.0 MiB/s", "–"])):
        for figure in figures:
            assert f'<td class="num">{figure}</td>' in row
    assert ("straggler" in first, "straggler" in second) == (False, True)
    charts = dict(re.findall(r'id="use-([a-z-]+)-title".*?data-usage="(.*?)"\s+role', page, re.DOTALL))
    assert set(charts) == {"cpu", "memory", "disk-read", "received", "sent"}
    series = json.loads(charts["disk-read"])
    assert list(series) == ["main-0", "main-1 (straggler)", "total"]
    assert series["total"][-1][1] == 3


@pytest.mark.parametrize("end_kind", ["", "user_stop"])
def test_replicas_ended_because_of_another_name_failed_replica(people: People, end_kind: str) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    attempt = attempt_of(job)
    Replica.objects.filter(attempt=attempt).delete()
    make_replica(attempt, "w", 0, state=ReplicaState.FAILED, exit_code=143)
    make_replica(
        attempt, "w", 1, state=ReplicaState.FAILED, exit_code=3, ended_at=now() - timedelta(seconds=9)
    )
    Attempt.objects.filter(pk=attempt.pk).update(end_kind=end_kind)
    page = seen(browser(people.owner).get(url(job, "replicas")))
    assert ("Stopped because w-1 failed" in page) is not bool(end_kind)
    assert "Exit code 3" in page
