"""The dialects' names as people know them, and why a text is taken for one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _

_LABELS: Final[Mapping[str, str]] = {
    "openpai-v1": _("OpenPAI / SCM JSON (protocol v1)"),
    "openpai-v2": _("OpenPAI YAML (protocol v2)"),
    "dlc": _("PAI-DLC CreateJob JSON"),
    "dlc-params": _("PAI-DLC command line (.params)"),
    "aihc": _("Baidu AIHC JSON"),
    "kubeflow": _("Kubeflow manifest"),
    "sbatch": _("Slurm sbatch script"),
}
_WHY: Final[Mapping[str, str]] = {
    "api_group": _("its apiVersion is Kubeflow's"),
    "command_and_roles": _("it has a command and a number of replicas, a parameter each"),
    "job_name": _("it has a jobName"),
    "job_name_and_roles": _("it has a jobName and taskRoles"),
    "job_spec": _("it has a jobSpec beside a job type, a queue or a command"),
    "job_spec_alone": _("it has a jobSpec"),
    "job_type": _("it has a DisplayName and a JobType"),
    "job_type_and_specs": _("it has JobSpecs beside a JobType or a DisplayName"),
    "keys_seen": _("it can't be read, but such keys stand in it"),
    "kind": _("it says so in its kind"),
    "known_keys": _("most of its parameters are known"),
    "protocol_version": _("it has a protocolVersion"),
    "roles_listed": _("it has taskRoles"),
    "roles_named": _("it has taskRoles by name"),
    "sbatch_lines": _("it has lines that begin with #SBATCH"),
    "shebang": _("it is a script"),
    "specs_listed": _("it has JobSpecs"),
}


def dialect_label(name: str) -> str:
    """Return the dialect's name in words; its own name when there are none."""
    label = _LABELS.get(name)
    return gettext(label) if label else name


def why_message(code: str) -> str:
    """Return half a sentence that goes on "taken for this dialect because"; "" for a code without one."""
    why = _WHY.get(code)
    return gettext(why) if why else ""
