"""Priorities of jobs over the administration's API."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.admin_api.base import CHANGED, AdminView, ReasonShape
from jobs import submission
from jobs.api.native import shapes
from jobs.api.native.jobs import whole
from jobs.models import Job
from quotas.access import Verb
from quotas.audit import action_record
from quotas.models import AdminAction


class PriorityShape(ReasonShape):
    """A priority from 1 to 9: one level counts as one hour of waiting."""

    priority = serializers.IntegerField(min_value=1, max_value=9)


class Priority(AdminView):
    """The priority of a waiting job."""

    @extend_schema(
        operation_id="admin_jobs_priority",
        request=PriorityShape,
        responses={200: shapes.WholeJobShape, **CHANGED},
    )
    def put(self, request: Request, public_id: str) -> Response:
        """Change it; 409 if the job does not wait."""
        values = PriorityShape.parse(request.data)
        job: Job = self.job(public_id, Verb.CONTROL)
        if job.deleted_at is not None:
            raise Http404
        actor = self.actor(values["reason"])
        submission.prioritise(actor.user, job, values["priority"], why=actor.why)
        action_record.write_down(
            actor, AdminAction.Kind.JOBS, job.public_id, act="prioritise", jobs=[job.public_id]
        )
        return Response(whole(self, self.job(public_id, Verb.LIST)))
