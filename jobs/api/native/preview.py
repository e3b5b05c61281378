"""What would become of a job file if it were submitted now; nothing is stored."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import submission
from jobs.api.native import shapes
from jobs.api.native.base import REFUSED, NativeView
from jobs.dialects.document import Document
from jobs.submission import preview, sending
from jobs.submission.findings import problems_of


class Preview(NativeView):
    """Price, quota, whether it would start, and what would be sent: `read` is enough."""

    @extend_schema(
        operation_id="preview",
        request=shapes.SubmissionShape,
        responses={200: shapes.PreviewShape, 413: shapes.ProblemDetails, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """The same fields as a submission; `problems` where there is nothing to look at."""
        asked = shapes.SubmissionShape.parse(request.data)
        place = submission.Place(asked["workspace"] or "", asked["cluster"] or "", asked["quota"] or "")
        document = Document(asked["file"], asked["dialect"])
        try:
            found = preview.of_document(self.person, document, place, keep_original=asked["keep_original"])
        except preview.Unreadable as unreadable:
            problems = [each.to_json() for each in problems_of(asked["file"], unreadable.problems)]
            return Response({"dialect": None, "problems": problems, "preview": None, "sent": None})
        return Response(
            {
                "dialect": found.dialect,
                "problems": [],
                "preview": render(found),
                "sent": self._sent(found),
            }
        )

    def _sent(self, found: preview.Preview) -> dict[str, Any] | None:
        try:
            return asdict(sending.rendered(self.person, found.quota, found.spec, found.options))
        except sending.NotRendered:
            return None


def render(found: preview.Preview) -> dict[str, Any]:
    """Return what would become of the job, as the API tells it."""
    roles = [shapes.PriceOfRoleShape.render(line, spec=line.spec or None) for line in found.estimate.lines]
    levels = [
        shapes.LevelShape.render(
            level,
            of="person" if level.of_person else "quota",
            resources=[shapes.LevelShareShape.render(share) for share in level.shares],
        )
        for level in found.levels
    ]
    return shapes.WouldBeShape.render(
        found,
        place=submission.address_of(found.quota),
        quota=shapes.QuotaNamedShape.render(found.quota),
        amounts=found.amounts.to_json(),
        reason={"code": found.reason_code, "message": found.sentence},
        nodes=[node for node, _amounts in found.trial.decision.placement] if found.starts else [],
        price=shapes.PriceShape.render(found, roles=roles),
        levels=levels,
    )
