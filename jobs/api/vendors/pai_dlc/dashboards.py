"""Dashboards that jobs serve: GetDashboard and GetRayDashboard."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.urls import reverse

from jobs.access import sessions
from jobs.api.vendors.api import ErrorKind
from jobs.api.vendors.operations import Call, JsonObject, Kind, Location, Operation, Parameter, Support
from jobs.api.vendors.pai_dlc.identifiers import find_job
from jobs.api.vendors.pai_dlc.refusals import refusal
from jobs.models import Endpoint
from quotas.access import Verb

LABELS: Final = frozenset({"dashboard"})
RAY_LABELS: Final = frozenset({"ray-dashboard", "dashboard"})
"""Labels of the ports at which a job serves a dashboard."""


def get_dashboard(call: Call) -> JsonObject:
    """Answer the address of the job's dashboard."""
    return {"url": _find_address(call, LABELS)}


def get_ray_dashboard(call: Call) -> JsonObject:
    """Answer the address of the job's Ray dashboard."""
    return {"url": _find_address(call, RAY_LABELS), "metricsEnabled": "false"}


def _find_address(call: Call, labels: Collection[str]) -> str:
    job = find_job(call, call.values["JobId"], Verb.ENTER)
    if call.values["isShared"]:
        raise refusal(ErrorKind.UNSUPPORTED, "isShared is not supported: endpoints have no links for others.")
    rows = Endpoint.objects.filter(replica__in=sessions.current_replicas(job), label__in=labels)
    endpoint = rows.order_by("-label", "replica__ordinal", "ordinal").first()
    if endpoint is None or job.is_ended:
        raise refusal(ErrorKind.NOT_FOUND, f"The job serves no port labelled {' or '.join(sorted(labels))}.")
    return call.request.build_absolute_uri(reverse("endpoint_open", args=[endpoint.slug]))


_PARAMETERS: Final = (
    Parameter("JobId", location=Location.PATH, required=True),
    Parameter(
        "isShared",
        Kind.BOOLEAN,
        default=False,
        support=Support.REFUSED,
        note="endpoints are open to people who are signed in and have access to the job.",
    ),
    Parameter("token", Kind.ANY, support=Support.IGNORED, note="There are no sharing tokens."),
)

OPERATIONS: Final = (
    Operation(
        "GetDashboard",
        "GET",
        "api/v1/jobs/<str:JobId>/dashboard",
        get_dashboard,
        parameters=_PARAMETERS,
        support=Support.PARTIAL,
        note="The address of the port that the job labels dashboard, for people who are signed in.",
        since="1.11.6",
    ),
    Operation(
        "GetRayDashboard",
        "GET",
        "api/v1/jobs/<str:JobId>/rayDashboard",
        get_ray_dashboard,
        parameters=_PARAMETERS,
        support=Support.PARTIAL,
        note=(
            "The address of the port that the job labels ray-dashboard or dashboard, for people who are "
            "signed in; it has no metrics of CloudMonitor."
        ),
        since="1.11.6",
    ),
)
