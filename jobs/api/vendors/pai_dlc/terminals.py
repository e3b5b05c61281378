"""Terminals of pods: GetWebTerminal."""

from __future__ import annotations

from typing import Final

from jobs.access import terminal_tickets
from jobs.access.gateway import addresses
from jobs.access.sessions import EntryRefused
from jobs.api.vendors.api import VendorError
from jobs.api.vendors.operations import Call, JsonObject, Kind, Location, Operation, Parameter, Support
from jobs.api.vendors.pai_dlc.identifiers import find_job, find_replica
from quotas.access import Verb
from quotas.models import AccessKey, AccessToken


def get_web_terminal(call: Call) -> JsonObject:
    """Answer the address of a terminal in a running pod, for one use within 30 seconds."""
    job = find_job(call, call.values["JobId"], Verb.ENTER)
    replica = find_replica(call, job, call.values["PodId"])
    credential = getattr(call.request, "auth", None)
    assert isinstance(credential, AccessKey | AccessToken)
    try:
        ticket = terminal_tickets.issue(call.person, replica, credential)
    except EntryRefused:
        raise VendorError(409, "OperationConflict", "The pod is not running.") from None
    is_encrypted = addresses.scheme_of(call.request.scheme or "http") == "https"
    host = f"{'wss' if is_encrypted else 'ws'}://{call.request.get_host()}"
    return {"WebTerminalUrl": f"{host}/terminals/tickets/{ticket}/socket"}


OPERATIONS: Final = (
    Operation(
        "GetWebTerminal",
        "GET",
        "api/v1/jobs/<str:JobId>/pods/<str:PodId>/webterminal",
        get_web_terminal,
        scope="exec",
        parameters=(
            Parameter("JobId", location=Location.PATH, required=True),
            Parameter("PodId", location=Location.PATH, required=True),
            Parameter("PodUid"),
            Parameter(
                "IsShared",
                Kind.BOOLEAN,
                default=False,
                support=Support.IGNORED,
                note="Every URL is one to share: it needs no sign-in, and works once within 30 seconds.",
            ),
        ),
        note=(
            "The URL is a WebSocket (ws, or wss with TLS) that speaks the vendor's JSON frames. The terminal "
            "ends with the access key or token that requested it."
        ),
    ),
)
