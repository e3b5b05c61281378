"""Dry runs over the native API: a cluster says whether it would accept a job."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import submission
from jobs.api.native import problems, shapes
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from jobs.dialects.document import Document
from jobs.messages.dry_runs import dry_run_message
from jobs.models import DryRun
from jobs.submission import dry_runs
from jobs.submission.checks import preview
from quotas.access import Verb


class DryRunFindingShape(shapes.ApiShape):
    """One answer of the cluster; `ok` is null for a mere note, `pointer` a place in the JobSpec or empty."""

    ok = serializers.BooleanField(allow_null=True)
    message = serializers.CharField()
    pointer = serializers.CharField(allow_blank=True)


class DryRunShape(shapes.ApiShape):
    """A dry run; its `findings` come with the state `done`."""

    id = serializers.IntegerField(source="pk")
    state = serializers.ChoiceField(DryRun.State.values)
    findings = DryRunFindingShape(many=True)
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class DryRuns(NativeView):
    """Requests for dry runs."""

    scopes = {"POST": "submit"}

    @extend_schema(
        operation_id="dry_runs_create",
        request=shapes.SubmissionShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={
            202: DryRunShape,
            200: DryRunShape,
            **dict.fromkeys((404, 409, 413), shapes.ProblemDetails),
            **REFUSED,
        },
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Ask the cluster whether it would accept the job; the caller's earlier dry runs are deleted."""
        data = shapes.SubmissionShape.parse(request.data)
        origin = self.job(data["like"], Verb.READ) if data["like"] else None
        place = submission.JobTarget(*(data[name] or "" for name in ("workspace", "cluster", "quota")))
        document = Document(data["file"], data["dialect"])
        try:
            found = preview.of_document(
                self.person, document, place, origin, keep_original=data["keep_original"]
            )
            run = dry_runs.ask(self.person, found.quota, found.spec)
        except preview.Unreadable as unreadable:
            return problems.refuse_file(data["file"], unreadable.problems)
        except dry_runs.NotAllowed as error:
            raise PermissionDenied from error
        run.refresh_from_db()
        return Response(_render(run), status=202)


class OneDryRun(NativeView):
    """One dry run."""

    @extend_schema(operation_id="dry_runs_read", responses={200: DryRunShape, **ABSENT})
    def get(self, request: Request, dry_run: int) -> Response:
        """Return its state and findings; it is kept for an hour."""
        run = dry_runs.find(self.person, dry_run)
        if run is None:
            raise Http404
        return Response(_render(run))


def _render(run: DryRun) -> dict[str, Any]:
    found = [
        {"ok": each["ok"], "message": dry_run_message(each), "pointer": each.get("pointer", "")}
        for each in run.findings
    ]
    return DryRunShape.render(run, findings=found)
