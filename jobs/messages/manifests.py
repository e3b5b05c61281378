"""Sentences about Kubeflow manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "bad_label": (
        _("%(key)s “%(value)s” may have small letters, digits and -, a letter first and no - last."),
        _("This name may have small letters, digits and -, a letter first and no - last."),
    ),
    "image_decides": (
        _("%(key)s is missing: what the image would run is not known here, so write it."),
        _("The command is missing: what the image would run is not known here, so write it."),
    ),
    "no_such_volume": (_("The pod has no volume “%(name)s” to mount."),),
    "not_a_role": (_("A %(kind)s has no role “%(name)s”; its roles are %(choices)s."),),
}

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    "container_kept": (_("The container %(name)s beside the main one stays in the file and is not run."),),
    "container_unnamed": (
        _("No container is called %(name)s, as the %(source)s asks; the first one was taken."),
        _("The first container was taken for the main one."),
    ),
    "limit_taken": (_("%(key)s has a limit and another request; the limit was taken."),),
    "mounts_shared": (
        _("The roles mount different places; in a job every role has all of them, of one path the first."),
    ),
    "other_documents": (_("The other documents of the file were ignored; they stay in it."),),
    "shared_memory_unlimited": (
        _("The shared memory has no sizeLimit; how large it is, only the cluster knows."),
    ),
    "value_of_cluster": (_("The value of %(name)s is the cluster's own; elsewhere it is not set."),),
}
