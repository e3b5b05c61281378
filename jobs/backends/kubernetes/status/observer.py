"""Observing an attempt: its pods, what is recorded of them, and what has to be done about them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Gone, Observation, Unreachable, Unseen
from jobs.backends.kubernetes.client.api import Api, ApiError, Expired
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.discovery import KUEUE, find_operators
from jobs.backends.kubernetes.handles import KEY_LABEL, AttemptRef, pod_name
from jobs.backends.kubernetes.logs import copies
from jobs.backends.kubernetes.logs.log_file import read_position
from jobs.backends.kubernetes.objects import attempt as attempt_objects
from jobs.backends.kubernetes.objects.attempt import ClaimState
from jobs.backends.kubernetes.objects.kubeflow import QUEUE_LABEL, name_roles
from jobs.backends.kubernetes.objects.pods import name_main
from jobs.backends.kubernetes.sessions import ContainerRef
from jobs.backends.kubernetes.status import observation, operator_jobs, records, replicas
from jobs.backends.kubernetes.status.records import AttemptStatus, StopRequest
from jobs.backends.kubernetes.status.replicas import ReplicaStatus
from jobs.backends.kubernetes.status.signals import send_signal
from jobs.backends.kubernetes.submitter import Submitter
from jobs.backends.remote import attempts
from jobs.backends.remote.records import AttemptRecord, RoleRecord, read_record
from jobs.dialects.kubeflow.kinds import BY_NAME
from jobs.node.network.names import join_name
from jobs.node.supervisor.decision import plan_ending
from jobs.states import Params, Reason, ReasonCode, ReplicaState, State

Object = dict[str, Any]
Pods = Mapping[str, Object]
"""The pods of an attempt by their names."""

REPLAY_S: Final = 2
"""So long at most a watch tells again what has happened."""

LISTED_S: Final = 60
"""The recorded resource version is no older; etcd forgets them after five minutes."""

OVERDUE_S: Final = 60
"""A pod whose node has not ended it so long after it had to be gone is removed without it."""

UNBEGUN_S: Final = 4
"""The same of a pod whose command has not begun, and can't as its claim is closed.

