"""Web terminals of pods: the address of a WebSocket with a ticket for one use."""

from __future__ import annotations

from jobs.access import terminal_tickets
from jobs.access.gateway import addresses
from jobs.access.sessions import EntryRefused
from jobs.api.vendors.aihc import names
from jobs.api.vendors.api import VendorError
from jobs.api.vendors.operations import Call, JsonObject
from quotas.access import Verb
from quotas.models import AccessKey


def describe_job_webterminal(call: Call) -> JsonObject:
    """Return the address of a terminal, as version 2 does."""
    return {"webTerminalUrl": _open(call)}


def describe_job_webterminal_v1(call: Call) -> JsonObject:
    """Return the address of a terminal, as version 1 does."""
    return {"WebTerminalUrl": _open(call)}


def _open(call: Call) -> str:
    """Return the address of a terminal in a running pod.  Raises VendorError if it does not run."""
    job = names.find_job(call, Verb.ENTER)
    replica = names.find_replica(job, call.values["podName"])
    key = getattr(call.request, "auth", None)
    assert isinstance(key, AccessKey)
    try:
        ticket = terminal_tickets.issue(call.person, replica, key)
    except EntryRefused:
        raise VendorError(409, "OperationConflict", "The pod is not running.") from None
    is_encrypted = addresses.scheme_of(call.request.scheme or "http") == "https"
    host = f"{'wss' if is_encrypted else 'ws'}://{call.request.get_host()}"
    return f"{host}/terminals/tickets/{ticket}/socket"
