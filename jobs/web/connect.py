"""The Connect tab: every way to what a job serves and into its replicas, a key for it, and who is inside."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

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

from jobs import logs
from jobs.access import entries, sshhost, sshkeys
from jobs.models import Endpoint, Entry, Job, LogStream, SshKey, Task
from jobs.states import TaskState
from jobs.submission.access import find_job
from jobs.web.http import SignedIn, signed_in
from jobs.web.replicas import endpoints_of
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
        return [
            Command(_("A shell"), f"ssh {with_p}{at}"),
            Command(_("One command"), f"ssh {with_p}{at} nvidia-smi"),
            Command(_("Follow a file that the job writes"), f"ssh {with_p}{at} tail -f FILE"),
            Command(_("Copy a file there"), f"scp -P {self.port} {identity}FILE {there}:"),
            Command(_("Copy a file from there"), f"scp -P {self.port} {identity}{there}:FILE ."),
            Command(_("Files, one by one"), f"sftp -P {self.port} {identity}{there}"),
            Command(_("Keep a folder in step"), f"rsync -av -e '{shell}' FOLDER/ {there}:FOLDER/"),
            Command(_("A port of the job on your machine"), self.forward(self.forwarded)),
        ]

    def forward(self, port: int) -> str:
        """The command after which the port of the job is one of the person's own machine."""
        identity = f"-i {self.key_file} " if self.key_file else ""
        return f"ssh -p {self.port} {identity}-N -L {port}:localhost:{port} {self.login}@{self.name}"

    @property
    def vscode(self) -> str:
        """The link that has VS Code open the host of the lines below."""
        return f"vscode://vscode-remote/ssh-remote+{quote(self.login)}/"

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


@dataclass(frozen=True, slots=True)
class Served:
    """An endpoint of a replica, and every way to it; what there is not is empty.

    `address` is where it listens inside the cluster's network, where the cluster shows that.
    """

    endpoint: Endpoint
    task: Task
    link: str
    forward: str
    curl: str
    address: str

    @property
    def found(self) -> bool:
        """Whether nobody said that it is served."""
        return self.endpoint.source == Endpoint.Source.FOUND


def served(request: SignedIn, job: Job, host: Host | None) -> list[Served]:
    """What the job serves; `host` is where SSH leads to the replica whose commands are shown, if it does."""
    rows = []
    for endpoint in endpoints_of(job, found=True):
        task = endpoint.task
        mine = host is not None and host.login == entries.login_name(job, task)
        address = f"{_bracketed(endpoint.host)}:{endpoint.port}" if job.cluster.shows_addresses else ""
        rows.append(
            Served(
                endpoint,
                task,
                request.build_absolute_uri(reverse("endpoint_open", args=[endpoint.slug])),
                host.forward(endpoint.port) if host is not None and mine else "",
                f"curl http://{address or f'localhost:{endpoint.port}'}{endpoint.path or '/'}",
                address,
            )
        )
    return rows


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def elsewhere(request: SignedIn, job: Job, task: Task) -> list[Command]:
    """What needs neither SSH nor a browser: the API, and, for the console's admins, its machine itself."""
    stream = reverse("api_job_stream", args=[job.public_id]) + f"?log={quote(task.role)}/{task.index}"
    who = '-H "Authorization: Bearer $TOKEN"'
    found = [
        Command(_("Follow its output, with a token"), f"curl -N {who} '{request.build_absolute_uri(stream)}'")
    ]
    log = LogStream.objects.filter(
        attempt__job=job, attempt__number=job.attempt_number, run=task.run, role=task.role, index=task.index
    ).first()
    if request.user.is_superuser and log is not None and log.live_path:
        path = shlex.quote(str(logs.jobs_root() / log.live_path))
        found.append(Command(_("Follow its output, on the console's machine"), f"tail -F {path}"))
    return found


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
        "served": served(request, job, host),
        "elsewhere": elsewhere(request, job, task) if task is not None else [],
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
