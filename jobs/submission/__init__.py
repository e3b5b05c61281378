"""Commands of people on jobs: submit, stop, run again, share, delete.

Each command checks the right, writes its rows in one transaction and wakes a worker after the commit.  No
command talks to a backend.
"""

from jobs.submission.access import Forbidden
from jobs.submission.clones import MemoryNotChanged, NotEnded, replace_queued, retry, template_of
from jobs.submission.job_control import (
    LONGEST_REASON,
    CannotMove,
    NotIdle,
    NotLost,
    NotWaiting,
    ReasonMissing,
    StillRunning,
    delete,
    hold,
    keep,
    move,
    prioritise,
    release,
    settle,
    share,
    stop,
)
from jobs.submission.job_policies import find_excess, find_excess_of
from jobs.submission.job_submission import (
    Conflict,
    ResolvedJob,
    SubmissionRequest,
    Submitted,
    apply_fixes,
    find_problems,
    request_digest,
    resolve_job,
    store,
    submit,
)
from jobs.submission.resource_requests import amounts_of, level_of, parts_of, terms_of
from jobs.submission.targets import (
    ANYWHERE,
    JobTarget,
    find_quota,
    parse_target,
    quotas_open_to,
    target_address,
)

__all__ = [
    "ANYWHERE",
    "LONGEST_REASON",
    "CannotMove",
    "Conflict",
    "Forbidden",
    "JobTarget",
    "MemoryNotChanged",
    "NotEnded",
    "NotIdle",
    "NotLost",
    "NotWaiting",
    "ReasonMissing",
    "ResolvedJob",
    "StillRunning",
    "SubmissionRequest",
    "Submitted",
    "amounts_of",
    "apply_fixes",
    "delete",
    "find_excess",
    "find_excess_of",
    "find_problems",
    "find_quota",
    "hold",
    "keep",
    "level_of",
    "move",
    "parse_target",
    "parts_of",
    "prioritise",
    "quotas_open_to",
    "release",
    "replace_queued",
    "request_digest",
    "resolve_job",
    "retry",
    "settle",
    "share",
    "stop",
    "store",
    "submit",
    "target_address",
    "template_of",
    "terms_of",
]
