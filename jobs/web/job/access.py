"""Access to a running job: the Connect and Terminal tabs, keys, sessions and endpoints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings
from django.contrib import messages as notes
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from jobs.access import sessions as entries
from jobs.access import sshhost, sshkeys
from jobs.access.gateway import addresses, visits
from jobs.access.sessions import EntryOrigin, EntryRefused
from jobs.logs import log_store
from jobs.messages.ssh import entry_message
from jobs.models import AccessSession, Endpoint, Job, LogStream, Replica, SshKey
from jobs.states import ReplicaState
from jobs.submission.access import find_job, refusal
from jobs.web.http import SignedIn, signed_in
from jobs.web.job.replicas import list_endpoints
from quotas import audit
from quotas.access import Verb, can
from quotas.accounts import sessions
from quotas.models import Action

MOST_REPLICAS: Final = 200
MOST_ENTRIES: Final = 50
SOME_PORT: Final = 8888
"""Shown where the job has no port of its own to show."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command to copy, and its purpose."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SshHost:
    """The address of the SSH gateway for a replica, and its login.

    `key_file` is the name of the key that was made for this job; empty when people have keys of their own.
    """

    name: str
    port: int
    login: str
    key_file: str
    forwarded: int

    @property
    def commands(self) -> list[Command]:
        """The commands, one for each client."""
        identity = f"-i {self.key_file} " if self.key_file else ""
        with_p = f"-p {self.port} {identity}"
        at = f"{self.login}@{self.name}"
        host = f"{self.login}@[{self.name}]" if ":" in self.name else at
        shell = f"ssh {with_p}".strip()
        return [
            Command(_("Shell"), f"ssh {with_p}{at}"),
            Command(_("Single command"), f"ssh {with_p}{at} nvidia-smi"),
            Command(_("Follow a file"), f"ssh {with_p}{at} tail -f FILE"),
            Command(_("Copy a file to the replica"), f"scp -P {self.port} {identity}FILE {host}:"),
            Command(_("Copy a file from the replica"), f"scp -P {self.port} {identity}{host}:FILE ."),
            Command(_("SFTP"), f"sftp -P {self.port} {identity}{host}"),
            Command(_("Sync a folder"), f"rsync -av -e '{shell}' FOLDER/ {host}:FOLDER/"),
            Command(_("Port forwarding"), self.forward(self.forwarded)),
        ]

    def forward(self, port: int) -> str:
        """The command after which the port of the job is one of the person's own machine."""
        identity = f"-i {self.key_file} " if self.key_file else ""
        return f"ssh -p {self.port} {identity}-N -L {port}:localhost:{port} {self.login}@{self.name}"

    @property
    def vscode(self) -> str:
        """The link that opens the host in VS Code."""
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
class ServedEndpoint:
    """An endpoint of a replica, with its link and commands, "" where there is none.

    `address` is where it listens inside the cluster's network, where the cluster shows that.
    """

    endpoint: Endpoint
    replica: Replica
    link: str
    forward: str
    curl: str
    address: str

    @property
    def found(self) -> bool:
        """Tell whether the endpoint was found and not declared."""
        return self.endpoint.source == Endpoint.Source.FOUND


def list_served(request: SignedIn, job: Job, host: SshHost | None) -> list[ServedEndpoint]:
    """Return the job's endpoints; `host` is the SSH gateway of the replica that is shown, if any."""
    rows = []
    for endpoint in list_endpoints(job, found=True):
        replica = endpoint.replica
        mine = host is not None and host.login == entries.login_name(job, replica)
        address = f"{_bracket(endpoint.host)}:{endpoint.port}" if job.cluster.shows_addresses else ""
        rows.append(
            ServedEndpoint(
                endpoint,
                replica,
                request.build_absolute_uri(reverse("endpoint_open", args=[endpoint.slug])),
                host.forward(endpoint.port) if host is not None and mine else "",
                f"curl http://{address or f'localhost:{endpoint.port}'}{endpoint.path or '/'}",
                address,
            )
        )
    return rows


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def list_other_commands(request: SignedIn, job: Job, replica: Replica) -> list[Command]:
    """Return commands without SSH: by the API and, for admins, on the console's machine."""
    stream = reverse("api_job_stream", args=[job.public_id]) + f"?log={quote(replica.role)}/{replica.index}"
    who = '-H "Authorization: Bearer $TOKEN"'
    found = [
        Command(_("Follow logs with an API token"), f"curl -N {who} '{request.build_absolute_uri(stream)}'")
    ]
    log = LogStream.objects.filter(
        attempt__job=job,
        attempt__number=job.attempt_number,
        run=replica.run,
        role=replica.role,
        index=replica.index,
    ).first()
    if request.user.is_superuser and log is not None and log.live_path:
        path = shlex.quote(str(log_store.jobs_root() / log.live_path))
        found.append(Command(_("Follow logs on the console's machine"), f"tail -F {path}"))
    return found


