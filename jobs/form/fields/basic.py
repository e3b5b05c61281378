"""Basic information: the job's name and visibility."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, SCM_MANUAL, Field, FieldKind, Rows, cell, choice_of
from jobs.form.measures import PlainText
from jobs.spec import Visibility

BASIC: Final = (
    Field(
        "name",
        "/name",
        FieldKind.TEXT,
        _("Job name"),
        PlainText(required=True, longest=256),
        help=_("Best from letters, digits, “-”, “_” and “.”: every system takes those."),
        source=f"{BOTH}, {SCM_MANUAL}: basic information",
    ),
    Field(
        "description",
        "/description",
        FieldKind.LONG,
        _("Description"),
        PlainText(strip=False),
        help=_("What this run is about, for whoever finds it later."),
        source="CreateJob: Description",
    ),
    Field(
        "workspace",
        "/workspace",
        FieldKind.TEXT,
        _("Workspace, as the file names it"),
        help=_("The workspace's id where the file goes. Where the job runs here is chosen above."),
        source=f"{BOTH}: target workspace",
    ),
    Field(
        "visibility",
        "/visibility",
        FieldKind.CHOICE,
        _("Visibility"),
        choice_of(Visibility, none=False),
        help=_("Others in the workspace always see name, state and resources; the rest if you let them."),
        source="CreateJob: Accessibility",
        options=(
            ("private", _("Only I and the workspace's admins see its file, log and files")),
            ("public", _("Everybody in the workspace sees its file, log and files")),
        ),
    ),
)

TAGS: Final = Rows(
    "tags",
    "/tags",
    _("Tags"),
    (cell("name", FieldKind.TEXT, _("Name")), cell("value", FieldKind.TEXT, _("Value"))),
    source=f"{BOTH}: tags",
)
