"""Sentences about jobs that a cluster refused for good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages import amounts
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "no_secret": (
        _("Refused: secret %(name)s has no value in this console. Set it and submit again."),
        _("Refused: a secret has no value in this console. Set it and submit again."),
    ),
    "field": (
        _(
            "Refused: this cluster does not support the job's setting “%(field)s”. Remove it, or "
            "use another cluster."
        ),
        _("Refused: this cluster does not support everything the job requests."),
    ),
    "no_modules": (
        _(
            "Refused: the job loads %(modules)s, but this machine has no environment modules. "
            "Remove them, or use another cluster."
        ),
    ),
    "mount_not_allowed": (
        _(
            "Refused: jobs of %(workspace)s can't use %(place)s on this machine. An admin can "
            "allow it in the cluster's settings (%(setting)s)."
        ),
        _("Refused: jobs can't use %(place)s on this machine."),
    ),
    "mount_read_only": (
        _(
            "Refused: the output goes to %(place)s, which is read-only for jobs here. An admin can "
            "allow writing in the cluster's settings (%(setting)s)."
        ),
    ),
    "mount_no_folder": (
        _("Refused: the job's user can't use %(place)s as a folder: %(error)s"),
        _("Refused: the job's user can't use %(place)s as a folder."),
    ),
    "mount_no_job": (
        _(
            "Refused: %(place)s is not a replica of one of your jobs on this machine. Folders of "
            "other people's jobs can't be used."
        ),
    ),
    "mount_unknown": (
        _(
            "Refused: no storage mapping has dataset %(id)s on this cluster. A console admin can add one "
            "(Administration › Storage)."
        ),
    ),
    "storage_not_allowed": (
        _("Refused: jobs in %(workspace)s can't use %(place)s: its storage mapping is for other workspaces."),
    ),
    "bucket_not_writable": (
        _("Refused: this cluster can only read %(place)s. Mount it read-only, or use another cluster."),
    ),
    "bucket_too_many": (
        _(
            "Refused: %(place)s has too many objects for this cluster (%(objects)s). Pack them into fewer "
            "files, or use another cluster."
        ),
    ),
    "storage_read_only": (
        _("Refused: the output goes to %(place)s, which is read-only for jobs here by its storage mapping."),
    ),
    "mount_without_path": (_("Refused: no mount path for %(id)s in the job or in its storage mapping."),),
    "mount_elsewhere": (
        _(
            "Refused: %(place)s is not available on this machine and can't be mounted at %(path)s. "
            "Use a folder on this machine, or a cluster with this storage."
        ),
    ),
    "mount_over": (
        _(
            "Refused: nothing can be mounted at %(path)s, which is used by the system or the job. "
            "Use a path such as /mnt/data."
        ),
    ),
    "mount_twice": (_("Refused: %(path)s is inside another mount path of the job, or contains one."),),
    "mount_needs_view": (
        _(
            "Refused: jobs here are plain processes without their own file system, so nothing can "
            "be mounted at %(path)s. This requires an image and a container engine, or a machine "
            "that allows user namespaces."
        ),
    ),
    "container_without_command": (
        _(
            "Refused: container %(name)s of role %(role)s has no command, which it needs on this cluster. "
            "Add a command, or use a cluster with a container engine."
        ),
    ),
    "container_other_image": (
        _(
            "Refused: container %(name)s of role %(role)s has another image than the role. Use the same "
            "image, or another cluster."
        ),
    ),
    "containers_of_script": (
        _(
            "Refused: Slurm runs this script on all nodes, so container %(name)s can't run beside it. "
            "Use roles with a command, or submit without the container."
        ),
    ),
    "container_image_alone": (
        _(
            "Refused: container %(name)s has an image, but role %(role)s has none. Add an image to "
            "the role, or remove the container's."
        ),
    ),
    "auth_elsewhere": (_("Refused: the image registry's login file %(place)s is not on this machine."),),
    "auth_file": (
        _("Refused: the image registry's login file %(place)s can't be read: %(error)s"),
        _("Refused: %(place)s must contain three values: image registry, user name and password."),
    ),
    "code_too_large": (_("Refused: the code in %(place)s exceeds the limit of %(most_mb)s MB."),),
    "code_unknown": (
        _(
            "Refused: no source is configured for code %(id)s on this cluster. An admin can set it "
            "in the cluster's settings (%(setting)s)."
        ),
    ),
    "code_not_allowed": (
        _(
            "Refused: code can't be fetched from %(place)s here. An admin can allow it in the "
            "cluster's settings (%(setting)s)."
        ),
    ),
    "code_elsewhere": (
        _(
            "Refused: the code in %(place)s can't be fetched here. Use a folder of the cluster, or "
            "upload the code."
        ),
    ),
    "code_address": (_("Refused: %(place)s is not a repository address."),),
    "code_ref": (_("Refused: %(name)s is not a valid name of a branch, tag or commit."),),
    "code_no_upload": (_("Refused: upload %(place)s not found or removed."),),
    "code_no_git": (
        _("Refused: git is needed to fetch %(place)s, but is not installed. An admin can install it."),
    ),
    "mount_unsteady": (
        _(
            "Refused: with this machine's container engine, jobs can mount only folders listed in "
            "the cluster's settings (%(setting)s), and %(place)s is not one of them."
        ),
    ),
    "no_image_engine": (
        _(
            "Refused: this cluster has no container engine to run image %(image)s. An admin can "
            "install podman or docker, or allow plain processes."
        ),
        _("Refused: this cluster has no container engine to run images."),
    ),
    "image_for_one": (
        _(
            "Refused: this cluster runs image %(image)s in Slurm's own containers, which allow "
            "only one replica per role and no GPU."
        ),
    ),
    "image_no_bundle": (
        _("Refused: images on this cluster must be folders on its nodes, and %(image)s is not one."),
    ),
    "only_slurm": (
        _(
            "Refused: Slurm runs this script only on the first of its %(nodes)s nodes and reaches "
            "the others with srun, which this cluster does not support. Use a Slurm cluster, or "
            "request one node (--nodes=1)."
        ),
        _("Refused: only a Slurm cluster can run this script on several nodes."),
    ),
    "no_unix_name": (
        _(
            "Refused: jobs here run as their owner's UNIX user, and %(name)s has none. Ask a "
            "console admin to set it."
        ),
    ),
    "unix_name_unknown": (
        _(
            "Refused: UNIX user %(name)s not found on the console's machine. Ask a console admin "
            "to fix your UNIX name."
        ),
    ),
    "unix_name_of_the_system": (
        _(
            "Refused: %(name)s is a system user, and jobs can't run as system users. Ask a console "
            "admin to fix your UNIX name."
        ),
    ),
    "role_without_image": (
        _(
            "Refused: role %(role)s has no image, which this cluster requires. Add an image, or ask an admin "
            "to set a default image."
        ),
    ),
    "egress_not_enforced": (
        _(
            "Refused: %(workspace)s restricts its jobs' network access, and this cluster can't enforce that. "
            "Use another cluster, or ask an admin."
        ),
    ),
    "image_without_network": (
        _(
            "Refused: %(engine)s on this cluster can't give image %(image)s a network of its own. An admin "
            "can install podman and run the console as root, or change the cluster's settings (network)."
        ),
    ),
    "role_without_network": (
        _(
            "Refused: this job can't be given credentials of role %(role)s on this cluster. Submit without "
            "a role, or use another cluster."
        ),
    ),
    "role_unknown": (
        _(
            "Refused: role %(role)s was removed from the workspace, or has no access key any more. Ask a "
            "console admin."
        ),
    ),
    "exceeds_cluster": (
        _("Refused: %(wanted)s requested, but the whole cluster has %(total)s."),
        _("Refused: more requested than the whole cluster has."),
    ),
}
_OTHERWISE: Final = (_("Refused by the cluster: %(detail)s"), _("Refused by the cluster."))


def refusal(params: Mapping[str, object]) -> str:
    """Return the sentence for `REFUSED`; `detail` is the backend's own message."""
    templates = _SENTENCES.get(str(params.get("why")), _OTHERWISE)
    kind = params.get("resource") or params.get("kind")
    words = {name: amounts.quantity(kind, params[name]) for name in ("wanted", "total") if name in params}
    return say(templates, {**params, **words})