Kubelets of Kubernetes 1.20 may take 45 seconds for that.
"""

COPY_S: Final = 30
"""An ended replica is told to have ended when its output is copied, or so long after its end."""

_HELD: Final[Mapping[str, ReplicaStatus]] = {}
"""Stands for an attempt that is held."""

REMOVALS: Final = {"Preempted": "Preempted", "Preempting": "Preempted", "TaintManagerEviction": "NodeLost"}
"""Events about a pod that tell why it was removed, and the words for that (`texts`)."""


class Observer:
    """The API server, for the attempts of a console; `version` is that of the list that pods come from."""

    def __init__(self, api: Api, config: KubernetesConfig, version: str) -> None:
        self._api = api
        self._config = config
        self._version = version
        self._now = time.time()
        self._submitter = Submitter(api, config)
        self._workloads: dict[str, Pods] = {}

    def observe(self, attempt: AttemptRef, folder: Path, pods: Pods) -> Observation | Gone | Unseen:
        """Return the observation of an attempt with these pods, and act on it.  Raises Unreachable."""
        try:
            return self._observe(attempt, folder, pods)
        except ApiError as error:  # about this attempt, and not about the others
            return Unseen(str(error))

    def stop(self, attempt: AttemptRef, folder: Path, pods: Pods) -> None:
        """Begin to end an attempt as its stop request says.  Raises Unreachable."""
        try:
            self._submitter.close(attempt)
            self._note_version(folder)
            if (request := records.read_stop(folder)) is not None:
                self._signal(pods, request.signal)
                self._delete_stopped(attempt, _kind_of(folder), pods, request)
        except ApiError as error:
            raise Unreachable(str(error)) from error

    def _observe(self, attempt: AttemptRef, folder: Path, pods: Pods) -> Observation | Gone:
        record = read_record(folder)
        if record is None:
            return Gone.GONE
        before, stop = records.read_status(folder), records.read_stop(folder)
        is_ending = bool(before.ending) or stop is not None
        found: dict[str, ReplicaStatus] = {}
        missing: dict[str, tuple[str, RoleRecord]] = {}
        for role, name, pod in list_pods(record, attempt.key):
            known = before.replicas.get(name)
            if known is not None and known.has_ended:
                found[name] = known
            elif pod in pods and not _is_replaced(known, pods[pod]):
                seen = _with_start(known, replicas.read_pod(pods[pod], role.memory_mib, self._now))
                found[name] = self._judge(attempt, seen, pods[pod], is_ending=is_ending)
            else:
                found[name] = known or ReplicaStatus(ReplicaState.WAITING)
                missing[name] = (pod, role)
        if record.kind and not is_ending:
            self._ask_operator(attempt, record.kind, found, missing)
        if missing:
            answer = self._find_missing(attempt, folder, missing, found, is_ending=is_ending)
            if answer is None:
                return Gone.GONE
            if answer is _HELD:
                return observation.observe_held(record, folder)
            found |= answer
        else:
            self._note_version(folder, is_leaving=any(each.was_removed for each in found.values()))
        return self._conclude(
            attempt, folder, record, AttemptStatus(found, before.ending), before, stop, pods
        )

    def _conclude(
        self,
        attempt: AttemptRef,
        folder: Path,
        record: AttemptRecord,
        status: AttemptStatus,
        before: AttemptStatus,
        stop: StopRequest | None,
        pods: Pods,
    ) -> Observation:
        """Record what was found; end what is to be ended, and clear up after what has ended."""
        is_over = all(each.has_ended for each in status.replicas.values())
        decided = observation.decide(record, status.replicas, None) is not None
        if decided and not is_over and not status.ending:
            status = replace(status, ending="verdict")
        if status != before:
            records.write_status(folder, status)
        copied = self._without_uncopied(attempt, folder, record, status)
        self._delete(attempt, _with_sidecars(pods, record, attempt, copied), None)
        seen = observation.observe(record, copied, stop, folder)
        if is_over and copied != status:
            return seen
        if is_over:
            claim = self._submitter.close(attempt)
            if any(each.exit_code is None for each in status.replicas.values()):
                self._submitter.delete_job(attempt, record.kind)  # which would make the pods again
            self._delete(attempt, self._failed_to_start(record, attempt, status, pods), 0)
            self._submitter.remove_secrets(attempt, claim)
            return records.write_end(folder, seen)
        if status.ending:
            self._submitter.close(attempt)
            self._submitter.delete_job(attempt, record.kind)
            self._delete(attempt, _alive(pods, record, attempt, status), None)
        elif stop is not None:
            self._delete_stopped(attempt, record.kind, pods, stop)
        elif seen.started_at is not None:
            self._warn(folder, pods, record.time_limit_s, seen.started_at)
        return seen

    def _warn(self, folder: Path, pods: Pods, limit_s: int | None, started_at: float) -> None:
        """Send the job's signal some time before its time limit, once."""
        warning = records.read_warning(folder)
        if warning is None or limit_s is None or self._now < started_at + limit_s - warning[1]:
            return
        records.remove_warning(folder)
        self._signal(pods, warning[0])

    def _without_uncopied(
        self, attempt: AttemptRef, folder: Path, record: AttemptRecord, status: AttemptStatus
    ) -> AttemptStatus:
        """Return the status in which ended replicas still run until their output is copied."""
        found = dict(status.replicas)
        for _role, name, pod in list_pods(record, attempt.key):
            each = found[name]
            if (
                each.has_ended
                and each.started_at is not None
                and not self._is_copied(attempt, record.kind, folder, name, pod)
            ):
                if abs(self._now - (each.ended_at or 0)) > COPY_S:
                    continue
                running = replace(each, state=ReplicaState.RUNNING, reason=None, ended_at=None)
                found[name] = replace(running, exit_code=None, signal=None)
        return replace(status, replicas=found)

    def _is_copied(self, attempt: AttemptRef, kind: str, folder: Path, name: str, pod: str) -> bool:
        """Return whether the output of an ended replica is copied, and copy what is missing."""
        log = observation.log_path(folder, name)
        if read_position(log).is_complete:
            return True
        ref = ContainerRef(attempt.namespace, pod, name_main(kind))
        try:
            return copies.catch_up(self._api, ref, log, is_last=True)
        except Unreachable:
            return False

    def _failed_to_start(
        self, record: AttemptRecord, attempt: AttemptRef, status: AttemptStatus, pods: Pods
    ) -> list[Object]:
        """Return pods that the kubelet still tries to start, although the console has given them up."""
        return [
            pods[pod]
            for _role, name, pod in list_pods(record, attempt.key)
            if pod in pods
            and (pods[pod].get("status") or {}).get("phase") in ("Pending", "Running")
            and status.replicas[name].exit_code is None
        ]

    def _signal(self, pods: Pods, name: str) -> None:
        """Send a signal to all replicas that run; a kubelet sends SIGTERM itself."""
        if name in ("TERM", "KILL"):
            return
        for pod in pods.values():
            if _has_begun(pod) and not pod["metadata"].get("deletionTimestamp"):
                send_signal(self._config.connection(), pod, name, self._config.timeout_s)

    def _delete_stopped(self, attempt: AttemptRef, kind: str, pods: Pods, stop: StopRequest) -> None:
        """Delete pods: at once for SIGTERM and SIGKILL, else when their time for the signal is over.

        What an operator makes them of goes after them: it would end them with another grace period.
        """
        ending = plan_ending(
            State.STOPPED,
            Reason(ReasonCode.USER_STOP),
            now=stop.since,
            grace_s=stop.until - stop.since,
            signal=stop.signal,
        )
        term_at = next((at for at, name in ending.steps if name in ("TERM", "KILL")), stop.since)
        left_s = 0 if stop.signal == "KILL" else math.ceil(max(0.0, stop.until - self._now))
        has_begun = [pod for pod in pods.values() if _has_begun(pod)]
        waiting = [pod for pod in pods.values() if not _has_begun(pod)]
        self._delete(attempt, waiting, 1)
        if self._now >= term_at:
            self._delete(attempt, has_begun, max(1, left_s))
        if self._now >= term_at or not has_begun:
            self._submitter.delete_job(attempt, kind)

    def _delete(self, attempt: AttemptRef, pods: Iterable[Object], grace_s: int | None) -> None:
        """Delete pods that have not ended; with their own grace period by default.

        The kubelet confirms the end of a pod with a grace period of a second; with none nobody does.
        """
        for pod in pods:
            about, status = pod["metadata"], pod.get("status") or {}
            granted = about.get("deletionGracePeriodSeconds")
            is_shorter = granted is not None and grace_s is not None and grace_s < granted
            if status.get("phase") in ("Succeeded", "Failed") or (granted is not None and not is_shorter):
                continue
            path = attempt.path("pods", about["name"])
            self._api.delete(path, grace_s=grace_s, uid=about["uid"])

    def _judge(
        self, attempt: AttemptRef, seen: ReplicaStatus, pod: Object, *, is_ending: bool
    ) -> ReplicaStatus:
        """Return the status of a replica whose pod may be in deletion, for the console or for somebody else.

        A pod whose node does not answer any more is removed without it; the node ends its containers when it
        is back.  Kubelets of Kubernetes 1.20 forget for a minute to end a pod that was deleted as it began:
        its processes are killed here.
        """
        about = pod["metadata"]
        if not seen.was_removed:
            return seen
        if seen.has_ended:
            return self._with_removal(attempt, about["name"], seen, is_ending=is_ending)
        overdue_s = self._now - datetime.fromisoformat(about["deletionTimestamp"]).timestamp()
        if is_ending and seen.started_at is None and not _has_begun(pod):
            is_overdue = overdue_s >= UNBEGUN_S
        else:
            is_overdue = overdue_s >= OVERDUE_S and (not seen.node or self._is_node_lost(seen.node))
        if not is_overdue:
            if overdue_s >= UNBEGUN_S and seen.state is ReplicaState.RUNNING:
                send_signal(self._config.connection(), pod, "KILL", self._config.timeout_s)
            return seen
        self._api.delete(attempt.path("pods", about["name"]), grace_s=0, uid=about["uid"])
        return self._with_removal(attempt, about["name"], seen, is_ending=is_ending)

    def _with_removal(
        self, attempt: AttemptRef, pod: str, seen: ReplicaStatus, *, is_ending: bool
    ) -> ReplicaStatus:
        """Return the status of a replica whose pod was deleted: by the console, or by somebody else."""
        ended_at = seen.ended_at or self._now
        if is_ending:
            reason = Reason(ReasonCode.JOB_ENDED)
            return replace(seen, state=ReplicaState.STOPPED, reason=reason, ended_at=ended_at)
        word = self._explain_removal(attempt, pod, seen)
        params: Params = {"node": seen.node or None, "kubernetes": word}
        reason = Reason(ReasonCode.NODE_LOST, params)
        return replace(seen, state=ReplicaState.FAILED, reason=reason, ended_at=ended_at)

    def _is_node_lost(self, name: str) -> bool:
        try:
            node = self._api.get(f"/api/v1/nodes/{name}")
        except ApiError as error:
            if not error.is_absent:
                raise
            return True
        conditions = (node.get("status") or {}).get("conditions") or ()
        return not any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)

    def _ask_operator(
        self,
        attempt: AttemptRef,
        kind: str,
        found: dict[str, ReplicaStatus],
        missing: dict[str, tuple[str, RoleRecord]],
    ) -> None:
        """Change the status of replicas without a node to what the operator says of all of them.

        Those whose pods the operator has not made yet are not missing.
        """
        waiting = [
            name for name, each in found.items() if each.state is ReplicaState.WAITING and not each.node
        ]
        if not waiting or any(each.state is ReplicaState.FAILED for each in found.values()):
            return
        if (job := self._submitter.find_job(attempt, kind)) is None:
            return
        is_queued = QUEUE_LABEL in (job["metadata"].get("labels") or {})
        told = operator_jobs.read_job(job, self._find_workload(attempt) if is_queued else None, self._now)
        for name in waiting:
            if told.has_ended or (name in missing and not found[name].uid):
                found[name] = told
                missing.pop(name, None)

    def _find_workload(self, attempt: AttemptRef) -> Object | None:
        """Return what Kueue has of an attempt, None for nothing."""
        version = find_operators(self._api, self._config.connection().server).kueue
        if version and attempt.namespace not in self._workloads:
            items = self._api.list(f"/apis/{KUEUE}/{version}/namespaces/{attempt.namespace}/workloads").items
            owners = ((each, each["metadata"].get("ownerReferences") or ()) for each in items)
            by_name = {owner["name"]: each for each, several in owners for owner in several}
            self._workloads[attempt.namespace] = by_name
        return self._workloads.get(attempt.namespace, {}).get(attempt.key)

    def _find_missing(
        self,
        attempt: AttemptRef,
        folder: Path,
        missing: Mapping[str, tuple[str, RoleRecord]],
        found: Mapping[str, ReplicaStatus],
        *,
        is_ending: bool,
    ) -> Mapping[str, ReplicaStatus] | None:
        """Return the status of replicas without a pod, which was not created yet or was removed.

        Returns `_HELD` for an attempt that is held, and None for one that the API server does not know.
        """
        claim = self._submitter.find_claim(attempt)
        state = attempt_objects.state_of(claim) if claim else None
        if state is ClaimState.SUBMITTED and not is_ending:
            return _HELD
        if claim is not None and state is ClaimState.RELEASED and not attempt_objects.is_created(claim):
            return self._complete(attempt, claim, missing, found)
        if state in (None, ClaimState.PREPARING, ClaimState.FORGOTTEN) and not any(
            each.node for each in found.values()
        ):
            return None
        last = self._replay(attempt, folder, {pod for pod, _role in missing.values()})
        answer: dict[str, ReplicaStatus] = {}
        for name, (pod, role) in missing.items():
            seen = found[name]
            if pod in last:
                seen = _with_start(seen, replicas.read_pod(last[pod], role.memory_mib, self._now))
            if seen.has_ended and not seen.was_removed:
                answer[name] = seen
            else:
                was_closed = is_ending or state is ClaimState.ENDED
                answer[name] = self._with_removal(attempt, pod, seen, is_ending=was_closed)
        return answer

    def _complete(
        self,
        attempt: AttemptRef,
        claim: dict[str, Any],
        missing: Mapping[str, Any],
        found: Mapping[str, ReplicaStatus],
    ) -> Mapping[str, ReplicaStatus]:
        """Create the pods that a killed worker has not created; they wait while that is refused."""
        try:
            self._submitter.complete(attempt, claim)
        except ApiError as error:
            word = "Quota" if "exceeded quota" in error.message else "FailedCreate"
            return {name: replace(found[name], word=word, detail=error.message) for name in missing}
        return found

    def _replay(self, attempt: AttemptRef, folder: Path, names: set[str]) -> dict[str, Object]:
        """Return how pods were when they were removed, as far as the API server still knows that."""
        version = (attempts.read_text(folder / records.LISTED) or "").split()
        if len(version) != 2:
            return {}
        found: dict[str, Object] = {}
        selector = f"{KEY_LABEL}={attempt.key}"
        with suppress(Expired, ApiError, Unreachable):
            path = attempt.path("pods")
            for change in self._api.watch(path, version[0], labels=selector, timeout_s=REPLAY_S):
                name = (change.object.get("metadata") or {}).get("name")
                if name in names and change.kind in ("MODIFIED", "DELETED"):
                    found[name] = change.object
                    names = names - {name} if change.kind == "DELETED" else names
                if not names:
                    break
        return found

    def _explain_removal(self, attempt: AttemptRef, pod: str, seen: ReplicaStatus) -> str:
        """Return the word for why somebody else has removed a pod."""
        events = self._api.list(attempt.path("events"), fields=f"involvedObject.name={pod}").items
        words = [REMOVALS[each["reason"]] for each in events if each.get("reason") in REMOVALS]
        if words:
            return words[-1]
        workload = self._find_workload(attempt)
        if workload is not None and (word := operator_jobs.explain_eviction(workload)):
            return word
        if not seen.node:
            return "Deleted"
        try:
            node = self._api.get(f"/api/v1/nodes/{seen.node}")
        except ApiError as error:
            if not error.is_absent:
                raise
            return "NodeLost"
        if (node.get("spec") or {}).get("unschedulable"):
            return "Drained"
        return "NodeLost" if self._is_node_lost(seen.node) else "Deleted"

    def _note_version(self, folder: Path, *, is_leaving: bool = False) -> None:
        """Record the list's resource version from time to time, so that a removal can be looked up.

        While a pod is in deletion it is each one: the API server tells again only what was lately.
        """
        version = (attempts.read_text(folder / records.LISTED) or "").split()
        if is_leaving or len(version) != 2 or self._now - float(version[1]) > LISTED_S:
            note_version(folder, self._version, self._now)


