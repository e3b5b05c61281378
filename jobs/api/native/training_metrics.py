"""Training metrics of a job over the native API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, NativeView
from jobs.api.native.versions import IF_NONE_MATCH
from jobs.training_metrics import results
from quotas.access import Verb


class TrainingMetricShape(shapes.ApiShape):
    """A metric that the job printed: its last value, and its best one if its name tells what is best."""

    name = serializers.CharField()
    axis = serializers.ChoiceField(["step", "iteration", "epoch", ""], help_text="empty: values are counted")
    role = serializers.CharField(help_text="the role whose first replica printed it")
    count = serializers.IntegerField()
    last = serializers.FloatField()
    last_step = serializers.FloatField()
    goal = serializers.ChoiceField(["min", "max", ""])
    best = serializers.FloatField(allow_null=True)
    best_step = serializers.FloatField(allow_null=True)
    points = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField()),
        help_text="[step, last, least, greatest value], at most 400 of each metric",
    )


class TrainingMetricsShape(shapes.ApiShape):
    """At most 50 metrics."""

    metrics = TrainingMetricShape(many=True)


class TrainingMetrics(NativeView):
    """Training metrics of a job."""

    @extend_schema(
        operation_id="jobs_training_metrics",
        parameters=[IF_NONE_MATCH],
        responses={200: TrainingMetricsShape, 304: None, **ABSENT},
    )
    def get(self, request: Request, public_id: str) -> Response:
        """Return the metrics that the job printed, with their down-sampled points."""
        job = self.job(public_id, Verb.READ)
        found = results.list_curves(job)
        rows = [TrainingMetricShape.render(result, points=points) for result, points in found]
        return Response({"metrics": rows})
