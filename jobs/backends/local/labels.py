"""Names and explanations of this machine's settings, and their problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _

LABEL: Final = _("This machine")

SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "cpu_milli": (_("CPU (milli-cores)"), _("What jobs may share out. Empty: what the machine has.")),
    "memory_mib": (_("Memory (MiB)"), _("What jobs may share out. Empty: what the machine has.")),
    "gpus": (
        _("GPUs by type"),
        _(
            "A type and its number on each line; these are counted, not given to jobs as devices. "
            "Empty: what NVML finds."
        ),
    ),
    "engine": (_("Container engine"), _("auto takes podman, or else docker.")),
    "engine_options": (
        _("Options of the engine"),
        _("Put before the engine's subcommand, one on each line."),
    ),
    "allow_plain": (
        _("Run without an image"),
        _("Run a job that names an image without it, where there is no engine, and mark the job so."),
    ),
    "isolation": (
        _("Isolation"),
        _(
            "persons: a user id for each person. namespaces: the console's user in a view of its "
            "own. none. Empty: the best that works."
        ),
    ),
    "limits": (_("Limits"), _("watchdog leaves control groups alone.")),
    "pids": (_("Processes of a replica"), _("At most an eighth of the machine's kernel.pid_max.")),
    "log_mib": (_("Log size (MiB)"), _("How large a replica's log may be while it runs; 0 is no limit.")),
    "log_mib_s": (_("Log rate (MiB/s)"), _("On average over a minute; 0 is no limit.")),
    "work_mib": (_("Own folders of a replica (MiB)"), _("How much /job and /tmp may hold; 0 is no limit.")),
    "ports": (
        _("Port range"),
        _("The first and the last port from which jobs' ports are taken: [20000, 29999]."),
    ),
    "most_ports": (
        _("Further ports of a replica"),
        _("On how many ports of the range it may listen beside those it was given; 0 is no limit."),
    ),
    "show": (
        _("Visible folders"),
        _("Folders that jobs may use although they lie in a hidden or read-only place, one on each line."),
    ),
    "folders": (
        _("Folders for mounts"),
        _(
            'Folders of this machine that jobs may mount, as JSON: {"/data": {"workspaces": ["*"], '
            '"write": false}}.'
        ),
    ),
    "datasets": (
        _("Datasets"),
        _('Ids, or addresses of other systems, and the folders they are here, as JSON: {"d-1": "/data/x"}.'),
    ),
    "file_system": (_("Default file system"), _("The folder that stands for OpenPAI's $PAI_DEFAULT_FS_URI.")),
    "code_from": (
        _("Sources of code"),
        _(
            "Addresses, or what they begin with, from which code may be fetched, one on each line; "
            "https://* is any host."
        ),
    ),
    "code_sources": (
        _("Registered code"),
        _('Ids and the code that they are, as JSON: {"c-1": {"uri": "https://…", "branch": "main"}}.'),
    ),
    "code_mib": (_("Code size (MiB)"), _("How large fetched code may be.")),
    "data_from": (
        _("Sources of data"),
        _("Addresses, or what they begin with, from which data may be fetched, one on each line: s3://*."),
    ),
    "data_inside": (
        _("Data hosts in this network"),
        _("Hosts with their ports in this network that may be connected to for data, one on each line."),
    ),
    "data_mib": (_("Data size (MiB)"), _("How much may be fetched to one place.")),
    "cache_mib": (
        _("Cache of a person (MiB)"),
        _("How much of what was fetched and installed is kept for each person; 0 keeps nothing."),
    ),
    "prepare_s": (_("Time limit of preparation (s)"), _("How long each step before the command may take.")),
    "path": (_("PATH of plain jobs"), _("For jobs without a container.")),
    "python": (
        _("Python for supervisors"),
        _("The Python that starts and watches jobs; by default the console's own."),
    ),
    "uid_base": (_("First user id"), _("With isolation persons: person number n has this user id plus n.")),
    "node": (_("Name of the machine"), _("What the machine is called on pages and in job files.")),
    "host_ip": (_("Address of the machine"), _("Where jobs' ports are reached.")),
}
"""The label and the help text of each setting that an admin may set, in the form's order."""

PROBLEMS: Final[Mapping[str, str]] = {
    "no_folder": _(
        '%(path)s: an absolute path with workspaces (a list of short names, "*" for all) and write '
        "is expected."
    ),
}
"""Sentences of the problems that only these settings have, by code."""
