"""State mapping: from Ray's word about a job and an attempt's status files to an `Observation`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import Gone, Observation, ReplicaSeen
from jobs.backends.ray.client import RayJob
from jobs.backends.remote import attempts, status_files
from jobs.backends.remote.attempt_view import AttemptView, Outcome
from jobs.backends.remote.records import AttemptRecord
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.states import Params, Phase, Reason, ReasonCode, ReplicaState, State

RUN: Final = 1
"""Ray starts no job a second time."""

RESUMED: Final = "resumed.json"
MISSED: Final = "missed"
"""In an attempt's folder: when Ray's job was first seen ended without an end in the files."""

LATE_S: Final = 30.0
"""Ends may be on their way from the nodes for so long after Ray's job."""

HEAD: Final = "head"
"""In an attempt's folder: the id of the head to which it was submitted."""

RESTARTED_S: Final = 60.0
"""Nodes end so long after they have lost their head, by Ray's own gcs_rpc_server_reconnect_timeout_s."""

PLACING, PREPARING = "PLACING", "PREPARING"
"""Words for a job that waits at Ray: for its placement group, and for its driver."""

LOST, RUNTIME_ENV, RESTARTED = "DRIVER_LOST", "DRIVER_FAILED", "HEAD_LOST"
"""Words for a job whose driver was killed, could not begin, or is gone with its head."""

_LONGEST: Final = 500


def observe(
    folder: Path, record: AttemptRecord, job: RayJob | None, find_head: Callable[[], str]
) -> Observation | Gone:
    """Return the observation of an attempt; `job` is None where Ray answered and knows none.

    A head that was started anew knows no earlier job: nothing of one goes on once its nodes have ended, too.
    """
    view = _RayAttempt(folder, record, status_files.read_run(folder, RUN), RUN, job)
    if view.found.over:
        return view.observe_ended()
    if job is not None and job.is_active:
        return view.observe_active()
    names = {name for _role, _index, name in record.replicas()}
    all_ended = names <= view.found.ends.keys()
    if job is None and not all_ended:
        head, earlier = find_head(), (attempts.read_text(folder / HEAD) or "").strip()
        if not head or not earlier or head == earlier:
            return Gone.GONE
        if not _is_late(folder, RESTARTED_S):
            return view.observe_active()
        attempts.create(folder / "claim", RESTARTED)  # which no driver may take any more
        return view.observe_ended()
    if not all_ended and view.found.begun and not _is_late(folder, LATE_S):
        return view.observe_active()
    return view.observe_ended()


def _is_late(folder: Path, patience_s: float) -> bool:
    """Return whether Ray's job was first seen ended, or missing, so long ago."""
    return time.time() > attempts.first_time(folder / MISSED) + patience_s


def has_ended(folder: Path) -> bool:
    """Return whether the attempt's files have its end."""
    return status_files.read_run(folder, RUN).over


@dataclass(frozen=True, slots=True)
class _RayAttempt(AttemptView):
    """An attempt, and its job as Ray lists it."""

    job: RayJob | None

    @property
    def engine_ended_at(self) -> float | None:
        """See `AttemptView`; without Ray's word, when the last replica ended."""
        last = max((end.at for end in self.found.ends.values()), default=None)
        return (self.job.ended_at if self.job else None) or last

    @property
    def resumed(self) -> Checkpoint | None:
        """See `AttemptView`."""
        text = attempts.read_text(self.folder / RESUMED)
        return Checkpoint(**json.loads(text)) if text else None

    def observe_active(self) -> Observation:
        """Return the observation of a job that has not ended."""
        found = self.found
        if found.started_at is not None:
            return self.observe_running({})
        if found.hosts:
            reason, phase = Reason(ReasonCode.STARTING, self.find_step()), Phase.ENV_PREPARING
        else:
            reason = Reason(ReasonCode.ENGINE_QUEUE, {"ray": PLACING if found.begun else PREPARING})
            phase = Phase.QUEUING if found.begun else Phase.CREATING
        replicas = tuple(self.list_replicas())
        return Observation(State.PENDING, reason, phase, replicas, RUN, resumed=self.resumed)

    def find_engine_outcome(self) -> Outcome | None:
        """See `AttemptView`: a user ended the job, in the console or by Ray's own commands."""
        is_by_ray = self.job is not None and self.job.status == "STOPPED"
        if self.found.over or not (is_by_ray or (self.folder / "stop").exists()):
            return None
        return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})

    def explain_missing_end(self) -> Outcome:
        """See `AttemptView`."""
        job = self.job
        if job is None:
            return State.FAILED, Reason(ReasonCode.NODE_LOST, {"node": None, "ray": RESTARTED})
        message = job.message.strip().splitlines()
        params: Params = {
            "ray": LOST if self.found.begun else RUNTIME_ENV,
            "error": message[-1].strip()[:_LONGEST] if message else "",
            "exit_code": job.exit_code,
        }
        code = ReasonCode.WRAPPER_LOST if self.found.begun else ReasonCode.START_FAILED
        return State.FAILED, Reason(code, params)

    def end_with_job(self, seen: ReplicaSeen, state: State, reason: Reason) -> ReplicaSeen:
        """See `AttemptView`."""
        is_failed = state is State.FAILED and seen.state is ReplicaState.RUNNING
        ended = ReplicaState.FAILED if is_failed else ReplicaState.STOPPED
        why = reason if is_failed else Reason(ReasonCode.JOB_ENDED)
        return replace(seen, state=ended, reason=why, ended_at=self.job.ended_at if self.job else None)
