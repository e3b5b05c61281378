"""SSH into a job's tasks, through the console's gateway, with a key that is made for the job."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from django.http.request import split_domain_port
from django.utils import timezone

from jobs.access import sessions, sshkeys
from jobs.api.vendors.openpai import errors, tickets
from jobs.api.vendors.openpai.job_names import find_job, name_of, requested_name
from jobs.api.vendors.operations import Call, JsonObject, Location, Operation, Parameter, Support
from jobs.states import ReplicaState
from jobs.submission.access import find_job as find_visible_job
from quotas.access import Verb
from quotas.accounts import access_keys

PURPOSE: Final = "ssh key"
MOST: Final = 1000
"""Tasks of an answer."""


def get_ssh_info(call: Call) -> JsonObject:
    """Return where the job's running tasks are entered, and where the key for them is made.

    The gateway finds the task by the user name, so `sshIp` has that too: `ssh root@NAME@HOST` and
    `ssh NAME@HOST` both lead there.
    """
    job = find_job(call, Verb.ENTER)
    name = requested_name(call)
    replicas = sessions.current_replicas(job).filter(state=ReplicaState.RUNNING.value).order_by("ordinal")
    logins = [sessions.login_name(job, replica) for replica in replicas[:MOST]]
    if not settings.CONSOLE_SSH_PORT or job.is_ended or not logins:
        raise errors.no_ssh_info(name)
    host = _host(call)
    ticket = tickets.issue(call, PURPOSE, [job.public_id])
    key_file = f"{name}.key"
    return {
        "containers": [
            {"id": login, "sshIp": f"{login}@{host}", "sshPort": str(settings.CONSOLE_SSH_PORT)}
            for login in logins
        ],
        "keyPair": {
            "folderPath": "",
            "publicKeyFileName": f"{key_file}.pub",
            "privateKeyFileName": key_file,
            "privateKeyDirectDownloadLink": call.request.build_absolute_uri(
                f"/rest-server/ssh-keys/{ticket}"
            ),
        },
    }


def _host(call: Call) -> str:
    return settings.CONSOLE_SSH_HOST or split_domain_port(call.request.get_host())[0].strip("[]")


def make_key(call: Call) -> HttpResponseBase:
    """Make a key for a job and send its private half, which is not stored.  A link works once."""
    ticket = call.values["ticket"]
    found = tickets.read(ticket, PURPOSE)
    if found is None or not _use(ticket):
        raise errors.no_ssh_info("")
    user, (public_id,) = found
    job = find_visible_job(user, public_id, Verb.ENTER)
    if job.is_ended:
        raise errors.no_ssh_info(name_of(job))
    _row, private = sshkeys.make(user, job)
    return HttpResponse(private, content_type="application/x-pem-file", headers={"Cache-Control": "no-store"})


def _use(ticket: str) -> bool:
    """Record that a link was used; return whether it was not before."""
    digest = sha256(f"openpai-ssh\0{ticket}".encode()).hexdigest()
    return access_keys.record_signature(digest, timezone.now() + 2 * tickets.LIFETIME)


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "getJobSsh",
        "GET",
        "rest-server/api/v2/jobs/<str:job>/ssh",
        get_ssh_info,
        scope="exec",
        parameters=(Parameter("job", location=Location.PATH, required=True),),
    ),
    Operation(
        "getPrivateKey",
        "GET",
        "rest-server/ssh-keys/<str:ticket>",
        make_key,
        scope="",
        parameters=(Parameter("ticket", location=Location.PATH, required=True),),
        support=Support.PARTIAL,
        note="A link works once, for five minutes; a new key revokes the previous one.",
    ),
)