def connect_context(request: SignedIn, job: Job) -> dict[str, Any]:
    """Return the context of the Connect tab."""
    replicas = list(entries.current_replicas(job).order_by("ordinal")[:MOST_REPLICAS])
    replica = pick_replica(replicas, request.GET)
    keys = SshKey.objects.filter(user=request.user)
    job_key = keys.filter(job=job).first()
    host = None
    if replica is not None and settings.CONSOLE_SSH_PORT:
        own = keys.filter(job=None).exists()
        host = _host(request, job, replica, key_file=key_file_name(job) if job_key and not own else "")
    return {
        "ssh": host,
        "ssh_trouble": sshhost.trouble(settings.CONSOLE_HOME),
        "ssh_port": settings.CONSOLE_SSH_PORT,
        "host_key": sshhost.fingerprint(settings.CONSOLE_HOME),
        "has_key": keys.filter(job=None).exists() or job_key is not None,
        "job_key": job_key,
        "replicas": replicas,
        "replica": replica,
        "entries": list_sessions(job, AccessSession.Kind.SSH),
        "served": list_served(request, job, host),
        "elsewhere": list_other_commands(request, job, replica) if replica is not None else [],
    }


def list_sessions(job: Job, *kinds: AccessSession.Kind) -> Sequence[AccessSession]:
    """Return the job's open sessions of these kinds, the latest first."""
    rows = entries.open_entries().filter(replica__attempt__job=job, kind__in=kinds)
    return list(rows.select_related("user", "replica", "ssh_key")[:MOST_ENTRIES])


def pick_replica(replicas: Sequence[Replica], query: QueryDict) -> Replica | None:
    """The replica that the address names, else the first that runs, else the first."""
    named = [t for t in replicas if (t.role, str(t.index)) == (query.get("role"), query.get("index"))]
    running = [replica for replica in replicas if replica.state == ReplicaState.RUNNING]
    return next(iter([*named, *running, *replicas]), None)


def _host(request: SignedIn, job: Job, replica: Replica, *, key_file: str) -> SshHost:
    endpoint = Endpoint.objects.filter(replica=replica).order_by("label").first()
    return SshHost(
        name=sshhost.name(request.get_host()),
        port=settings.CONSOLE_SSH_PORT,
        login=entries.login_name(job, replica),
        key_file=key_file,
        forwarded=endpoint.port if endpoint else SOME_PORT,
    )


def key_file_name(job: Job) -> str:
    """The file name of the key that is made for a job."""
    return f"job-{job.public_id}.key"


