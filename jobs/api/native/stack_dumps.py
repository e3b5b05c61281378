"""Stack dumps of a job over the native API."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.fault_tolerance.stacks import StackVerdict
from jobs.models import Attempt, StackDump
from jobs.submission import stack_dumps
from quotas.access import Verb


class SuspectShape(shapes.ApiShape):
    """A rank that is elsewhere than the others."""

    role = serializers.CharField()
    index = serializers.IntegerField()
    node = serializers.CharField()
    rank = serializers.CharField()
    place = serializers.CharField()


class StackDumpShape(shapes.ApiShape):
    """A dump of the stacks of all replicas.  The result is null until it is done."""

    id = serializers.IntegerField(source="pk")
    attempt = serializers.IntegerField(source="attempt.number")
    done = serializers.BooleanField(source="is_over")
    requested_at = serializers.DateTimeField(source="created_at")
    verdict = serializers.ChoiceField([each.value for each in StackVerdict], allow_null=True)
    place = serializers.CharField(allow_null=True)
    ranks = serializers.IntegerField(allow_null=True)
    suspects = SuspectShape(many=True)
    missing = serializers.DictField(child=serializers.CharField())


class WholeStackDumpShape(StackDumpShape):
    """A dump with all stacks as text."""

    report = serializers.CharField()


class StackDumpsShape(shapes.ApiShape):
    """The newest dumps of the job's newest attempt, the newest first."""

    stacks = StackDumpShape(many=True)


class StackDumps(NativeView):
    """Stack dumps of a job's newest attempt."""

    scopes = {"POST": "exec"}

    @extend_schema(operation_id="jobs_stacks", responses={200: StackDumpsShape, **ABSENT})
    def get(self, request: Request, public_id: str) -> Response:
        """List them, without the stacks."""
        job = self.job(public_id, Verb.READ)
        attempt = Attempt.objects.filter(job=job).order_by("-number").first()
        rows = stack_dumps.list_dumps(attempt) if attempt else ()
        return Response({"stacks": [_render(StackDumpShape, row) for row in rows]})

    @extend_schema(
        operation_id="jobs_stacks_new",
        request=None,
        responses={202: StackDumpShape, 409: shapes.ProblemDetails, **REFUSED, **ABSENT},
    )
    def post(self, request: Request, public_id: str) -> Response:
        """Request the stacks of all running replicas; 409 where none runs."""
        row = stack_dumps.ask(self.person, self.job(public_id, Verb.ENTER))
        return Response(_render(StackDumpShape, row), status=202)


class OneStackDump(NativeView):
    """A stack dump."""

    @extend_schema(operation_id="jobs_stacks_one", responses={200: WholeStackDumpShape, **ABSENT})
    def get(self, request: Request, public_id: str, dump: int) -> Response:
        """With all stacks."""
        row = stack_dumps.find(self.job(public_id, Verb.READ), dump)
        if row is None:
            raise Http404
        return Response(_render(WholeStackDumpShape, row))


def _render(shape: type[StackDumpShape], row: StackDump) -> dict[str, object]:
    told = row.comparison or {}
    names = ("verdict", "place", "ranks")
    known = {name: told.get(name) for name in names}
    return shape.render(row, **known, suspects=told.get("suspects", []), missing=told.get("missing", {}))
