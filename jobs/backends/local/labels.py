"""Names and explanations of this machine's settings, and their problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import NAMENODES
from jobs.backends.settings import mark as _

LABEL: Final = _("This machine")

SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "cpu_milli": (_("CPU (milli-cores)"), _("Total available to jobs. Empty: everything the machine has.")),
    "memory_mib": (_("Memory (MiB)"), _("Total available to jobs. Empty: everything the machine has.")),
    "gpus": (
        _("GPUs by type"),
        _(
            "One type and count per line. GPUs listed here are only counted, not assigned to jobs "
            "as devices. Empty: GPUs found by NVML."
        ),
    ),
    "engine": (_("Container engine"), _("auto uses Podman if installed, otherwise Docker.")),
    "engine_options": (
        _("Engine options"),
        _("Placed before the engine's subcommand, one per line."),
    ),
    "allow_plain": (
        _("Allow running without an image"),
        _("If there is no container engine, jobs that name an image run without it and are marked."),
    ),
    "isolation": (
        _("Isolation"),
        _(
            "persons: a separate user ID for each user. namespaces: the console's user in separate "
            "namespaces. none: no isolation. Empty: the strongest available."
        ),
    ),
    "network": (
        _("Network"),
        _(
            "own: each job has a network of its own. host: jobs share this machine's network, e.g. for RDMA, "
            "and egress rules are not enforced. Empty: own if available."
        ),
    ),
    "job_range": (
        _("Job addresses"),
        _("Private IPv4 range for the replicas of a job; every job uses the same range."),
    ),
    "uplink_range": (
        _("Uplink addresses"),
        _("Private IPv4 range that nothing else here uses: four addresses for each job at a time."),
    ),
    "limits": (
        _("Limit enforcement"),
        _("auto uses control groups (cgroups) if available; watchdog never uses them."),
    ),
    "pids": (_("Processes per replica"), _("At most an eighth of the machine's kernel.pid_max.")),
    "log_mib": (_("Log size (MiB)"), _("Maximum log size of a running replica; 0 = no limit.")),
    "log_mib_s": (_("Log rate (MiB/s)"), _("Average over one minute; 0 = no limit.")),
    "work_mib": (_("Replica folder size (MiB)"), _("Maximum size of /job and /tmp; 0 = no limit.")),
    "ports": (
        _("Port range"),
        _(
            "First and last port available to jobs: [20000, 29999]. In a network of its own, each replica "
            "has all of them."
        ),
    ),
    "most_ports": (
        _("Extra ports per replica"),
        _(
            "How many ports of the range a replica can listen on in addition to its assigned "
            "ports; 0 = no limit."
        ),
    ),
    "show": (
        _("Visible folders"),
        _("Folders that jobs can use even in hidden or read-only locations, one per line."),
    ),
    "folders": (
        _("Mountable folders"),
        _(
            'Folders on this machine that jobs can mount, as JSON: {"/data": {"workspaces": '
            '["*"], "write": false}}.'
        ),
    ),
    "file_system": (_("Default file system"), _("Folder used as OpenPAI's $PAI_DEFAULT_FS_URI.")),
    "homes": (
        _("Home folders"),
        _(
            "Folder, e.g. on NFS, in which each person has a home folder that their jobs find as /home/NAME. "
            "Needs a user ID for each person: the console runs as root."
        ),
    ),
    "code_from": (
        _("Allowed code sources"),
        _(
            "Addresses or address prefixes from which code can be fetched, one per line; https://* "
            "allows any host."
        ),
    ),
    "code_sources": (
        _("Registered code"),
        _('Code IDs mapped to repositories, as JSON: {"c-1": {"uri": "https://…", "branch": "main"}}.'),
    ),
    "code_mib": (_("Code size (MiB)"), _("Maximum size of fetched code.")),
    "data_from": (
        _("Allowed data sources"),
        _("Addresses or address prefixes from which data can be fetched, one per line: s3://*."),
    ),
    "data_inside": (
        _("Internal data hosts"),
        _("Hosts on the internal network, with ports, from which data can be fetched, one per line."),
    ),
    "hdfs": NAMENODES,
    "data_mib": (_("Data size (MiB)"), _("Maximum size of the data fetched to one location.")),
    "cache_mib": (
        _("Cache per user (MiB)"),
        _("Maximum size of fetched data and installed packages cached for each user; 0 = no cache."),
    ),
    "prepare_s": (_("Preparation time limit (s)"), _("Maximum duration of each step before the command.")),
    "path": (_("Default PATH"), _("For jobs without a container.")),
    "python": (
        _("Python interpreter"),
        _("Python that starts and monitors jobs. Default: the console's own."),
    ),
    "uid_base": (_("Base user ID"), _("With isolation persons: user number n runs as this ID plus n.")),
    "node": (_("Machine name"), _("Shown on pages and used in job files.")),
    "host_ip": (_("Machine address"), _("Address at which jobs' ports are reached.")),
}
"""The label and the help text of each setting that an admin may set, in the form's order."""

PROBLEMS: Final[Mapping[str, str]] = {
    "no_range": _("%(value)s: enter a private IPv4 range of at least /24, e.g. 10.66.0.0/16."),
    "overlap": _("Overlaps %(other)s."),
    "several_hosts": _(
        "Several hosts serve this console (CONSOLE_SHARED_FOLDER): jobs can't run on one of them."
    ),
    "no_folder": _(
        '%(path)s: enter an absolute path with workspaces (a list of short names, or "*" for all) and write.'
    ),
}
"""Sentences of the problems that only these settings have, by code."""
