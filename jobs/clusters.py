"""The backend of a cluster, made of the cluster's settings and of the console's own.

The worker side makes backends; settings alone are checked anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from jobs.backends import registry
from jobs.backends.base import Backend, Unreachable
from jobs.backends.registry import NoSuchBackend, Registration
from jobs.backends.settings import SettingProblem, Settings
from quotas.clusters import encrypted_settings

if TYPE_CHECKING:
    from quotas.models import Cluster

__all__ = [
    "BadSettings",
    "NoSuchBackend",
    "backend_for",
    "check_settings",
    "config_for",
    "describe_settings_problems",
]


class BadSettings(Unreachable):
    """The cluster's settings make no sense to its backend, which says why: an admin has to fix them."""


def backend_for(cluster: Cluster) -> Backend:
    """Return a backend for a cluster: cheap to make, holds nothing.  Raises NoSuchBackend or BadSettings."""
    return registry.find(cluster.backend).make(config_for(cluster))


def config_for(cluster: Cluster) -> Settings:
    """Return a cluster's settings as its backend has them.  Raises NoSuchBackend or BadSettings."""
    registration = registry.find(cluster.backend)
    try:
        return _config(registration, cluster.config)
    except ValueError as error:  # whatever an admin wrote there
        sentences = [
            (f"{each.name}: " if each.name else "") + registration.sentence(each) % each.params
            for each in registration.problems(error)
        ]
        raise BadSettings(f"The settings of {cluster.slug} make no sense: {' '.join(sentences)}") from None


def check_settings(registration: Registration, config: Mapping[str, Any]) -> Sequence[SettingProblem]:
    """Return what is wrong with the settings of a cluster; nothing where its backend takes them."""
    try:
        _config(registration, config)
    except ValueError as error:
        return registration.problems(error)
    return ()


def describe_settings_problems(cluster: Cluster) -> list[str]:
    """Return what is wrong with a stored cluster's backend and settings, a sentence each."""
    if cluster.backend not in registry.names():
        text = _("There is no backend “%(name)s”. Backends: %(names)s.")
        return [text % {"name": cluster.backend, "names": ", ".join(registry.names())}]
    registration = registry.find(cluster.backend)
    return [
        (f"{each.name}: " if each.name else "") + _(registration.sentence(each)) % each.params
        for each in check_settings(registration, cluster.config)
    ]


def _config(registration: Registration, config: Mapping[str, Any]) -> Settings:
    """Lay over the cluster's settings those that only whoever runs the console may say, and validate all."""
    model = registration.config
    overlay: Mapping[str, Any] = getattr(settings, model.OVERLAY) if model.OVERLAY else {}
    own = {key: getattr(settings, name) for key, name in model.CONSOLE.items()}
    values = {**encrypted_settings.decrypt(config), **overlay, **own}
    return model.from_settings(settings.CONSOLE_SHARED_FOLDER, values)
