"""Names and explanations of a Slurm cluster's settings, and their problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends import metrics_source
from jobs.backends.settings import NAMENODES
from jobs.backends.settings import mark as _

LABEL: Final = _("Slurm")

SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "way": (_("Connection"), _("commands: Slurm's command-line tools. rest: slurmrestd.")),
    "url": (
        _("slurmrestd address"),
        _("With rest: the address that slurmrestd listens on, as http://…, https://… or unix:/…."),
    ),
    "user": (
        _("slurmrestd user"),
        _("With rest: the user for requests to slurmrestd. Empty: the console's own user."),
    ),
    "login.host": (
        _("Login node"),
        _("Node on which Slurm's commands run, through SSH. Empty: this machine."),
    ),
    "login.port": (_("Login node: port"), _("Port of the SSH server.")),
    "login.user": (_("Login node: user"), _("User that the console signs in as.")),
    "login.private_key": (
        _("Login node: private key"),
        _("OpenSSH key without a passphrase. Stored encrypted and never shown again."),
    ),
    "login.host_key": (
        _("Login node: host key"),
        _("Public key of the node, as printed by ssh-keyscan without the host name."),
    ),
    "partitions": (
        _("Partitions by quota"),
        _("A quota's short name and its partition, one pair per line: vision: gpu."),
    ),
    "partition": (_("Default partition"), _("For all other quotas. Empty: Slurm's default partition.")),
    "accounts": (
        _("Accounts by workspace"),
        _("A workspace's short name and its Slurm account, one pair per line."),
    ),
    "account": (
        _("Default account"),
        _("For all other workspaces. Empty: the submitting user's default account."),
    ),
    "qos": (_("QOS by priority"), _("A priority from 1 to 9 and its QOS, one pair per line: 9: high.")),
    "options": (
        _("Options for all jobs"),
        _("Additional sbatch options, one per line, with or without a value: constraint: ib."),
    ),
    "allowed": (
        _("Options allowed in scripts"),
        _("sbatch options that submitted sbatch scripts can set themselves, one per line."),
    ),
    "images": (
        _("Container images"),
        _(
            "How jobs run images: pyxis, apptainer, or oci for bundles run by Slurm itself. Empty: "
            "images not supported."
        ),
    ),
    "allow_plain": (
        _("Allow running without an image"),
        _("Jobs that name an image run without it and are marked."),
    ),
    "rdma_feature": (
        _("Feature of nodes with RDMA"),
        _("Jobs with RDMA request nodes with this feature. Empty: they run on any node."),
    ),
    "mounts": (
        _("Mounts"),
        _("bind: mounts at any path, using a user namespace. links: only below the working folder."),
    ),
    "logs": (
        _("External job log folders"),
        _("Folders from which logs of external jobs are shown, one per line."),
    ),
    "identity": (
        _("Jobs run as"),
        _(
            "single: the console's own user. sudo: each job's owner, through the helper. jwt: each "
            "job's owner, through tokens for slurmrestd."
        ),
    ),
    "helper": (_("Helper"), _("With sudo: path of the program that runs commands as each user.")),
    "slurm_user": (
        _("Slurm user"),
        _("With jwt, if scontrol is not installed: the user that Slurm itself runs as."),
    ),
    "write_back": (
        _("Write quotas back"),
        _("Allow manage.py export_accounts to write quota limits to Slurm accounts."),
    ),
    "nodes_folder": (
        _("Node folder"),
        _("Location of job folders on nodes that share no folder with the console: /var/tmp."),
    ),
    "console_url": (
        _("Console address for nodes"),
        _("Address at which nodes reach the console. Empty: CONSOLE_URL."),
    ),
    "python": (
        _("Python on the nodes"),
        _("Python 3.11 or later for terminals, SSH and files: a path, or python3."),
    ),
    "hdfs": NAMENODES,
    **{f"metrics.{name}": label for name, label in metrics_source.LABELS.items()},
    "ports": (
        _("Port range"),
        _("First and last port available to jobs: [20000, 29999]."),
    ),
    "timeout_s": (_("Command timeout (s)"), _("Maximum time to wait for a Slurm command.")),
    "configuration": (_("slurm.conf"), _("Path, if not in the default location.")),
    "programs": (
        _("Slurm command folder"),
        _("Folder of sbatch and the other commands, if not on the PATH."),
    ),
}
"""The label and the help text of each setting that an admin may set, in the form's order."""

PROBLEMS: Final[Mapping[str, str]] = {
    "apart_as_owners": _(
        "A node folder requires identity single: jobs can only run as their owners with a shared folder."
    ),
    "apart_without_url": _("A node folder requires the console's address: set console_url or CONSOLE_URL."),
    "jwt_by_rest": _("Identity jwt requires slurmrestd: set way to rest and remove the login node."),
    "no_keys": _(
        "The private key and the host key must be OpenSSH keys; the private key must have no passphrase."
    ),
    "no_line": _("Values must be a single line of text."),
    "no_name": _("Invalid Slurm name “%(value)s”. Letters, digits and ._,+- are allowed."),
    "no_option": _("sbatch option “%(value)s” can't be set here. Enter an option name such as constraint."),
    "no_url": _("With rest, enter the address of slurmrestd: http://…, https://… or unix:/…."),
}
"""Sentences of the problems that only these settings have, by code."""
