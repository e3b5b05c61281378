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
    "image_unfilled": (
        _("The image %(image)s still contains the placeholder %(placeholder)s. Replace it."),
        _("The image's name still contains a placeholder. Replace it."),
    ),
    "no_gpus": (_("%(cluster)s has no GPUs."),),
    "no_gpu_of_type": (
        _("%(cluster)s has no %(gpu_type)s GPU. Available: %(types)s."),
        _("%(cluster)s has no %(gpu_type)s GPU."),
    ),
    "data_not_mapped": (
        _(
            "%(cluster)s can't mount %(place)s: not in its storage mappings. Mapped are: %(near)s. A console "
            "admin can add a mapping (Administration › Storage)."
        ),
        _(
            "%(cluster)s can't mount %(place)s: not in its storage mappings. A console admin can add one "
            "(Administration › Storage)."
        ),
    ),
    "storage_not_admitted": (
        _("Jobs in %(workspace)s can't use %(place)s: its storage mapping is for other workspaces."),
    ),
    "storage_read_only": (
        _("Output can't go to %(place)s, which is read-only by its storage mapping on %(cluster)s."),
    ),
    "storage_not_writable": (
        _(
            "Jobs on %(cluster)s can only read %(place)s, which is a bucket here. Mount it read-only, or "
            "select another cluster."
        ),
    ),
    "dataset_not_known": (
        _(
            "Dataset %(id)s is neither registered in this console nor in the storage mappings of "
            "%(cluster)s. Mapped are: %(near)s."
        ),
        _("Dataset %(id)s is neither registered in this console nor in the storage mappings of %(cluster)s."),
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
    "fault_patterns_many": (_("At most %(most)s output patterns."),),
    "fault_pattern_long": (_("Output pattern %(number)s: at most %(most)s characters."),),
    "fault_pattern_wrong": (
        _("Output pattern %(number)s is no regular expression that can be used: %(problem)s."),
        _("Output pattern %(number)s is no regular expression that can be used."),
    ),
    "fault_pattern_slow": (_("Output pattern %(number)s takes too long. Use a simpler one."),),
    "fault_pattern_any": (_("Output pattern %(number)s matches every line. Use a longer one."),),
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
            "Jobs on %(cluster)s can't be given credentials of role %(role)s. Submit without a role, or "
            "select another cluster."
        ),
    ),
    "container_without_command": (
        _(
            "On %(cluster)s, container %(name)s of role %(role)s needs a command. Add one, or select a "
            "cluster with a container engine."
        ),
    ),
    "container_image_alone": (
        _(
            "Container %(name)s has an image, but role %(role)s has none. Add an image to the role, or "
            "remove the container's."
        ),
    ),
    "size_not_known": (
        _("Size %(value)s is not in this console's catalog; its CPU, memory and GPUs are unknown."),
    ),
}
