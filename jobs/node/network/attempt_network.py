"""The network of one attempt: its router, which is found again by `router.json` in the attempt's folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from jobs.node.files import Folder
from jobs.node.supervisor.plan import Plan


@dataclass(frozen=True, slots=True)
class AttemptNetwork:
    """Open descriptors of a router's namespaces.

    `net` is its network namespace; `user` its user namespace, None where the console is root.
    """

    net: int
    user: int | None

    @classmethod
    def open(cls, folder: Folder, plan: Plan) -> Self:
        """Open the network of the attempt in `folder`, which is made unless it is there.

        May be repeated, and by another process after any kill.  Raises OSError, with the reason, when it
        can't be made.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the descriptors; the network stays."""
        raise NotImplementedError


def remove(folder: Folder, plan: Plan) -> None:
    """Remove the network of an attempt that has ended; none is fine.  May be repeated."""
    raise NotImplementedError
