"""Handles of attempts on a Kubernetes cluster, and the labels of their objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jobs.backends.base import Handle
from jobs.backends.remote.attempts import InvalidKey, is_key

KEY_LABEL: Final = "job-console/key"
"""The attempt's key, on each of its objects."""
INSTALLATION_LABEL: Final = "job-console/installation"
"""The part of the key that tells consoles apart."""
ROLE_LABEL: Final = "job-console/role"
INDEX_LABEL: Final = "job-console/index"
JOB_LABEL: Final = "job-console/job"
"""The job's public id, on pods and on claims that outlive an attempt."""

_HANDLE: Final = re.compile(r"(?P<namespace>[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)/(?P<key>[a-z0-9-]{1,63})")


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """A parsed handle: the namespace of the attempt's objects, and its key, which is their name."""

    namespace: str
    key: str

    @classmethod
    def of(cls, handle: Handle) -> AttemptRef:
        """Parse a handle.  Raises InvalidKey for one of another backend."""
        match = _HANDLE.fullmatch(handle)
        if match is None or not is_key(match["key"]):
            raise InvalidKey(handle)
        return cls(match["namespace"], match["key"])

    @property
    def handle(self) -> Handle:
        """Return the handle."""
        return Handle(f"{self.namespace}/{self.key}")

    @property
    def installation(self) -> str:
        """Return the part of the key that tells consoles apart."""
        return self.key.partition("-")[0]

    def path(self, kind: str, name: str = "") -> str:
        """Return the API's path of an object of the core group, or of all of a kind in the namespace."""
        return core_path(self.namespace, kind, name)


def core_path(namespace: str, kind: str, name: str = "") -> str:
    """Return the path of an object of the core group: `pods`, `secrets`, `services` or `configmaps`."""
    path = f"/api/v1/namespaces/{namespace}/{kind}"
    return f"{path}/{name}" if name else path


def pod_name(key: str, replica: str) -> str:
    """Return the name of a replica's pod, for the replica's own name in the attempt's network."""
    return f"{key}-{replica}"
