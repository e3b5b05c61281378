"""What the console makes of a job file, without submitting it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from jobs.submission import feasibility
from jobs.submission.findings import examine


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
        asked = shapes.CheckShape.parse(request.data)
        place = submission.Place(asked["workspace"] or "", asked["cluster"] or "", asked["quota"] or "")
        document = self._apply_actions(Document(asked["file"], asked["dialect"]), asked["actions"])
        found = examine(self.person, document, place=place)
        unfilled = tuple(of_note(note) for note in sweep_words.notes(found.spec)) if found.spec else ()
        return Response(
            {
                "dialect": found.dialect or None,
                "file": document.text if asked["actions"] else None,
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
                raise ValidationError({"actions": [_("This can't be done to the file.")]}) from error
        return document
