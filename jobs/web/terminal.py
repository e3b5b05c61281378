"""The Terminal tab: shells beside the job's replicas, one's own to type in and others' to look at."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponseBase, JsonResponse
from django.views.decorators.http import require_POST

from jobs.access import entries
from jobs.access.entries import Shut, Way
from jobs.messages.ssh import entry_message
from jobs.models import Entry, Job
from jobs.states import TaskState
from jobs.submission.access import find_job
from jobs.web.connect import MOST_REPLICAS, inside, picked
from jobs.web.http import SignedIn, signed_in
from quotas.access import Verb
from quotas.accounts import sessions

MESSAGES: Final = (
    "ended",
    "away",
    "engine_away",
    "not_running",
    "full",
    "full_person",
    "no_exec",
    "no_program",
    "limits",
    "failed",
)
"""What the page may have to say of a terminal."""


def terminal(request: SignedIn, job: Job) -> dict[str, Any]:
    """What the tab shows: the terminal that the address names, else one's own latest, else a new one."""
    tasks = list(entries.current_tasks(job).order_by("ordinal")[:MOST_REPLICAS])
    task = picked(tasks, request.GET)
    opened = inside(job, Entry.Kind.TERMINAL)
    mine = [entry for entry in opened if entry.user_id == request.user.pk]
    named = [entry for entry in opened if entry.key == request.GET.get("open")]
    wants_new = "role" in request.GET
    return {
        "tasks": tasks,
        "task": task,
        "task_runs": task is not None and task.state == TaskState.RUNNING and not job.is_ended,
        "terminals": opened,
        "shown": next(iter([*named, *([] if wants_new else mine)]), None),
        "ends": {why.value: str(why.label) for why in Entry.Why}
        | {code: entry_message(code) for code in MESSAGES},
    }


@require_POST
@signed_in
def new_terminal(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Let the person in; what answers carries the key of the terminal, which begins with its first look."""
    job = find_job(request.user, public_id, Verb.ENTER)
    tasks = list(entries.current_tasks(job).order_by("ordinal")[:MOST_REPLICAS])
    task = picked(tasks, request.POST)
    if task is None:
        return JsonResponse({"problem": entry_message("not_running")})
    way = Way(
        Entry.Kind.TERMINAL,
        address=request.META.get("REMOTE_ADDR", ""),
        session_key=sessions.reference(request),
    )
    try:
        entry = entries.begin(request.user, task, way)
    except Shut as shut:
        return JsonResponse({"problem": entry_message(shut.code)})
    return JsonResponse({"key": entry.key})
