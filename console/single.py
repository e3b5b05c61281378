"""Single-person mode (DESIGN section 4, local): jobs run as the console's own user, in plain sight of it.

Then whoever may run a job can read everything that the console and everybody's jobs can.  That is well as
long as there is only one person.  Which mode holds is found out by trying, at the start, and written down
for the processes that serve pages.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.backends.local.isolation import Isolation
from quotas.models import Cluster, User

NOTE: Final = "run/single-person"
"""Exists, beneath CONSOLE_HOME, while the mode holds."""


def holds() -> bool:
    """Whether a local cluster can keep jobs from nothing.  Takes some tens of milliseconds."""
    return any(_isolation(config) is Isolation.NONE for config in _local_clusters())


def _isolation(config: Mapping[str, Any]) -> Isolation | None:
    """None where the settings make no sense: such a cluster runs nothing, and says so itself."""
    told = {**config, **settings.CONSOLE_LOCAL}
    try:
        return LocalBackend(LocalConfig.from_settings(settings.CONSOLE_HOME, told)).isolation()
    except (TypeError, ValueError):
        return None


def _local_clusters() -> list[Mapping[str, Any]]:
    """The settings of those that take jobs."""
    return list(Cluster.objects.filter(backend="local", enabled=True).values_list("config", flat=True))


def accounts() -> int:
    """How many people may sign in."""
    return User.objects.filter(is_active=True, kind=User.Kind.PERSON).count()


def write_down() -> None:
    """For `noted`; called at every start."""
    note = _note(settings.CONSOLE_HOME)
    if holds():
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.touch(mode=0o600)
    else:
        note.unlink(missing_ok=True)


@cache
def noted(home: Path) -> bool:
    """What the last start wrote down; looked at once in a process."""
    return _note(home).exists()


def _note(home: Path) -> Path:
    return home / NOTE
