"""The framework's advanced settings: each by itself, and all as text."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, SEED_JA, Field, Kind, Words
from jobs.form.measures import Choice, Pairs, Text
from jobs.form.rules.advanced import SETTINGS, Setting
from jobs.form.within import Member


def _option(setting: Setting) -> Field:
    """An advanced setting of the framework, under the name that the pages have for it."""
    options: tuple[tuple[str, Words], ...] = (
        ("", _("As the target has it")),
        *((value, value) for value in setting.values),
    )
    choice = Choice({"": "", **{value: value for value in setting.values}})
    return Field(
        f"option-{setting.key}",
        "/framework_options",
        Kind.CHOICE if setting.values else Kind.TEXT,
        setting.key,
        choice if setting.values else Text(),
        help=_(setting.help),
        source=f"{SEED_JA}: advanced parameters",
        options=options if setting.values else (),
        within=Member(setting.key),
    )


ADVANCED: Final = (
    *(_option(setting) for setting in SETTINGS),
    Field(
        "options",
        "/framework_options",
        Kind.LONG,
        _("All advanced framework settings"),
        Pairs(),
        help=_("The same and any others as text: key=value, one a line or parted by commas, or JSON."),
        source=f"{BOTH}: advanced framework settings",
        placeholder="createSvcForAllWorkers=true,customPortNumPerWorker=100",
    ),
)
