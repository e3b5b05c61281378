"""Find out whether the console may have one person only (`quotas.models.single_person`).

Where jobs run as the console's own user, whoever may run a job can read everything that the console and
everybody's jobs can.  Where they share the host's network and people come without TLS, a job that listens on
any port of the console's host name is sent the session cookie of whoever opens it: cookies are not separated
by port (RFC 6265 section 8.5); they share it where a program for networks of their own is missing, or a
container engine can't join one.  Where jobs on a Slurm cluster run as one user, or keep the groups of the
console's user, they have each other's rights.  All are fine as long as there is only one person.
"""

from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings

from console.configuration import identities
from jobs.backends import registry
from jobs.backends.settings import Settings
from jobs.clusters import BadSettings, NoSuchBackend, config_for
from quotas.models import Cluster, User, single_person
from quotas.models.single_person import Exposure


def exposures() -> frozenset[Exposure]:
    """Return what jobs of the clusters could do to people.  Takes some tens of milliseconds."""
    found = {Exposure(each) for config in _configs() for each in config.exposures()}
    if settings.CONSOLE_TLS:
        found.discard(Exposure.SIGN_INS)
    if Exposure.GROUPS in found and not identities.supplementary_groups():
        found.discard(Exposure.GROUPS)
    return frozenset(found)


def network_lacks() -> tuple[str, ...]:
    """Return the names of what this machine lacks for networks of jobs' own, where jobs should have them."""
    return next(filter(None, (config.network_lacks() for config in _configs())), ())


def jobs_user_ids() -> range:
    """Return the user ids on this machine that jobs of people have; empty where they have none."""
    last = User.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    ids = (config.user_ids(last) for config in _configs())
    return next(filter(None, ids), range(0))


def _configs() -> Iterator[Settings]:
    """Yield the settings of the clusters that take jobs; where they make no sense, the defaults.

    Such a cluster starts nothing, but jobs from before may still run there.
    """
    for cluster in Cluster.objects.filter(enabled=True):
        with suppress(NoSuchBackend):
            try:
                yield config_for(cluster)
            except BadSettings:
                yield registry.find(cluster.backend).config.from_settings(settings.CONSOLE_HOME, {})


def accounts() -> int:
    """Return how many people may sign in."""
    return User.objects.filter(is_active=True, kind=User.Kind.PERSON).count()


def record() -> None:
    """Record the exposures for the processes that serve pages; called at every start."""
    single_person.note(exposures())
