"""Names and explanations of a Slurm cluster's settings, and their problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _

LABEL: Final = _("Slurm")

SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "way": (_("Connection"), _("How Slurm is asked: by its commands, or by slurmrestd (rest).")),
    "url": (
        _("slurmrestd address"),
        _("With rest: where slurmrestd listens, as http://…, https://… or unix:/…."),
    ),
    "user": (
        _("slurmrestd user"),
        _("With rest: the user as whom slurmrestd is asked. Empty: the console's own user."),
    ),
    "login.host": (
        _("Login node"),
        _("The node on which Slurm's programs run, by SSH. Empty: this machine."),
    ),
    "login.port": (_("Login node: port"), _("Port of its SSH server.")),
    "login.user": (_("Login node: user"), _("The user as whom the console signs in there.")),
    "login.private_key": (
        _("Login node: private key"),
        _("An OpenSSH key without a passphrase. It is stored encrypted and never shown again."),
    ),
    "login.host_key": (
        _("Login node: host key"),
        _("The node's public key, as ssh-keyscan prints it without the host name."),
    ),
    "partitions": (
        _("Partitions of quotas"),
        _("A quota's short name and its partition on each line: vision: gpu."),
    ),
    "partition": (_("Partition of other quotas"), _("Empty: Slurm's default partition.")),
    "accounts": (
        _("Accounts of workspaces"),
        _("A workspace's short name and its Slurm account on each line."),
    ),
    "account": (_("Account of other workspaces"), _("Empty: the submitting user's default account.")),
    "qos": (_("Qualities of service"), _("A priority from 1 to 9 and its QOS on each line: 9: high.")),
    "options": (
        _("Options for every job"),
        _("Further options of sbatch, one on each line, with a value or none: constraint: ib."),
    ),
    "allowed": (
        _("Options that scripts may give"),
        _("Options of sbatch that a submitted sbatch script may set itself, one on each line."),
    ),
    "images": (
        _("Container images"),
        _(
            "How jobs get their images: pyxis, apptainer, or oci for bundles run by Slurm itself. "
            "Empty: not at all."
        ),
    ),
    "allow_plain": (
        _("Run without an image"),
        _("Run a job that names an image without it, and mark the job so."),
    ),
    "mounts": (
        _("Mounts"),
        _("bind: places may be mounted anywhere, in a user namespace. links: only below the working folder."),
    ),
    "logs": (
        _("Folders of others' logs"),
        _("Folders below which the logs of jobs that others run are shown, one on each line."),
    ),
    "identity": (
        _("Jobs run as"),
        _(
            "single: the console's own user. sudo: each job's owner, by the helper. jwt: each job's "
            "owner, by tokens for slurmrestd."
        ),
    ),
    "helper": (_("Helper"), _("With sudo: the path of the program that acts as people.")),
    "slurm_user": (
        _("User of Slurm itself"),
        _("With jwt, where scontrol is not installed: the user as whom Slurm itself runs."),
    ),
    "write_back": (
        _("Write quotas back"),
        _("Let manage.py export_accounts write quotas' ceilings into Slurm's accounts."),
    ),
    "nodes_folder": (
        _("Folder on the nodes"),
        _("Where jobs' folders lie on nodes that share no folder with the console: /var/tmp."),
    ),
    "console_url": (
        _("Console address for the nodes"),
        _("The console's address as these nodes reach it. Empty: CONSOLE_URL."),
    ),
    "python": (
        _("Python on the nodes"),
        _("Python 3.11 or newer, for terminals, SSH and files: a path, or python3."),
    ),
    "ports": (
        _("Port range"),
        _("The first and the last port from which jobs' ports are taken: [20000, 29999]."),
    ),
    "timeout_s": (_("Time limit of commands (s)"), _("No program of Slurm's is waited for longer.")),
    "configuration": (_("slurm.conf"), _("Its path, where it is not in its usual place.")),
    "programs": (
        _("Folder of Slurm's programs"),
        _("The folder of sbatch and the others, where they are not on the PATH."),
    ),
}
"""The label and the help text of each setting that an admin may set, in the form's order."""

PROBLEMS: Final[Mapping[str, str]] = {
    "apart_as_owners": _(
        "A folder on the nodes goes with identity single: jobs run as their owners only where a "
        "folder is shared."
    ),
    "apart_without_url": _("A folder on the nodes needs the console's address: console_url, or CONSOLE_URL."),
    "jwt_by_rest": _("Identity jwt goes by slurmrestd: with way rest, and without a login node."),
    "no_console": _("This must be where nodes reach the console: https://… or http://…."),
    "no_keys": _(
        "The private key and the host key must be OpenSSH keys, the private one without a passphrase."
    ),
    "no_line": _("A value must be one line of text."),
    "no_name": _("“%(value)s” can't be a name in Slurm: letters, digits and ._,+- can."),
    "no_option": _(
        "“%(value)s” is no option of sbatch that can be given here: its name is expected, such as constraint."
    ),
    "no_path": _("“%(value)s” is no absolute path of letters, digits and ._+@-."),
    "no_priority": _("“%(value)s” is no priority from 1 to 9."),
    "no_url": _("With rest this must be where slurmrestd listens: http://…, https://… or unix:/…."),
}
"""Sentences of the problems that only these settings have, by code."""