def note_version(folder: Path, version: str, now: float) -> None:
    """Record a resource version that a watch of the attempt's pods may go on from."""
    attempts.write_text(folder / records.LISTED, f"{version} {now:.0f}\n")


def list_pods(record: AttemptRecord, key: str) -> list[tuple[RoleRecord, str, str]]:
    """Return each replica's role, its name in files, and the name of its pod."""
    sizes = [(role.name, role.replicas) for role in record.roles]
    labels = dict(zip(record.roles, name_roles(BY_NAME.get(record.kind), sizes), strict=True))
    return [
        (role, name, pod_name(key, join_name("", labels[role], index)))
        for role, index, name in record.replicas()
    ]


def _alive(pods: Pods, record: AttemptRecord, attempt: AttemptRef, status: AttemptStatus) -> Sequence[Object]:
    return [
        pods[pod]
        for _role, name, pod in list_pods(record, attempt.key)
        if pod in pods and not status.replicas[name].has_ended
    ]


def _with_sidecars(
    pods: Pods, record: AttemptRecord, attempt: AttemptRef, status: AttemptStatus
) -> Sequence[Object]:
    """Return the pods whose command has ended, and whose sidecars may go on."""
    return [
        pods[pod]
        for _role, name, pod in list_pods(record, attempt.key)
        if pod in pods
        and len(pods[pod]["spec"]["containers"]) > 1
        and status.replicas[name].has_ended
        and status.replicas[name].exit_code is not None
    ]


def _is_replaced(known: ReplicaStatus | None, pod: Object) -> bool:
    """Return whether a pod is another one than the replica's: an operator makes a deleted pod again."""
    return known is not None and known.uid not in ("", pod["metadata"].get("uid"))


def _kind_of(folder: Path) -> str:
    record = read_record(folder)
    return record.kind if record else ""


def _has_begun(pod: Object) -> bool:
    """Return whether the main container of a pod runs or has run."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any((each.get("state") or {}).keys() & {"running", "terminated"} for each in statuses)


def _with_start(known: ReplicaStatus | None, seen: ReplicaStatus) -> ReplicaStatus:
    """Return the status of a replica with what was known before its pod lost its containers."""
    if known is None:
        return seen
    started_at, node = seen.started_at or known.started_at, seen.node or known.node
    return replace(seen, started_at=started_at, node=node)
