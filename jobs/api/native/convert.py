"""A job file in another dialect, with everything that could not be carried over."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import shapes
from jobs.api.native.base import REFUSED, NativeView
from jobs.dialects.document import Document
from jobs.submission.conversion import conversion


class Convert(NativeView):
    """Nothing is stored, and nothing of anybody's is read: `read` is enough."""

    @extend_schema(
        operation_id="convert",
        request=shapes.ConversionShape,
        responses={200: shapes.ConvertedShape, 413: shapes.ProblemDetails, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """The file as `to` writes it; a file that can't be read is no error of the request."""
        asked = shapes.ConversionShape.parse(request.data)
        return Response(conversion(Document(asked["file"], asked["dialect"]), asked["to"]).to_json())
