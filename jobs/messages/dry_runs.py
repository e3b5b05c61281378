"""Sentences about findings of a dry run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.language import gettext as _
from jobs.messages.reasons import reason_message


def dry_run_message(found: Mapping[str, Any]) -> str:
    """Return the sentence for an element of `DryRun.findings`."""
    if reason := found.get("reason"):
        return reason_message(reason["code"], reason["params"])
    words = {
        ("accepted", True): _("It would be accepted."),
        ("mounts", True): _("These places can be mounted: %(detail)s."),
        ("room", True): _("There is room for it on %(detail)s now."),
        ("image", True): _("The image %(detail)s is there."),
        ("image_pulled", None): _("The image %(detail)s is not there yet; it would be pulled first."),
        ("image_unused", None): _("The image %(detail)s would not be used: there is no container engine."),
        ("program", True): _("The program %(detail)s is there."),
        ("program", None): _("The program %(detail)s was not found."),
        ("user", True): _("Its processes would have the user id %(detail)s."),
        ("unable", None): _("This cluster has no dry run."),
        ("away", False): _("The cluster did not answer: %(detail)s"),
    }
    text = words.get((found["what"], found["ok"]), str(found["what"]))
    return text % {"detail": found.get("detail", "")}
