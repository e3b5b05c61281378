"""The operators of a cluster, as far as its API serves their kinds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from jobs.backends.kubernetes.client.api import Api
from jobs.dialects.kubeflow import kinds

KUEUE: Final = "kueue.x-k8s.io"

KEPT_S: Final = 60
"""So long an answer is used: operators are installed seldom, and jobs are submitted all the time."""


@dataclass(frozen=True, slots=True)
class Operators:
    """The names of Kubeflow's kinds, and the version of Kueue's API, "" for none."""

    kinds: frozenset[str] = frozenset()
    kueue: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all that is served."""
        return (*sorted(self.kinds), *(["Kueue"] if self.kueue else []))


_known: Final[dict[str, tuple[float, Operators]]] = {}
"""The server's address → when it was asked, and its answer."""


def find_operators(api: Api, server: str) -> Operators:
    """Return what a cluster serves, from an answer of lately.  Raises ApiError or Unreachable."""
    asked_at, operators = _known.get(server, (0.0, Operators()))
    return operators if time.monotonic() - asked_at < KEPT_S and asked_at else discover(api, server)


def discover(api: Api, server: str) -> Operators:
    """Return what a cluster serves now.  Raises ApiError or Unreachable."""
    groups = {each["name"]: each for each in api.get("/apis").get("groups") or ()}
    versions = {each["groupVersion"] for group in groups.values() for each in group["versions"]}
    resources = api.get(f"/apis/{kinds.V1}")["resources"] if kinds.V1 in versions else ()
    names = {each["kind"] for each in resources} & kinds.BY_NAME.keys()
    kueue = groups[KUEUE]["preferredVersion"]["version"] if KUEUE in groups else ""
    operators = Operators(frozenset(names), kueue)
    _known[server] = time.monotonic(), operators
    return operators
