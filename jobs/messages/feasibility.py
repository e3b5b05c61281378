"""Sentences about what a cluster will never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "image_not_run": (
        _("%(cluster)s has no container engine and can't run the image %(image)s."),
        _("This cluster can't run images."),
    ),
    "no_gpus": (_("%(cluster)s has no GPUs."),),
    "no_gpu_of_type": (
        _("%(cluster)s has no %(gpu_type)s GPU. Available: %(types)s."),
        _("%(cluster)s has no %(gpu_type)s GPU."),
    ),
    "data_not_mapped": (
        _(
            "%(cluster)s can't mount %(place)s: address not allowed by its settings (%(setting)s). "
            "Ask an admin, or use data on the cluster."
        ),
    ),
    "storage_not_admitted": (
        _(
            "Jobs in %(workspace)s can't use %(place)s on %(cluster)s: not allowed by its settings "
            "(%(setting)s)."
        ),
    ),
    "dataset_not_known": (
        _("Dataset %(id)s is not registered in this console, and %(cluster)s doesn't know it."),
    ),
    "folder_not_admitted": (
        _(
            "Jobs in %(workspace)s can't use the folder %(place)s on %(cluster)s: not allowed by "
            "its settings (%(setting)s)."
        ),
    ),
    "code_not_fetched": (
        _("%(cluster)s can't fetch code from %(place)s: not allowed by its settings (%(setting)s)."),
        _(
            "%(cluster)s can't fetch code from %(place)s. Specify a git repository (https://…/name.git), an "
            "archive (https://…/name.zip, .tar.gz) or a folder on the cluster, or upload the code."
        ),
    ),
    "code_not_known": (_("Code %(id)s is not registered in this console, and %(cluster)s doesn't know it."),),
    "no_slurm": (_("%(cluster)s doesn't run Slurm: %(program)s not found."),),
    "one_node_without_slurm": (
        _(
            "%(cluster)s doesn't run Slurm and can't run a script on %(nodes)s nodes (no srun). "
            "Request one node (--nodes=1), or select a Slurm cluster."
        ),
    ),
    "no_modules": (_("%(cluster)s has no environment modules: “module” not found."),),
    "egress_not_enforced": (
        _(
            "%(workspace)s restricts its jobs' network access, and %(cluster)s can't enforce that. Select "
            "another cluster, or ask an admin."
        ),
    ),
    "fault_argument_misspelled": (_("There is no argument --%(name)s. Did you mean --%(close)s?"),),
    "fault_argument_wrong": (
        _("--%(name)s can't be %(value)s; expected: %(expected)s (%(source)s)."),
        _("--%(name)s has a wrong value."),
    ),
    "role_unknown": (
        _("Jobs in %(workspace)s can't use role %(role)s. Available: %(roles)s."),
        _("Jobs in %(workspace)s can't use role %(role)s. No roles available; a console admin can add them."),
    ),
    "role_no_default": (
        _("%(workspace)s has no default role. Available: %(roles)s."),
        _("%(workspace)s has no default role. No roles available; a console admin can add them."),
    ),
    "role_without_network": (
        _(
            "Jobs on %(cluster)s have no network of their own, so they can't be given credentials of role "
            "%(role)s. Submit without a role, or select another cluster."
        ),
    ),
    "size_not_known": (
        _("Size %(value)s is not in this console's catalog; its CPU, memory and GPUs are unknown."),
    ),
}
