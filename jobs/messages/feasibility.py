"""Sentences about what a cluster will never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "image_not_run": (
        _("%(cluster)s has no container engine: it can't run the image %(image)s."),
        _("This cluster can't run images."),
    ),
    "no_gpus": (_("%(cluster)s has no GPUs."),),
    "no_gpu_of_type": (
        _("%(cluster)s has no %(gpu_type)s GPU; it has %(types)s."),
        _("%(cluster)s has no %(gpu_type)s GPU."),
    ),
    "data_not_mapped": (
        _(
            "%(cluster)s can't mount %(place)s: its settings (%(setting)s) don't admit the address. Ask an "
            "admin, or use data that the cluster has."
        ),
    ),
    "dataset_not_known": (
        _("The dataset %(id)s is not registered here, and %(cluster)s does not know it either."),
    ),
    "folder_not_admitted": (
        _(
            "Jobs of %(workspace)s can't use the folder %(place)s of %(cluster)s: its settings (%(setting)s) "
            "don't admit it."
        ),
    ),
    "code_not_fetched": (
        _("%(cluster)s does not fetch code from %(place)s: its settings (%(setting)s) don't admit it."),
        _(
            "%(cluster)s does not fetch code from %(place)s. Upload the code, or name a folder of the "
            "cluster."
        ),
    ),
    "code_not_known": (
        _("The code %(id)s is not registered here, and %(cluster)s does not know it either."),
    ),
    "no_slurm": (_("%(cluster)s does not run Slurm: %(program)s does not exist there."),),
    "one_node_without_slurm": (
        _(
            "%(cluster)s does not run Slurm: it can't run a script on %(nodes)s nodes, which srun would "
            "reach. Ask for one node (--nodes=1), or choose a Slurm cluster."
        ),
    ),
    "no_modules": (_("%(cluster)s has no environment modules: “module” does not exist there."),),
    "size_not_known": (
        _(
            "The size %(value)s is not in this console's catalog, so that its CPU, memory and GPUs are not "
            "known."
        ),
    ),
}
