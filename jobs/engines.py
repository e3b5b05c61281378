"""Which backend object serves a cluster.  The only place that names the implementations.

Imported by the worker side only; a backend's library is loaded when a cluster first needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from django.conf import settings

if TYPE_CHECKING:
    from jobs.backends.base import Backend
    from quotas.models import Cluster

FACTORIES: Final = {"local": "jobs.backends.local.backend:from_settings"}
"""Backend name → `module:factory`; the factory takes the console's home and the cluster's settings."""


class NoSuchBackend(Exception):
    """The cluster names a backend that this console does not have."""


def backend_for(cluster: Cluster) -> Backend:
    """A backend for `cluster`: cheap to make, holds nothing."""
    try:
        module, factory = FACTORIES[cluster.backend].split(":")
    except KeyError:
        raise NoSuchBackend(cluster.backend) from None
    config = {**cluster.config, **(settings.CONSOLE_LOCAL if cluster.backend == "local" else {})}
    made: Backend = getattr(import_module(module), factory)(settings.CONSOLE_HOME, config)
    return made
