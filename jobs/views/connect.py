"""The Connect tab: each SSH client's exact command for a replica, a key for this job, and who is inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.http.request import split_domain_port
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from jobs import entries, sshhost, sshkeys
from jobs.models import Endpoint, Entry, Job, SshKey, Task
from jobs.states import TaskState
from jobs.views.access import find_job
from jobs.views.http import SignedIn, signed_in
from quotas.access import Verb

MOST_REPLICAS: Final = 200
MOST_ENTRIES: Final = 50
SOME_PORT: Final = 8888
"""Shown where the job has no port of its own to show."""


@dataclass(frozen=True, slots=True)
class Command:
    """A line to copy, and what it is for."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Host:
    """Where SSH is served, as this person knows the console, and who it is there.

    `key_file` is the name of the key that was made for this job; empty when people have keys of their own.
    """

    name: str
    port: int
    login: str
    key_file: str
    forwarded: int

    @property
    def commands(self) -> list[Command]:
        """One for each client."""
        identity = f"-i {self.key_file} " if self.key_file else ""
        with_p = f"-p {self.port} {identity}"
        at = f"{self.login}@{self.name}"
        there = f"{self.login}@[{self.name}]" if ":" in self.name else at
        shell = f"ssh {with_p}".strip()
        forwards = f"ssh {with_p}-N -L {self.forwarded}:localhost:{self.forwarded} {at}"
        return [
            Command(_("A shell"), f"ssh {with_p}{at}"),
            Command(_("One command"), f"ssh {with_p}{at} nvidia-smi"),
            Command(_("Copy a file there"), f"scp -P {self.port} {identity}FILE {there}:"),
            Command(_("Files, one by one"), f"sftp -P {self.port} {identity}{there}"),
            Command(_("Keep a folder in step"), f"rsync -av -e '{shell}' FOLDER/ {there}:FOLDER/"),
            Command(_("A port of the job on your machine"), forwards),
        ]

    @property
    def config(self) -> str:
        """Lines for `~/.ssh/config`, after which `ssh NAME` is all, for PyCharm and VS Code too."""
        lines = [
            f"Host {self.login}",
            f"  HostName {self.name}",
            f"  Port {self.port}",
            f"  User {self.login}",
        ]
        if self.key_file:
            lines += [f"  IdentityFile ~/.ssh/{self.key_file}", "  IdentitiesOnly yes"]
        return "\n".join([*lines, "  ServerAliveInterval 30", ""])


def connect(request: SignedIn, job: Job) -> dict[str, Any]:
    """What the tab shows."""
    tasks = list(entries.current_tasks(job).order_by("ordinal")[:MOST_REPLICAS])
    task = picked(tasks, request.GET)
    keys = SshKey.objects.filter(user=request.user)
    job_key = keys.filter(job=job).first()
    host = None
    if task is not None and settings.CONSOLE_SSH_PORT:
        own = keys.filter(job=None).exists()
        host = _host(request, job, task, key_file=key_name(job) if job_key and not own else "")
    return {
        "ssh": host,
        "ssh_trouble": sshhost.trouble(settings.CONSOLE_HOME),
        "ssh_port": settings.CONSOLE_SSH_PORT,
        "host_key": sshhost.fingerprint(settings.CONSOLE_HOME),
        "has_key": keys.filter(job=None).exists() or job_key is not None,
        "job_key": job_key,
        "tasks": tasks,
        "task": task,
        "entries": inside(job, Entry.Kind.SSH),
    }


def inside(job: Job, *kinds: Entry.Kind) -> Sequence[Entry]:
    """Who is inside the job now, the latest first."""
    rows = entries.open_entries().filter(task__attempt__job=job, kind__in=kinds)
    return list(rows.select_related("user", "task", "ssh_key")[:MOST_ENTRIES])


def picked(tasks: Sequence[Task], query: QueryDict) -> Task | None:
    """The replica that the address names, else the first that runs, else the first."""
    named = [t for t in tasks if (t.role, str(t.index)) == (query.get("role"), query.get("index"))]
    running = [task for task in tasks if task.state == TaskState.RUNNING]
    return next(iter([*named, *running, *tasks]), None)


def _host(request: SignedIn, job: Job, task: Task, *, key_file: str) -> Host:
    name = settings.CONSOLE_SSH_HOST or split_domain_port(request.get_host())[0].strip("[]")
    endpoint = Endpoint.objects.filter(task=task).order_by("label").first()
    return Host(
        name=name,
        port=settings.CONSOLE_SSH_PORT,
        login=entries.login_name(job, task),
        key_file=key_file,
        forwarded=endpoint.port if endpoint else SOME_PORT,
    )


def key_name(job: Job) -> str:
    """The file name of the key that is made for a job."""
    return f"job-{job.public_id}.key"


@require_POST
@never_cache
@signed_in
def job_key(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Make a key for this job alone and send its private half, which is kept nowhere."""
    job = find_job(request.user, public_id, Verb.ENTER)
    if job.is_ended:
        notes.error(request, _("The job has ended: there is nothing left to enter."))
        return redirect("job", public_id)
    _row, private = sshkeys.make(request.user, job)
    response = HttpResponse(private, content_type="application/x-pem-file")
    response["Content-Disposition"] = f'attachment; filename="{key_name(job)}"'
    return response


@require_POST
@signed_in
def end_entry(request: SignedIn, pk: int) -> HttpResponseBase:
    """Have somebody's way into a job ended: one's own, or anybody's in a job that one may enter."""
    entry = Entry.objects.filter(pk=pk, task__attempt__job__in=Job.objects.visible_to(request.user)).first()
    if entry is None:
        raise Http404
    if not entries.may_end(request.user, entry):
        raise PermissionDenied(_("Only whoever is inside, and those who may enter the job, may end this."))
    entries.ask_end(Entry.objects.filter(pk=entry.pk), request.user)
    notes.success(request, _("It is being ended."))
    tab = "connect" if entry.kind == Entry.Kind.SSH else "terminal"
    return redirect(f"{reverse('job', args=[entry.task.attempt.job.public_id])}?tab={tab}")
