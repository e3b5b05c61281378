"""Actions on a job over the native API: run again, hold, release, stop, keep, extend, replace."""

from __future__ import annotations

from typing import Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import submission
from jobs.api.native import problems, shapes
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent, key_of
from jobs.api.native.jobs import address, whole
from jobs.api.native.versions import IF_MATCH
from jobs.dialects.base import Refused
from jobs.models import JobFile
from jobs.submission import job_control
from jobs.submission.checks import suggested_actions
from jobs.submission.checks.suggested_actions import SuggestedAction
from quotas.access import Verb

SECOND_COPY: Final = OpenApiParameter(
    "second_copy", bool, description="start a second copy although the job has not ended"
)
MEMORY: Final = OpenApiParameter(
    "memory", str, enum=["more"], description="after the job ran out of memory: with twice as much"
)
CHANGED: Final = {
    200: shapes.WholeJobShape,
    **dict.fromkeys((409, 412), shapes.ProblemDetails),
    **REFUSED,
    **ABSENT,
}
"""Answers of an action that changes a job."""


class SuggestionShape(shapes.ApiShape):
    """A change with which a waiting job would start now; `value` is the new number, GPU type or target."""

    kind = serializers.ChoiceField(["replicas", "gpus", "gpu_type", "quota"])
    value = serializers.CharField(max_length=200)


class SuggestionsShape(shapes.ApiShape):
    """Changes with which the job would start now, the smallest first."""

    suggestions = SuggestionShape(many=True)


class JobAction(NativeView):
    """A POST that changes a job and answers it."""

    scopes = {"POST": "stop"}
    has_versions = True

    def answer(self, public_id: str) -> Response:
        """Answer the job as it is now."""
        return Response(whole(self, self.job(public_id, Verb.LIST)))


class RetryJob(NativeView):
    """The same once more."""

    scopes = {"POST": "submit"}

    @extend_schema(
        operation_id="jobs_again",
        request=None,
        parameters=[IDEMPOTENCY_KEY, SECOND_COPY, MEMORY],
        responses={
            201: shapes.WholeJobShape,
            200: shapes.WholeJobShape,
            409: shapes.ProblemDetails,
            **REFUSED,
            **ABSENT,
        },
    )
    def post(self, request: Request, public_id: str) -> Response:
        """A new job as this one was, linked with it, in the same place.

        409 where it has not ended, or has no memory to be changed.
        """
        origin = self.job(public_id, Verb.READ)
        second_copy = request.query_params.get("second_copy") == "true"
        try:
            done = submission.retry(
                self.person,
                origin,
                idempotency_key=key_of(self),
                second_copy=second_copy,
                memory=request.query_params.get("memory") == "more",
            )
        except Refused as refused:
            return problems.refuse_file(JobFile.objects.get(job=origin).text, refused.problems)
        headers = {"Location": address(self, done.job)}
        return Response(whole(self, done.job), status=200 if done.replayed else 201, headers=headers)


class Hold(JobAction):
    """Keeping a waiting job from starting."""

    @extend_schema(
        operation_id="jobs_hold",
        request=shapes.HoldShape,
        parameters=[IF_MATCH],
        responses=CHANGED,
    )
    def post(self, request: Request, public_id: str) -> Response:
        """It keeps its age; 409 when it does not wait, or is held already."""
        job = self.job(public_id, Verb.CONTROL)
        why = shapes.HoldShape.parse(request.data)["reason"]
        try:
            submission.hold(self.person, job, why=why)
        except submission.ReasonMissing as problem:
            raise ValidationError({"reason": [ErrorDetail(str(problem), code="required")]}) from problem
        return self.answer(public_id)


class Release(JobAction):
    """Letting a held job start when its turn comes."""

    @extend_schema(
        operation_id="jobs_release",
        request=None,
        parameters=[IF_MATCH],
        responses=CHANGED,
    )
    def post(self, request: Request, public_id: str) -> Response:
        """409 when it is not held."""
        submission.release(self.person, self.job(public_id, Verb.CONTROL))
        return self.answer(public_id)


class Stop(JobAction):
    """The end of a job."""

    @extend_schema(operation_id="jobs_stop", request=None, parameters=[IF_MATCH], responses=CHANGED)
    def post(self, request: Request, public_id: str) -> Response:
        """Ask for it; the state changes when the end is observed.  An ended job stays as it ended."""
        submission.stop(self.person, self.job(public_id, Verb.CONTROL))
        return self.answer(public_id)


class Keep(JobAction):
    """Keeping an idle job."""

    @extend_schema(operation_id="jobs_keep", request=None, parameters=[IF_MATCH], responses=CHANGED)
    def post(self, request: Request, public_id: str) -> Response:
        """Its idle time begins anew; 409 if it is not idle, or was kept as often as it may."""
        submission.keep(self.person, self.job(public_id, Verb.CONTROL))
        return self.answer(public_id)


class Extend(JobAction):
    """A longer time limit."""

    scopes = {"POST": "submit"}

    @extend_schema(operation_id="jobs_extend", request=None, parameters=[IF_MATCH], responses=CHANGED)
    def post(self, request: Request, public_id: str) -> Response:
        """Add an hour to an interactive job of the caller; 409 where its template or quota allows none."""
        job_control.extend(self.person, self.job(public_id, Verb.CONTROL))
        return self.answer(public_id)


class Suggestions(NativeView):
    """Changes of a waiting job."""

    @extend_schema(operation_id="jobs_suggestions", responses={200: SuggestionsShape, **ABSENT})
    def get(self, request: Request, public_id: str) -> Response:
        """List the changes with which the job would start now; `replace` makes one."""
        found = suggested_actions.suggest(self.person, self.job(public_id, Verb.CONTROL))
        return Response({"suggestions": [SuggestionShape.render(each) for each in found]})


class Replace(JobAction):
    """Another job in place of a waiting one."""

    scopes = {"POST": "submit"}

    @extend_schema(
        operation_id="jobs_replace",
        request=SuggestionShape,
        parameters=[IDEMPOTENCY_KEY, IF_MATCH],
        responses={201: shapes.WholeJobShape, **CHANGED},
    )
    @idempotent
    def post(self, request: Request, public_id: str) -> Response:
        """Stop a waiting job and submit it with one change; 409 if it does not wait."""
        job = self.job(public_id, Verb.CONTROL)
        change = SuggestedAction(**SuggestionShape.parse(request.data))
        place = submission.parse_target(change.value) if change.kind == "quota" else None
        file = JobFile.objects.get(job=job)
        try:
            spec = suggested_actions.apply_change(file.spec, change)
            made = submission.replace_queued(self.person, job, spec, place).job
        except suggested_actions.NoSuchChange as error:
            raise ValidationError({"kind": [problems.cannot_change()]}) from error
        except Refused as refused:
            return problems.refuse_file(file.text, refused.problems)
        return Response(whole(self, made), status=201, headers={"Location": address(self, made)})
