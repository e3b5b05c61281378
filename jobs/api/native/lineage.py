"""Lineage and comparison of jobs over the native API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import problems, shapes
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.dialects import NAMES
from jobs.dialects.document import Document
from jobs.models import JobFile
from jobs.submission import lineage
from jobs.submission.lineage import HistoryStep
from quotas.access import Verb


class LineageStepShape(shapes.ApiShape):
    """A job of the lineage; `job` is null for a deleted one, `change` empty where it can't be read."""

    job = serializers.CharField(allow_null=True)
    name = serializers.CharField(allow_null=True)
    state = serializers.CharField(allow_null=True)
    owner = serializers.CharField(allow_null=True)
    change = serializers.CharField(allow_blank=True, help_text="to the job that it was copied from")


class LineageShape(shapes.ApiShape):
    """The jobs that a job was copied from, itself first, and its copies, the latest first."""

    steps = LineageStepShape(many=True)
    earlier = serializers.CharField(allow_null=True, help_text="the job whose lineage goes on from there")
    is_hidden = serializers.BooleanField(help_text="the next one is in a workspace of others")
    copies = LineageStepShape(many=True)
    before = serializers.CharField(allow_null=True, help_text="`before` of the next copies")


class ComparisonShape(shapes.ApiShape):
    """What is compared with the job: another job, or the text of a job file."""

    job = serializers.SlugField(required=False)
    file = shapes.TextField(required=False, trim_whitespace=False)
    dialect = serializers.ChoiceField(choices=NAMES, allow_null=True, default=None)


class ChangeShape(shapes.ApiShape):
    """A changed field of the job specification, as texts."""

    pointer = serializers.CharField()
    field = serializers.CharField()
    before = serializers.CharField(allow_blank=True)
    after = serializers.CharField(allow_blank=True)
    what = serializers.CharField(allow_blank=True, help_text="the changed option of a long text")


class DifferenceShape(shapes.ApiShape):
    """The difference to the job: by field, null where a file can't be read, and by line of equal formats."""

    changes = ChangeShape(many=True, allow_null=True)
    lines = serializers.ListField(child=serializers.CharField())


class History(NativeView):
    """Lineage of a job."""

    @extend_schema(
        operation_id="jobs_history",
        parameters=[OpenApiParameter("before", str, description="copies before this job")],
        responses={200: LineageShape, **ABSENT},
    )
    def get(self, request: Request, public_id: str) -> Response:
        """Return the jobs that this one was copied from, and its copies."""
        job = self.job(public_id, Verb.READ)
        past = lineage.trace(self.person, job)
        found = lineage.list_descendants(self.person, job, request.query_params.get("before", ""))
        copies = lineage.list_changes(self.person, job, found[: lineage.MOST])
        return Response(
            LineageShape.render(
                past,
                steps=[_render(step) for step in past.steps],
                earlier=past.earlier.public_id if past.earlier else None,
                copies=[_render(step) for step in copies],
                before=found[lineage.MOST - 1].public_id if len(found) > lineage.MOST else None,
            )
        )


def _render(step: HistoryStep) -> dict[str, Any]:
    job = step.job
    if job is None:
        return {"job": None, "name": None, "state": None, "owner": None, "change": ""}
    about = {"job": job.public_id, "name": job.name, "state": job.state}
    return {**about, "owner": job.owner.get_username(), "change": step.line}


class Difference(NativeView):
    """Comparison of a job with another, or with a file.  Nothing is stored: `read` is enough."""

    @extend_schema(
        operation_id="jobs_difference",
        request=ComparisonShape,
        responses={200: DifferenceShape, 413: shapes.ProblemDetails, **REFUSED, **ABSENT},
    )
    def post(self, request: Request, public_id: str) -> Response:
        """Return how the other differs from the job."""
        job = self.job(public_id, Verb.READ)
        data = ComparisonShape.parse(request.data)
        if ("job" in data) == ("file" in data):
            raise ValidationError({"job": [problems.one_of("job", "file")]})
        if "job" in data:
            other = self.job(data["job"], Verb.READ)
            document = Document(JobFile.objects.get(job=other).text, other.dialect)
        else:
            document = Document(data["file"], data["dialect"])
        found = lineage.compare_with_job(job, document)
        changes = found["changes"]
        rows = None if changes is None else [ChangeShape.render(each) for each in changes]
        return Response({"changes": rows, "lines": [line for _kind, line in found["lines"]]})
