"""What becomes of a job's fields on a backend, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _

FATES: Final[Mapping[str, str]] = {
    "honoured": _("Applied."),
    "console": _("Applied by the console."),
    "approximated": _("Applied differently here."),
    "refused": _("Not taken here."),
    "kept": _("Kept for export, not applied here."),
}

WHY: Final[Mapping[str, str]] = {
    "binding_of_cluster": _("Whether tasks are bound to cores, the cluster's own settings decide."),
    "clouds_own": _("It belongs to the vendor's cloud, and goes back there with the file."),
    "cpu_by_groups": _("Where the machine lets the console limit CPU time; elsewhere it only counts."),
    "disk_unlimited": _("The job uses the disk of its machine, without a limit of its own."),
    "folders_stay": _("The folders of all replicas stay until the job's files are removed."),
    "for_people": _("It is for whoever reads the file."),
    "framework_by_variables": _(
        "Each framework finds its peers by the variables it knows; a Slurm job has one node."
    ),
    "framework_variables": _("Each framework finds its peers by the variables it knows."),
    "image_by_cluster": _(
        "By Pyxis, Apptainer or Slurm itself, as the cluster's settings say; without them it is refused."
    ),
    "image_by_engine": _("Where podman or Docker is installed; elsewhere the cluster's settings decide."),
    "labels_as_features": _(
        "A label with the value true is a feature of the nodes; others are not asked for."
    ),
    "login_of_nodes": _("Its nodes log in to registries by themselves."),
    "name_inside": _("The job knows it; in the cluster's queue it stands under a key."),
    "network_of_nodes": _("Which network connects the nodes, the cluster decides."),
    "no_labels": _("The nodes here have no labels."),
    "nobody_watches": _("Nothing watches over the job here; use its retries instead."),
    "not_here": _("This cluster has nothing like it."),
    "not_kept_here": _("A job gives its resources back when it has ended."),
    "one_machine": _("All replicas are on one machine and need no such network."),
    "options_of_memory": _("Only the size of a memory mount counts."),
    "own_tensorboard": _("Start TensorBoard in the job: it is found and can be opened from the job's page."),
    "path_by_view": _("Where the nodes let people have user namespaces, or below the working folder."),
    "place_by_settings": _("Which places there are, the cluster's settings say."),
    "place_chosen": _("Where the job runs is chosen here and not by the file."),
    "place_of_nodes": _("Folders that the nodes have."),
    "quota_by_name": _("A quota of that short name is taken where none is chosen."),
    "registered_ids": _("Ids that are registered in this console."),
    "shm_of_node": _("The job uses the shared memory of its node."),
    "size_as_amounts": _("It is taken as the amounts that it is known to hold."),
    "whole_cpus": _("It is rounded up to whole CPUs."),
}


def applied_message(fate: str, why: str = "") -> str:
    """What becomes of a field, and where there is more to say about it, why."""
    if not why:
        return gettext(FATES[fate])
    return gettext("%(fate)s %(why)s") % {"fate": gettext(FATES[fate]), "why": gettext(WHY[why])}
