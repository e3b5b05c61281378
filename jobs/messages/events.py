"""Events of a job as sentences: a text, and more about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from jobs.messages import faults
from jobs.messages.alerts import alert_message
from jobs.messages.amounts import duration
from jobs.messages.exits import exit_message
from jobs.messages.labels import replica_state_label, state_label
from jobs.messages.reasons import reason_message
from jobs.models import AccessSession, Event, Visibility
from jobs.states import EndKind, ReplicaState, State


def event_message(kind: Event.Kind, params: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of an event, and its reason or other detail, which may be empty."""
    if kind is Event.Kind.REPLICA_STARTED:
        started = _("%(replica)s started on %(node)s") if params.get("node") else _("%(replica)s started")
        return started % {"replica": _replica(params), "node": params.get("node")}, ""
    if kind is Event.Kind.REPLICA_ENDED:
        return _describe_replica_end(params)
    if kind is Event.Kind.END_WANTED:
        return _end_wanted(params.get("kind", "")), _why(params)
    if kind is Event.Kind.ENDED:
        state = state_label(State(params.get("state", State.STOPPED)))
        return _("Ended: %(state)s") % {"state": state}, _reason(params)
    if kind is Event.Kind.SHARED:
        public = params.get("visibility") == Visibility.PUBLIC
        return (_("Shared with the workspace") if public else _("Made private")), ""
    if kind in {Event.Kind.ENTERED, Event.Kind.LEFT}:
        return _session_words(kind, params)
    if kind in {Event.Kind.PRIORITISED, Event.Kind.MOVED, Event.Kind.REORDERED, Event.Kind.TOLD}:
        return _by_admin(kind, params)
    found = {Event.Kind.ALERT: alert_message, Event.Kind.FAULT: faults.decision_message}.get(kind)
    return found(params) if found else (_plain(kind, params), _detail(params))


def _by_admin(kind: Event.Kind, params: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of an admin's action, and its reason."""
    words = {
        Event.Kind.PRIORITISED: _("Priority changed from %(before)s to %(after)s"),
        Event.Kind.MOVED: _("Moved from quota %(before)s to %(after)s"),
        Event.Kind.REORDERED: _("Queue order changed: %(change)s")
        % {"change": _order_change(str(params.get("change")))},
        Event.Kind.TOLD: _("Owner notified about node %(node)s"),
    }
    return words[kind] % {**dict.fromkeys(("before", "after", "node"), ""), **params}, str(
        params.get("why") or ""
    )


def _order_change(name: str) -> str:
    words = {
        "next": _("first"),
        "up": _("one up"),
        "down": _("one down"),
        "usual": _("by priority and waiting time"),
        "anew": _("waits anew"),
    }
    return words.get(name, "")


def _session_words(kind: Event.Kind, params: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of a session's begin or end, and its address or reason."""
    by_ssh = params.get("way") == AccessSession.Kind.SSH
    if kind is Event.Kind.LEFT:
        why = params.get("why")
        left = _("SSH connection to %(replica)s closed") if by_ssh else _("Terminal of %(replica)s closed")
        return left % {"replica": _replica(params)}, str(AccessSession.Why(why).label) if why else ""
    entered = _("SSH connection to %(replica)s opened") if by_ssh else _("Terminal of %(replica)s opened")
    address = params.get("address")
    return entered % {"replica": _replica(params)}, _("from %(address)s") % {
        "address": address
    } if address else ""


def _why(params: Mapping[str, Any]) -> str:
    why = str(params.get("why") or "")
    if params.get("kind") == EndKind.IDLE:
        return _("idle for %(time)s") % {"time": duration(int(why))}
    if params.get("kind") == EndKind.EARLY_STOP:
        text = _("best %(metric)s by step %(step)s: %(best)s; median of %(jobs)s other jobs: %(median)s")
        return str(text % json.loads(why))
    return why


def _detail(params: Mapping[str, Any]) -> str:
    """Return the checkpoint of an event, or else its reason."""
    return str(params.get("checkpoint") or "") or _reason(params)


def _plain(kind: Event.Kind, params: Mapping[str, Any]) -> str:
    if kind is Event.Kind.ADMITTED and params.get("replicas"):
        return _("Resources reserved for %(replicas)s of %(all)s replicas") % params
    words = {
        Event.Kind.SUBMITTED: _("Submitted"),
        Event.Kind.QUEUED_AGAIN: _("Queued for another attempt"),
        Event.Kind.ADMITTED: _("Resources reserved"),
        Event.Kind.ACCEPTED: _("Accepted by the cluster"),
        Event.Kind.STARTED: _("Started"),
        Event.Kind.END_ASKED: _("Stop request sent to the cluster"),
        Event.Kind.REQUEUED: _("Restarted by the cluster"),
        Event.Kind.FOUND_AGAIN: _("Contact restored"),
        Event.Kind.LOST: _("Contact lost"),
        Event.Kind.LOGS_SEALED: _("Logs stored"),
        Event.Kind.IDLE_WARNED: _("Owner notified: the job is idle"),
        Event.Kind.STILL_NEEDED: _("Marked as still needed"),
        Event.Kind.RESUMED: _("Resumed from a checkpoint"),
        Event.Kind.EXTENDED: _("Extended by 1 hour"),
        Event.Kind.NOT_EXTENDED: _("Not extended: the cluster can't change the time limit of a running job"),
    }
    return words.get(kind, str(kind.label))


def _describe_replica_end(params: Mapping[str, Any]) -> tuple[str, str]:
    state = replica_state_label(ReplicaState(params.get("state", ReplicaState.STOPPED)))
    text = _("%(replica)s ended: %(state)s") % {"replica": _replica(params), "state": state}
    return text, exit_message(params.get("exit_code"), params.get("signal"))


def _end_wanted(kind: str) -> str:
    words = {
        EndKind.USER_STOP: _("Stop requested"),
        EndKind.ADMIN_STOP: _("Stop requested"),
        EndKind.TIME_LIMIT: _("Time limit reached"),
        EndKind.PREEMPTION: _("Preempted"),
        EndKind.DRAIN: _("Stop requested: the node is being drained"),
        EndKind.REQUEUE: _("Stop requested: the job is queued again"),
        EndKind.GROWTH: _("Stop requested: the job restarts with more replicas"),
        EndKind.IDLE: _("Stop requested: the job is not using its resources"),
        EndKind.EARLY_STOP: _("Stopped early by the median rule of its sweep"),
        EndKind.FAULT: _("Fault detected: the attempt is ended"),
        EndKind.COMPLETION: _("Completion policy met"),
    }
    return words[EndKind(kind)] if kind else _("Stop requested")


def _reason(params: Mapping[str, Any]) -> str:
    code = params.get("reason", "")
    return reason_message(code, params) if code else ""


def _replica(params: Mapping[str, Any]) -> str:
    return f"{params.get('role')}-{params.get('index')}"
