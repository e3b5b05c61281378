"""What the console makes of a job file, without submitting it."""

from __future__ import annotations

from typing import cast

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import shapes
from jobs.api.native.base import REFUSED, NativeView
from jobs.views.findings import examine
from quotas.models import User


class Check(NativeView):
    """Reading a file and telling what was found changes nothing, so `read` is enough."""

    @extend_schema(
        operation_id="check",
        request=shapes.FileShape,
        responses={200: shapes.CheckedShape, 413: shapes.ProblemDetails, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Every problem and note, with its place and, where there is one, a fix."""
        shape = shapes.FileShape(data=request.data)
        shape.is_valid(raise_exception=True)
        user = cast("User", request.user)
        found = examine(user, shape.validated_data["file"], shape.validated_data["dialect"])
        return Response(
            {
                "dialect": found.dialect or None,
                "ok": not found.problems,
                "problems": [finding.to_json() for finding in found.problems],
                "notes": [finding.to_json() for finding in found.notes],
            }
        )
