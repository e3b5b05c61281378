"""Find out whether the console may have one person only (`quotas.models.single_person`).

Where jobs run as the console's own user, whoever may run a job can read everything that the console and
everybody's jobs can.  Where they share the host's network and people come without TLS, a job that listens on
any port of the console's host name is sent the session cookie of whoever opens it: cookies are not separated
by port (RFC 6265 section 8.5).  Where jobs on a Slurm cluster run as one user, or keep the groups of the
console's user, they have each other's rights.  All are fine as long as there is only one person.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from console.configuration import identities
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.backends.slurm.config import SINGLE
from jobs.node.sandbox.isolation import Isolation
from quotas.models import Cluster, User, single_person
from quotas.models.single_person import Exposure


def exposures() -> frozenset[Exposure]:
    """Return what jobs of local clusters could do to people.  Takes some tens of milliseconds."""
    clusters = _local_clusters()
    isolations = {_isolation(config) for config in clusters}
    found = set()
    if Isolation.NONE in isolations:
        found.add(Exposure.FILES)
    if Isolation.NAMESPACES in isolations and identities.supplementary_groups():
        found.add(Exposure.GROUPS)
    if any(config.get("identity", SINGLE) == SINGLE for config in _configs("slurm")):
        found.add(Exposure.ACCOUNT)
    if clusters and not settings.CONSOLE_TLS:
        found.add(Exposure.SIGN_INS)
    return frozenset(found)


def _isolation(config: Mapping[str, Any]) -> Isolation | None:
    """None where the settings make no sense: such a cluster runs nothing, and says so itself."""
    try:
        return LocalBackend(_config(config)).isolation()
    except (TypeError, ValueError):
        return None


def jobs_user_ids() -> range:
    """Return the user ids that local jobs of this console's people have; empty where they have none."""
    last = User.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for config in _local_clusters():
        if _isolation(config) is Isolation.PERSONS:
            base = _config(config).uid_base
            return range(base + 1, base + last + 1)
    return range(0)


def _config(config: Mapping[str, Any]) -> LocalConfig:
    """Return a cluster's settings as its backend has them.  Raises TypeError and ValueError."""
    return LocalConfig.from_settings(settings.CONSOLE_HOME, {**config, **settings.CONSOLE_LOCAL})


def _local_clusters() -> list[Mapping[str, Any]]:
    return _configs("local")


def _configs(backend: str) -> list[Mapping[str, Any]]:
    """Return the settings of those that take jobs."""
    return list(Cluster.objects.filter(backend=backend, enabled=True).values_list("config", flat=True))


def accounts() -> int:
    """Return how many people may sign in."""
    return User.objects.filter(is_active=True, kind=User.Kind.PERSON).count()


def record() -> None:
    """Record the exposures for the processes that serve pages; called at every start."""
    single_person.note(exposures())
