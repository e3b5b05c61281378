"""Log sinks in site.yaml, below their workspaces.  Credentials are entered in the admin, never in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.db.models.functions import Now

from console.site_yaml.shape import LogSinkShape
from jobs.dialects.spans import escape
from jobs.live import triggers
from jobs.messages.deliveries import delivery_message
from jobs.models import LogSink
from jobs.models.log_sinks import MOST_RECORDS
from jobs.outbound import addresses
from quotas.models import Workspace


def apply(
    workspace: Workspace,
    shapes: Mapping[str, LogSinkShape],
    pointer: str,
    put: Callable[[Any, str, Mapping[str, Any]], bool],
    fault: Callable[[str, str], None],
) -> list[tuple[LogSink, str]]:
    """Make a workspace's sinks as the file says; return those that it leaves out, with their pointers.

    The rows stay locked, since workers write their progress.  A sink whose address leads to another server
    loses its credential, as in the admin.
    """
    known = {row.name: row for row in LogSink.objects.select_for_update().filter(workspace=workspace)}
    for name, shape in shapes.items():
        at = f"{pointer}/{escape(name)}"
        row = known.get(name) or LogSink(workspace=workspace, name=name)
        try:
            addresses.check(shape.url)
        except addresses.Refused as refused:
            fault(f"{at}/url", delivery_message(refused.code, refused.detail))
            continue
        if shape.auth == "none" or _server(row.url) != _server(shape.url):
            row.encrypt("")
        if put(row, at, shape.model_dump()):
            rows = LogSink.objects.filter(pk=row.pk)
            rows.update(due_at=Now(), failures=0, batch_records=MOST_RECORDS)
            triggers.trigger_on_commit("forward_logs")
    return [(row, f"{pointer}/{escape(name)}") for name, row in known.items() if name not in shapes]


def _server(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def export(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Return a workspace's sinks as the file has them."""
    fields = LogSinkShape.model_fields
    found = {}
    for row in LogSink.objects.filter(workspace=workspace).order_by("name"):
        values = {name: getattr(row, name) for name in fields}
        found[row.name] = {
            name: str(value) if isinstance(value, str) else value
            for name, value in values.items()
            if value != fields[name].get_default(call_default_factory=True)
        }
    return found
