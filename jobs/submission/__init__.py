"""What people do: submit, stop, run again, share, delete.

Each verb checks the right, writes its rows in one transaction and rings the doorbell once it has
committed.  No verb talks to a backend.
"""

from jobs.submission.again import NotEnded, instead, retry, template_of
from jobs.submission.asking import amounts_of, parts_of, terms_of
from jobs.submission.ending import NotIdle, NotLost, StillRunning, delete, keep, settle, stop
from jobs.submission.places import (
    ANYWHERE,
    Place,
    address_of,
    find_quota,
    place_at,
    quotas_open_to,
    refuse_beyond_public,
)
from jobs.submission.queued import (
    LONGEST_REASON,
    NoRoomThere,
    NotWaiting,
    ReasonMissing,
    hold,
    move,
    prioritise,
    release,
)
from jobs.submission.rights import Forbidden
from jobs.submission.sharing import share
from jobs.submission.submitting import (
    Conflict,
    Ready,
    Request,
    Submitted,
    mended,
    ready,
    store,
    submit,
    wrong_with,
)

__all__ = [
    "ANYWHERE",
    "LONGEST_REASON",
    "Conflict",
    "Forbidden",
    "NoRoomThere",
    "NotEnded",
    "NotIdle",
    "NotLost",
    "NotWaiting",
    "Place",
    "Ready",
    "ReasonMissing",
    "Request",
    "StillRunning",
    "Submitted",
    "address_of",
    "amounts_of",
    "delete",
    "find_quota",
    "hold",
    "instead",
    "keep",
    "mended",
    "move",
    "parts_of",
    "place_at",
    "prioritise",
    "quotas_open_to",
    "ready",
    "refuse_beyond_public",
    "release",
    "retry",
    "settle",
    "share",
    "stop",
    "store",
    "submit",
    "template_of",
    "terms_of",
    "wrong_with",
]
