"""Basic information: what the job is called, and who sees it."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, SEED_SCM, Field, Kind, Rows, cell, choice_of
from jobs.form.measures import Text
from jobs.spec import Visibility

BASIC: Final = (
    Field(
        "name",
        "/name",
        Kind.TEXT,
        _("Job name"),
        Text(required=True, longest=256),
        help=_("Best from letters, digits, “-”, “_” and “.”: every system takes those."),
        source=f"{BOTH}, {SEED_SCM}: basic information",
    ),
    Field(
        "description",
        "/description",
        Kind.LONG,
        _("Description"),
        Text(strip=False),
        help=_("What this run is about, for whoever finds it later."),
        source="CreateJob: Description",
    ),
    Field(
        "workspace",
        "/workspace",
        Kind.TEXT,
        _("Workspace, as the file names it"),
        help=_("The workspace's id where the file goes. Where the job runs here is chosen above."),
        source=f"{BOTH}: target workspace",
    ),
    Field(
        "visibility",
        "/visibility",
        Kind.CHOICE,
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
    (cell("name", Kind.TEXT, _("Name")), cell("value", Kind.TEXT, _("Value"))),
    source=f"{BOTH}: tags",
)
