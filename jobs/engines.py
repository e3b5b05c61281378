"""Which backend object serves a cluster.  The only place that names the implementations.

Imported by the worker side only; a backend's library is loaded when a cluster first needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from jobs.backends.base import Backend, Unreachable
from quotas.clusters import confided

if TYPE_CHECKING:
    from quotas.models import Cluster

FACTORIES: Final = {
    "local": "jobs.backends.local.backend:from_settings",
    "slurm": "jobs.backends.slurm.backend:from_settings",
}
"""Backend name → `module:factory`; the factory takes the console's home and the cluster's settings."""


class NoSuchBackend(Exception):
    """The cluster names a backend that this console does not have."""


class BadSettings(Unreachable):
    """The cluster's settings make no sense to its backend, which says why: an admin has to mend them."""


def backend_for(cluster: Cluster) -> Backend:
    """A backend for `cluster`: cheap to make, holds nothing.  Raises NoSuchBackend or BadSettings."""
    try:
        module, factory = FACTORIES[cluster.backend].split(":")
    except KeyError:
        raise NoSuchBackend(cluster.backend) from None
    make: Callable[[Path, Mapping[str, Any]], Backend] = getattr(import_module(module), factory)
    try:
        config = {**confided.opened(cluster.config), **_from_environment(cluster.backend)}
        return make(settings.CONSOLE_HOME, config)
    except (AttributeError, TypeError, ValueError) as error:  # whatever an admin wrote there
        raise BadSettings(f"The settings of {cluster.slug} make no sense: {error}") from error


def _from_environment(backend: str) -> Mapping[str, Any]:
    """What only whoever runs the console may say."""
    if backend == "local":
        return {**settings.CONSOLE_LOCAL, "disk_floor_mib": settings.CONSOLE_DISK_FLOOR_MIB}
    if backend == "slurm":
        return {
            "folder": settings.CONSOLE_SLURM_FOLDER,
            "token_command": settings.CONSOLE_SLURM_TOKEN_COMMAND,
            "usual_console_url": settings.CONSOLE_URL,
        }
    return {}
