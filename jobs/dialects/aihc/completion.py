"""When an AIHC job has succeeded.

The page does not say; the rule of the open-source operator is applied, and noted: a chief decides, and
beside parameter servers, which never end, the workers do.  Any failed replica fails the job.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobs.spec import CompletionPolicy


def applied(replicas: Mapping[str, int]) -> dict[str, CompletionPolicy]:
    """The completion policy of each role, by its number of replicas."""
    decider = "Chief" if "Chief" in replicas and len(replicas) > 1 else None
    if decider is None and "PS" in replicas and "Worker" in replicas:
        decider = "Worker"
    return {
        name: CompletionPolicy(min_succeeded=count if name == decider else None)
        for name, count in replicas.items()
    }
