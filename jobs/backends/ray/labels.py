"""Names and explanations of a Ray cluster's settings, and their problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import NAMENODES
from jobs.backends.settings import mark as _

LABEL: Final = _("Ray")

SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "url": (
        _("Dashboard address"),
        _("Address of Ray's dashboard, which serves its Jobs API: http://head:8265."),
    ),
    "token": (
        _("Authentication token"),
        _("The cluster's token, where RAY_AUTH_MODE is token. Stored encrypted and never shown again."),
    ),
    "console_url": (
        _("Console address"),
        _("Address at which the nodes reach the console. Empty: CONSOLE_URL."),
    ),
    "python": (
        _("Python on nodes"),
        _("Python 3.11 or newer with Ray: python3, if the nodes' PATH finds that one, or its absolute path."),
    ),
    "nodes_folder": (
        _("Node folder"),
        _("Folder on each node for jobs' files, writable for Ray's user. The nodes need not share it."),
    ),
    "checkpoints": (
        _("Checkpoint folder"),
        _("Folder that the console and all nodes share under this path. Empty: jobs have no CHECKPOINT_DIR."),
    ),
    "gpu_resources": (
        _("GPU type resources"),
        _(
            "Ray resources named after a GPU type, one unit for each GPU, one per line. Types that Ray "
            "detects itself are known."
        ),
    ),
    "allow_plain": (_("Run without image"), _("Run jobs that name an image directly on the nodes.")),
    "ports": (
        _("Port range"),
        _("Ports for jobs' services, outside of those of Ray's workers (10002–19999)."),
    ),
    "code_from": (
        _("Code sources"),
        _("Addresses that jobs' code may come from, one per line: https://git.example.org/team."),
    ),
    "code_mib": (_("Code size limit (MiB)"), _("Maximum size of a job's code.")),
    "hdfs": NAMENODES,
    "timeout_s": (_("Timeout (seconds)"), _("Longest time that Ray may take for an answer.")),
}

PROBLEMS: Final[Mapping[str, str]] = {
    "no_name": _("Invalid Ray resource “%(value)s”. Letters, digits and ._,+- are allowed."),
    "no_token": _("The token must be a single word of printable ASCII characters."),
    "no_url": _("Enter the address of Ray's dashboard: http://… or https://…."),
}
"""Sentences of the problems that only these settings have, by code."""
