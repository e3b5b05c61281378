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
    "api_group": _("has a Kubeflow apiVersion"),
    "command_and_roles": _("has parameters for the command and number of replicas"),
    "job_name": _("has jobName"),
    "job_name_and_roles": _("has jobName and taskRoles"),
    "job_spec": _("has jobSpec with a job type, queue or command"),
    "job_spec_alone": _("has jobSpec"),
    "job_type": _("has DisplayName and JobType"),
    "job_type_and_specs": _("has JobSpecs, and JobType or DisplayName"),
    "keys_seen": _("not valid, but has keys of this format"),
    "kind": _("has a matching kind"),
    "known_keys": _("most parameters match"),
    "protocol_version": _("has protocolVersion"),
    "roles_listed": _("has taskRoles"),
    "roles_named": _("has taskRoles as a mapping"),
    "sbatch_lines": _("has #SBATCH lines"),
    "shebang": _("is a script"),
    "specs_listed": _("has JobSpecs"),
}


def dialect_label(name: str) -> str:
    """Return the dialect's name in words; its own name when there are none."""
    label = _LABELS.get(name)
    return gettext(label) if label else name


def why_message(code: str) -> str:
    """Return half a sentence that goes on "taken for this dialect because"; "" for a code without one."""
    why = _WHY.get(code)
    return gettext(why) if why else ""
