"""Sentences about Kubeflow manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "bad_label": (
        _(
            "%(key)s “%(value)s” can only contain lowercase letters, digits and -, must start with "
            "a letter and can't end with -."
        ),
        _(
            "This name can only contain lowercase letters, digits and -, must start with a letter "
            "and can't end with -."
        ),
    ),
    "image_decides": (
        _("%(key)s is missing. The image's default command is unknown; specify the command."),
        _("The command is missing. The image's default command is unknown; specify the command."),
    ),
    "no_such_volume": (_("The pod doesn't define the mounted volume “%(name)s”."),),
    "not_a_role": (_("%(kind)s has no role “%(name)s”. Available roles: %(choices)s."),),
}

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    "container_unnamed": (
        _("%(source)s refers to container %(name)s, which doesn't exist. The first container is used."),
        _("The first container is used as the main container."),
    ),
    "limit_taken": (_("%(key)s has different requests and limits; the limit is used."),),
    "mounts_shared": (
        _(
            "The roles have different mounts. In a job every role gets all mounts; for duplicate "
            "paths, the first one applies."
        ),
    ),
    "other_documents": (_("Other documents in the file are ignored (kept in the file)."),),
    "shared_memory_unlimited": (_("Shared memory has no sizeLimit; its size depends on the cluster."),),
    "value_of_cluster": (_("The value of %(name)s is set by the cluster; it is not set elsewhere."),),
}