@require_POST
@never_cache
@signed_in
def job_key(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Create a key for this job alone and send its private half, which is not stored."""
    job = find_job(request.user, public_id, Verb.ENTER)
    if job.is_ended:
        notes.error(request, _("The job has ended; access is no longer possible."))
        return redirect("job", public_id)
    _row, private = sshkeys.make(request.user, job)
    response = HttpResponse(private, content_type="application/x-pem-file")
    response["Content-Disposition"] = f'attachment; filename="{key_file_name(job)}"'
    return response


@require_POST
@signed_in
def end_entry(request: SignedIn, pk: int) -> HttpResponseBase:
    """End a session: one's own, or any in a job that one may enter."""
    entry = AccessSession.objects.filter(
        pk=pk, replica__attempt__job__in=Job.objects.visible_to(request.user)
    ).first()
    if entry is None:
        raise Http404
    if not entries.may_end(request.user, entry):
        raise PermissionDenied(
            _("Only the session's owner and users with access to the job can end this session.")
        )
    entries.ask_end(AccessSession.objects.filter(pk=entry.pk), request.user)
    notes.success(request, _("Ending the session."))
    tab = "connect" if entry.kind == AccessSession.Kind.SSH else "terminal"
    return redirect(f"{reverse('job', args=[entry.replica.attempt.job.public_id])}?tab={tab}")


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
"""The messages about a terminal that the page may show."""


def terminal_context(request: SignedIn, job: Job) -> dict[str, Any]:
    """Return the context of the Terminal tab: a given terminal, else one's own latest, else a new one."""
    replicas = list(entries.current_replicas(job).order_by("ordinal")[:MOST_REPLICAS])
    replica = pick_replica(replicas, request.GET)
    opened = list_sessions(job, AccessSession.Kind.TERMINAL)
    mine = [entry for entry in opened if entry.user_id == request.user.pk]
    named = [entry for entry in opened if entry.key == request.GET.get("open")]
    wants_new = "role" in request.GET
    return {
        "replicas": replicas,
        "replica": replica,
        "replica_runs": replica is not None and replica.state == ReplicaState.RUNNING and not job.is_ended,
        "terminals": opened,
        "shown": next(iter([*named, *([] if wants_new else mine)]), None),
        "ends": {why.value: str(why.label) for why in AccessSession.Why}
        | {code: entry_message(code) for code in MESSAGES},
    }


@require_POST
@signed_in
def new_terminal(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Open a terminal; the answer has its key, and it begins with the first connection."""
    job = find_job(request.user, public_id, Verb.ENTER)
    replicas = list(entries.current_replicas(job).order_by("ordinal")[:MOST_REPLICAS])
    replica = pick_replica(replicas, request.POST)
    if replica is None:
        return JsonResponse({"problem": entry_message("not_running")})
    way = EntryOrigin(
        AccessSession.Kind.TERMINAL,
        address=request.META.get("REMOTE_ADDR", ""),
        session_key=sessions.reference(request),
    )
    try:
        entry = entries.begin(request.user, replica, way)
    except EntryRefused as shut:
        return JsonResponse({"problem": entry_message(shut.code)})
    return JsonResponse({"key": entry.key})


DIGEST = re.compile(r"[0-9a-f]{64}")


class SeeOther(HttpResponseRedirect):
    """303: the next address is to be asked for with GET."""

    status_code = 303


@require_GET
@never_cache
@signed_in
def endpoint_open(request: SignedIn, slug: str) -> HttpResponseBase:
    """Redirect a person who may enter the job to the endpoint's own host.

    First without `browser`: the endpoint's host marks the browser and sends it back here with the mark's
    digest; then with it: the ticket that this answer carries is of use to that browser only.  `next` is the
    path to arrive at, where it is not the one at which the job says to begin.  GET changes nothing that
    matters, and nothing at all in another person's favour: a ticket that some other page made this browser
    fetch is of no use to that page.
    """
    endpoint = _find(request, slug)
    origin = addresses.endpoint_origin(request, slug)
    then = addresses.safe_path(request.GET.get("next") or endpoint.path)
    browser = request.GET.get("browser")
    if browser is None:
        return SeeOther(origin + addresses.own_path("start", next=then, console=request.get_host()))
    if not DIGEST.fullmatch(browser):
        raise BadRequest("browser is not a digest")
    ticket = visits.give_ticket(request.user, sessions.reference(request), endpoint, browser)
    return SeeOther(origin + addresses.own_path("enter", ticket=ticket, next=then))


def _find(request: SignedIn, slug: str) -> Endpoint:
    """Return the endpoint; raises Http404 if the person may not see it, PermissionDenied if not enter."""
    seen = Job.objects.visible_to(request.user)
    endpoint = (
        Endpoint.objects.filter(slug=slug, replica__attempt__job__in=seen)
        .select_related("replica__attempt__job__owner", "replica__attempt__job__workspace")
        .first()
    )
    if endpoint is None:
        audit.log_refusal(slug, action=Action.ENTER)  # whether or not there is such an endpoint
        raise Http404
    job = endpoint.replica.attempt.job
    if not can(request.user, Verb.ENTER, job):
        audit.log_refusal(slug, action=Action.ENTER, thing=job)
        raise PermissionDenied(refusal(Verb.ENTER, job))
    return endpoint
