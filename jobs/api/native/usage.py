"""Use and cost, as the page of reports tells them."""

from __future__ import annotations

from datetime import date

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import shapes
from jobs.api.native.base import REFUSED, NativeView
from quotas.billing import costs
from quotas.billing.costs import DIMENSIONS, ReportQuery
from quotas.models import Source


class UsageQuery(shapes.ApiShape):
    """What may be asked; days are those of the console's time zone."""

    since = serializers.DateField(required=False)
    until = serializers.DateField(required=False)
    by = serializers.ListField(child=serializers.ChoiceField(list(DIMENSIONS)), required=False)
    workspace = serializers.CharField(required=False, default="")
    person = serializers.CharField(required=False, default="")
    source = serializers.ChoiceField(  # type: ignore[assignment]  # the field of that name
        Source.choices, required=False, default=""
    )


class FiguresShape(shapes.ApiShape):
    """What was used in GPU-hours and core-hours, how long starts were waited for, what it cost."""

    gpu_hours = serializers.FloatField()
    core_hours = serializers.FloatField()
    borrowed_gpu_hours = serializers.FloatField()
    starts = serializers.IntegerField()
    mean_wait_seconds = serializers.IntegerField()
    cost = serializers.FloatField()


class UsageShape(shapes.ApiShape):
    """`rows` have the figures of `total`, and a key for each name in `by`."""

    since = serializers.DateField(source="query.since")
    until = serializers.DateField(source="query.until")
    by = serializers.ListField(child=serializers.CharField(), source="query.by")
    as_of = serializers.DateTimeField(help_text="complete until then")
    rows = serializers.ListField(child=serializers.DictField())
    total = FiguresShape()


class Usage(NativeView):
    """Reports of use and cost."""

    @extend_schema(
        parameters=[
            OpenApiParameter("since", OpenApiTypes.DATE, description="first day; this month's by default"),
            OpenApiParameter("until", OpenApiTypes.DATE, description="last day; today by default"),
            OpenApiParameter(
                "by", str, many=True, enum=list(DIMENSIONS), description="what divides the rows"
            ),
            OpenApiParameter("workspace", str),
            OpenApiParameter("person", str),
            OpenApiParameter("source", str, enum=[choice.value for choice in Source]),
        ],
        responses={200: UsageShape, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """What was used and what it cost: the caller's own, and everybody's in workspaces that they manage.

        With a token, what is not the caller's own needs the scope `admin` too.
        """
        query = self._read_query(request)
        report = costs.report(self.person, query, own=not self.allows("admin"))
        rows = [{**dict(zip(query.by, row.names, strict=True)), **row.figures} for row in report.rows]
        as_of = report.as_of.isoformat()  # with its offset, where a date in JSON has Z
        return Response(UsageShape.render(report, as_of=as_of, rows=rows, total=report.total.figures))

    @staticmethod
    def _read_query(request: Request) -> ReportQuery:
        given = {name: value for name, value in request.query_params.items() if name != "by" and value}
        data = UsageQuery.parse({**given, "by": request.query_params.getlist("by")})
        today = costs.today()
        since: date = data.get("since", today.replace(day=1))
        until: date = data.get("until", today)
        if since > until:
            raise ValidationError({"until": ["The last day comes before the first."]})
        by = tuple(dict.fromkeys(data.get("by") or ["person"]))
        return ReportQuery(since, until, by, data["workspace"], data["person"], data["source"])
