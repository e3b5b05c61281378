"""Checks, conversions and previews of job files; nothing is stored, so the scope `read` is enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import submission
from jobs.api.native import shapes
from jobs.api.native.base import REFUSED, NativeView
from jobs.dialects import sweep_words
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.messages.findings import of_note
from jobs.submission import builder
from jobs.submission.checks import feasibility, preview
from jobs.submission.checks.findings import conversion, examine, problems_of


class Check(NativeView):
    """Reading a file and telling what was found changes nothing, so `read` is enough."""

    @extend_schema(
        operation_id="check",
        request=shapes.CheckShape,
        responses={200: shapes.CheckedShape, 413: shapes.ProblemDetails, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Every problem and note of a job that would go there, with its place and, where there are any, a fix
        and actions.
        """
        data = shapes.CheckShape.parse(request.data)
        place = submission.JobTarget(data["workspace"] or "", data["cluster"] or "", data["quota"] or "")
        document = self._apply_actions(Document(data["file"], data["dialect"]), data["actions"])
        found = examine(self.person, document, place=place)
        unfilled = tuple(of_note(note) for note in sweep_words.notes(found.spec)) if found.spec else ()
        return Response(
            {
                "dialect": found.dialect or None,
                "file": document.text if data["actions"] else None,
                "ok": not found.problems,
                "problems": [finding.to_json() for finding in found.problems],
                "notes": [finding.to_json() for finding in (*found.notes, *unfilled)],
            }
        )

    def _apply_actions(self, document: Document, actions: Iterable[Mapping[str, str]]) -> Document:
        """The file with the actions done; one that can't be read stays as it is."""
        for action in actions:
            try:
                made = feasibility.apply_action(document, action["kind"], action["value"])
                document = made.pin(document.given)
            except Refused:
                return document
            except feasibility.CannotActError as error:
                raise ValidationError(
                    {"actions": [_("This action can't be applied to the file.")]}
                ) from error
        return document


class Convert(NativeView):
    """Nothing is stored, and nothing of anybody's is read: `read` is enough."""

    @extend_schema(
        operation_id="convert",
        request=shapes.ConversionShape,
        responses={200: shapes.ConvertedShape, 413: shapes.ProblemDetails, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """The file as `to` writes it; a file that can't be read is no error of the request."""
        data = shapes.ConversionShape.parse(request.data)
        return Response(conversion(Document(data["file"], data["dialect"]), data["to"]).to_json())


class PreviewView(NativeView):
    """Price, quota, whether it would start, and what would be sent: `read` is enough."""

    @extend_schema(
        operation_id="preview",
        request=shapes.SubmissionShape,
        responses={200: shapes.PreviewShape, 413: shapes.ProblemDetails, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """The same fields as a submission; `problems` where there is nothing to look at."""
        data = shapes.SubmissionShape.parse(request.data)
        place = submission.JobTarget(data["workspace"] or "", data["cluster"] or "", data["quota"] or "")
        document = Document(data["file"], data["dialect"])
        try:
            found = preview.of_document(self.person, document, place, keep_original=data["keep_original"])
        except preview.Unreadable as unreadable:
            problems = [each.to_json() for each in problems_of(data["file"], unreadable.problems)]
            return Response({"dialect": None, "problems": problems, "preview": None, "sent": None})
        return Response(
            {
                "dialect": found.dialect,
                "problems": [],
                "preview": render(found),
                "sent": self._render_submission(found),
            }
        )

    def _render_submission(self, found: preview.Preview) -> dict[str, Any] | None:
        try:
            return asdict(builder.render(self.person, found.quota, found.spec, found.options))
        except builder.NotRendered:
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
        place=submission.target_address(found.quota),
        quota=shapes.QuotaNamedShape.render(found.quota),
        amounts=found.amounts.to_json(),
        reason={"code": found.reason_code, "message": found.sentence},
        nodes=[node for node, _amounts in found.outcome.decision.placement] if found.starts else [],
        price=shapes.PriceShape.render(found, roles=roles, kept_seconds=0, kept_micro=None),
        levels=levels,
    )
