"""Credentials of running attempts, kept in the memory of the process that answers jobs, and nowhere else.

They are asked for once for all replicas of an attempt, and anew when half of their time is over: SDKs want
new ones 15 minutes before the end.  While STS gives none, the earlier ones serve until they end.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from jobs.access.instance_roles import sts
from jobs.access.instance_roles.sts import Credentials, StsError
from jobs.models import AssetKind, Attempt, Job, RamRole

log = structlog.get_logger(__name__)

MIN_VALID: Final = timedelta(seconds=60)
"""Credentials that end sooner are not given any more."""

RETRY_S: Final = 5.0
"""The time between two requests to STS for an attempt of which the first one failed."""

WAIT_S: Final = 2.0
"""So long a request waits for another one; a program asks again."""

MOST_REQUESTS: Final = 4
"""Requests to STS at a time, so that one which does not answer does not take all threads."""

MOST: Final = 10_000
"""Attempts whose credentials are kept; beyond that those that have ended are removed."""


def role_of(job: Job) -> RamRole | None:
    """Return the role that the job was accepted with; None where it has none or it was taken away since."""
    keys = job.asset_uses.filter(kind=AssetKind.ROLE).values("key")
    return RamRole.objects.assumable_in(job.workspace).filter(key__in=keys).first()


def is_due(role: RamRole, age_s: float) -> bool:
    """Tell whether credentials that were given so long ago are to be replaced: half of their time is over, or
    the role has been changed since.
    """
    changed_s = (datetime.now(UTC) - role.updated_at).total_seconds()
    return age_s >= min(role.session_s / 2, changed_s)


@dataclass(frozen=True, slots=True)
class _Issue:
    """Credentials with the version of the role that they are of."""

    version: tuple[int, datetime]
    credentials: Credentials
    renew_at: datetime


@dataclass(slots=True)
class _Entry:
    """Credentials of one attempt; whoever renews them holds `lock`.  `tried` is a monotonic time."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    issue: _Issue | None = None
    tried: float = -math.inf

    def is_due(self, role: RamRole) -> bool:
        """Tell whether STS is to be asked now."""
        issue = self.issue
        if issue is not None and issue.version == _version(role) and datetime.now(UTC) < issue.renew_at:
            return False
        return time.monotonic() >= self.tried + RETRY_S

    def renew(self, attempt: Attempt, role: RamRole) -> None:
        """Ask STS; an error is logged, and the earlier credentials stay."""
        asked_at = datetime.now(UTC)
        try:
            found = sts.assume(role, f"{attempt.job.public_id}-{attempt.number}")
        except StsError as error:
            self.tried = time.monotonic()
            log.warning("role_not_assumed", attempt=attempt.key, role=role.key, problem=str(error))
            return
        self.issue = _Issue(_version(role), found, asked_at + (found.expires_at - asked_at) / 2)
        self.tried = -math.inf

    def find_valid(self, role: RamRole) -> Credentials | None:
        """Return the credentials while they are the role's, as it is now, and valid long enough."""
        issue = self.issue
        if issue is None or issue.version != _version(role):
            return None
        return issue.credentials if issue.credentials.expires_at >= datetime.now(UTC) + MIN_VALID else None


def _version(role: RamRole) -> tuple[int, datetime]:
    return role.pk, role.updated_at


class CredentialCache:
    """Credentials by the keys of attempts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._requests = threading.BoundedSemaphore(MOST_REQUESTS)

    def find(self, attempt: Attempt, role: RamRole) -> Credentials | None:
        """Return credentials of a role for an attempt; None while STS gives none.

        Blocks: for one request to STS, or a short while for that of another replica.
        """
        entry = self._entry(attempt.key)
        if entry.lock.acquire(timeout=WAIT_S):
            try:
                if entry.is_due(role) and self._requests.acquire(timeout=WAIT_S):
                    try:
                        entry.renew(attempt, role)
                    finally:
                        self._requests.release()
            finally:
                entry.lock.release()
        return entry.find_valid(role)

    def _entry(self, key: str) -> _Entry:
        with self._lock:
            if len(self._entries) > MOST:
                self._remove_ended()
            return self._entries.setdefault(key, _Entry())

    def _remove_ended(self) -> None:
        now = datetime.now(UTC)
        for key, entry in list(self._entries.items()):
            if entry.issue is None or entry.issue.credentials.expires_at < now:
                del self._entries[key]


CACHE: Final = CredentialCache()
"""That of this process."""
