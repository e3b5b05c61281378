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
        help=_("Recommended characters: letters, digits, “-”, “_” and “.”; every system accepts them."),
        source=f"{BOTH}, {SCM_MANUAL}: basic information",
    ),
    Field(
        "description",
        "/description",
        FieldKind.LONG,
        _("Description"),
        PlainText(strip=False),
        help=_("Purpose of this run."),
        source="CreateJob: Description",
    ),
    Field(
        "workspace",
        "/workspace",
        FieldKind.TEXT,
        _("Workspace ID in the file"),
        help=_(
            "Workspace ID on the target system. To change where the job runs here, use the selection above."
        ),
        source=f"{BOTH}: target workspace",
    ),
    Field(
        "visibility",
        "/visibility",
        FieldKind.CHOICE,
        _("Visibility"),
        choice_of(Visibility, none=False),
        help=_(
            "Who can see the job file, logs and output files. All members see the name, state and resources."
        ),
        source="CreateJob: Accessibility",
        options=(
            ("private", _("Private: only I and workspace admins")),
            ("public", _("Workspace: all members")),
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
