"""Sentences about jobs that a cluster refused for good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages import amounts
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "no_secret": (
        _("Refused: the secret %(name)s has no value here; give it one and submit again."),
        _("Refused: a secret has no value here; give it one and submit again."),
    ),
    "field": (
        _(
            "Refused: this cluster can't do what the job asks for in %(field)s; submit it without, or "
            "elsewhere."
        ),
        _("Refused: this cluster can't do all that the job asks for."),
    ),
    "no_modules": (
        _(
            "Refused: the job wants to load %(modules)s, and this machine has no environment modules; "
            "submit it without, or elsewhere."
        ),
    ),
    "mount_not_allowed": (
        _(
            "Refused: jobs of %(workspace)s may not use %(place)s of this machine; an admin may allow it in "
            "the cluster's settings (%(setting)s)."
        ),
        _("Refused: jobs may not use %(place)s of this machine."),
    ),
    "mount_read_only": (
        _(
            "Refused: its output is to go to %(place)s, which jobs may only read here; an admin may allow "
            "more in the cluster's settings (%(setting)s)."
        ),
    ),
    "mount_no_folder": (
        _("Refused: %(place)s can't be used as a folder by the job's user: %(error)s"),
        _("Refused: %(place)s can't be used as a folder by the job's user."),
    ),
    "mount_no_job": (
        _(
            "Refused: %(place)s is no replica of a job of yours on this machine; the folders of other "
            "people's jobs can't be had this way."
        ),
    ),
    "mount_unknown": (
        _(
            "Refused: nobody has said which folder dataset %(id)s is here; an admin may do so in the "
            "cluster's settings (%(setting)s)."
        ),
    ),
    "mount_without_path": (
        _(
            "Refused: the job does not say where %(id)s is to be mounted, and the cluster's settings don't "
            "either."
        ),
    ),
    "mount_elsewhere": (
        _(
            "Refused: %(place)s is not on this machine, so that it can't be mounted at %(path)s; it can be "
            "where it is a folder here, or on a cluster that has such a store."
        ),
    ),
    "mount_over": (
        _(
            "Refused: nothing can be mounted at %(path)s, which belongs to the system or to the job; use a "
            "place such as /mnt/data."
        ),
    ),
    "mount_twice": (_("Refused: %(path)s lies in, or around, another place that the job mounts."),),
    "mount_needs_view": (
        _(
            "Refused: jobs are plain processes without a file system of their own here, so that nothing can "
            "be mounted at %(path)s; it needs an image and a container engine, or a machine that allows user "
            "namespaces."
        ),
    ),
    "auth_elsewhere": (
        _("Refused: %(place)s, with the login for the image registry, is not on this machine."),
    ),
    "auth_file": (
        _("Refused: %(place)s, with the login for the image registry, can't be read: %(error)s"),
        _(
            "Refused: %(place)s has to say three things: the image registry, the user's name and the "
            "password."
        ),
    ),
    "code_too_large": (
        _("Refused: the code in %(place)s is larger than the %(most_mb)s MB that it may be."),
    ),
    "code_unknown": (
        _(
            "Refused: nobody has said where code %(id)s is to be had here; an admin may do so in the "
            "cluster's settings (%(setting)s)."
        ),
    ),
    "code_not_allowed": (
        _(
            "Refused: code may not be fetched from %(place)s here; an admin may allow it in the cluster's "
            "settings (%(setting)s)."
        ),
    ),
    "code_elsewhere": (
        _(
            "Refused: the code in %(place)s can't be fetched here; name a folder of the cluster, or upload "
            "the code."
        ),
    ),
    "code_address": (_("Refused: %(place)s is no address of a repository."),),
    "code_ref": (_("Refused: %(name)s can't be the name of a branch, a tag or a commit."),),
    "code_no_upload": (_("Refused: what %(place)s names was not uploaded, or has been removed."),),
    "code_no_git": (_("Refused: there is no git here to fetch %(place)s with; an admin may install it."),),
    "mount_unsteady": (
        _(
            "Refused: with this machine's container engine a job can only mount a folder that is itself "
            "named in the cluster's settings (%(setting)s), and %(place)s is not."
        ),
    ),
    "no_image_engine": (
        _(
            "Refused: this cluster has nothing to run the image %(image)s with; an admin may install podman "
            "or docker, or allow plain processes."
        ),
        _("Refused: this cluster has nothing to run images with."),
    ),
    "image_for_one": (
        _(
            "Refused: this cluster runs the image %(image)s in Slurm's own containers, in which a role can "
            "have one replica and no GPU."
        ),
    ),
    "image_no_bundle": (
        _("Refused: this cluster runs images that are folders of its nodes, and %(image)s is none."),
    ),
    "only_slurm": (
        _(
            "Refused: Slurm runs this script once, on the first of its %(nodes)s nodes, and its srun calls "
            "reach the others, which this cluster can't do; submit it to a Slurm cluster, or ask for one "
            "node (--nodes=1)."
        ),
        _("Refused: only a Slurm cluster can run this script on several nodes."),
    ),
    "no_unix_name": (
        _(
            "Refused: jobs here run as their owner's own UNIX user, and %(name)s has none: ask an admin of "
            "this console to enter it."
        ),
    ),
    "unix_name_unknown": (
        _(
            "Refused: there is no UNIX user %(name)s on the console's machine: ask an admin of this console "
            "to mend your UNIX name."
        ),
    ),
    "unix_name_of_the_system": (
        _(
            "Refused: %(name)s is a UNIX user of the system, and nobody's jobs run as that: ask an admin of "
            "this console to mend your UNIX name."
        ),
    ),
    "exceeds_cluster": (
        _("Refused: it asks for %(wanted)s, and the whole cluster has %(total)s."),
        _("Refused: it asks for more than the whole cluster has."),
    ),
}
_OTHERWISE: Final = (_("Refused by the cluster: %(detail)s"), _("Refused by the cluster."))


def refusal(params: Mapping[str, object]) -> str:
    """Return the sentence for `REFUSED`; `detail` is the backend's own message."""
    templates = _SENTENCES.get(str(params.get("why")), _OTHERWISE)
    kind = params.get("resource") or params.get("kind")
    words = {name: amounts.quantity(kind, params[name]) for name in ("wanted", "total") if name in params}
    return say(templates, {**params, **words})
