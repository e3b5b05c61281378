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
        ("accepted", True): _("Would be accepted."),
        ("mounts", True): _("Can mount: %(detail)s."),
        ("room", True): _("Free capacity on %(detail)s now."),
        ("image", True): _("Image %(detail)s is available."),
        ("image_pulled", None): _("Image %(detail)s is not on the cluster yet and would be pulled first."),
        ("image_unused", None): _("Image %(detail)s would not be used: the cluster has no container engine."),
        ("program", True): _("Program %(detail)s found."),
        ("program", None): _("Program %(detail)s not found."),
        ("user", True): _("Processes would run with user ID %(detail)s."),
        ("unable", None): _("This cluster doesn't support dry runs."),
        ("away", False): _("The cluster did not respond: %(detail)s"),
    }
    text = words.get((found["what"], found["ok"]), str(found["what"]))
    return text % {"detail": found.get("detail", "")}
