"""Jobs in templates: states, reasons and amounts in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from django import template
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs import messages
from jobs.fault_tolerance.decisions import Fault
from jobs.jobtemplates import Constraint, JobTemplate, Parameter
from jobs.lifecycle import pending_reasons
from jobs.messages import amounts, job_policies
from jobs.messages.actions import action_label
from jobs.messages.endpoints import endpoint_message
from jobs.messages.faults import fault_message, stacks_message
from jobs.messages.jobtemplates import question
from jobs.messages.sanity import sanity_word
from jobs.models import Endpoint, Job, Replica, StackDump
from jobs.states import LIVE, ReplicaState, State
from quotas.limits.job_limits import JobLimits
from quotas.models import JobPolicy

register = template.Library()
register.filter("action_label", action_label)
register.filter("field_name", messages.field_name)
register.filter("span", amounts.duration)

MIB_PER_GIB = 1024
MOST_MISSING = 5

TASK_BADGES = {
    ReplicaState.WAITING: State.QUEUED,
    ReplicaState.RUNNING: State.RUNNING,
    ReplicaState.SUCCEEDED: State.SUCCEEDED,
    ReplicaState.FAILED: State.FAILED,
    ReplicaState.STOPPED: State.STOPPED,
}


@register.filter
def metric_value(value: float) -> str:
    """A number that a job printed, in at most 6 digits; whole ones in all of theirs."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


@register.inclusion_tag("components/state_badge.html")
def job_state(job: Job, large: bool = False, brief: bool = False) -> dict[str, Any]:
    """The job's badge; one of a success with failed replicas has their number, unless `brief`."""
    label = messages.state_label(job.state)
    note = failed_of(job) if job.succeeded_with_failures and not brief else ""
    return {
        "state": job.state,
        "label": _with_note(label, note) if note else label,
        "warning": job.succeeded_with_failures,
        "large": large,
    }


def _with_note(label: str, note: str) -> str:
    muted = format_html('<span class="state-note">{}</span>', note)
    return format_html(_("{state}, {note}"), state=label, note=muted)


@register.inclusion_tag("components/state_badge.html")
def replica_state(replica: Replica) -> dict[str, Any]:
    """A replica's badge."""
    state = ReplicaState(replica.state)
    return {"state": TASK_BADGES[state], "label": messages.replica_state_label(state)}


@register.simple_tag
def replica_cells(
    job_url: str, role: str, cells: Sequence[tuple[int, ReplicaState]], log_query: str
) -> SafeString:
    """Return a cell for each replica of a role, by its index and state, that leads to its log."""
    start = f"{job_url}{log_query}&replica={quote(role)}/"
    links = ((state.lower(), f"{start}{index}", f"{role}-{index}") for index, state in cells)
    return format_html_join("", '<a class="cell-{}" href="{}" title="{}" tabindex="-1"></a>', links)


@register.filter
def replica_state_word(state: ReplicaState) -> str:
    """Return a replica's state in a word."""
    return messages.replica_state_label(state)


@register.filter
def of_key(values: Mapping[int, Sequence[str]], key: int) -> Sequence[str]:
    """Return what a mapping has for a key; nothing where it is not in it."""
    return values.get(key, ())


@register.simple_tag
def result_of(values: Mapping[int, Mapping[str, float]], job_id: int, column: str) -> float | None:
    """Return the value of a job in a column of metrics; None where it has none."""
    return values.get(job_id, {}).get(column)


@register.filter
def tab_state(job: Job) -> str:
    """Return the state that the browser tab's icon shows."""
    return "warning" if job.succeeded_with_failures else job.state.lower()


@register.filter
def state_word(job: Job) -> str:
    """The job's state in a word."""
    return messages.state_label(job.state)


@register.filter
def failed_of(job: Job) -> str:
    """How many of the job's replicas failed, in words."""
    text = _("%(failed)s of %(total)s replicas failed")
    return text % {"failed": job.replicas_failed, "total": job.replicas_total}


@register.filter
def reason(job: Job) -> str:
    """Why the job is in its state, in one sentence."""
    why = pending_reasons.reason_of(job)
    return messages.reason_message(why.code, why.params)


@register.filter
def brief_reason(job: Job) -> str:
    """Why the job is in its state, for a row: the line of output that says so where one is known."""
    return str(pending_reasons.reason_of(job).params.get("output") or reason(job))


@register.filter
def attempt_reason(attempt: Any) -> str:
    """Why an attempt ended, in one sentence; empty while it goes on."""
    return messages.reason_message(attempt.reason_code, attempt.reason_params) if attempt.reason_code else ""


register.filter("sanity_word", sanity_word)


@register.filter
def attempt_fault(attempt: Any) -> str:
    """Return the fault that ended an attempt, with the line of output that shows it; empty without one."""
    return fault_message(Fault.from_json(attempt.fault)) if attempt.fault else ""


@register.filter
def stacks_words(dump: StackDump) -> tuple[str, list[str]]:
    """Return what a stack dump tells, and its suspects and missing replicas, a line each."""
    if dump.comparison is None:
        return str(dump.get_state_display()), []
    text, suspects = stacks_message(dump.comparison)
    missing = [f"{name}: {why}" for name, why in list(dump.comparison["missing"].items())[:MOST_MISSING]]
    return text, [*(each for each in suspects.split("; ") if each), *missing]


@register.filter
def tells_why(job: Job) -> bool:
    """Tell whether a list shows the reason: of waiting, failed, lost and partly failed jobs."""
    state = State(job.state)
    return state in {State.QUEUED, State.PENDING, State.FAILED, State.LOST} or job.succeeded_with_failures


@register.filter
def is_stoppable(job: Job) -> bool:
    """Tell whether the job can be stopped."""
    return State(job.state) in LIVE or job.state == State.QUEUED


@register.filter
def lacks(endpoint: Endpoint, replica: Replica) -> str:
    """Return why an endpoint of the replica is not ready, in one sentence; "" when it is."""
    code = endpoint.lacks(replica)
    return endpoint_message(code, endpoint.why_params) if code else ""


@register.filter
def ends_by(job: Job, limit_s: int | None) -> datetime | None:
    """When the job's longest running time is over; None while that is not known, or once it has ended."""
    if not limit_s or job.started_at is None or job.is_ended:
        return None
    return job.started_at + timedelta(seconds=limit_s)


@register.filter
def phase(job: Job) -> str:
    """The phase in words, where it says more than the state."""
    return messages.phase_label(job.phase)


@register.filter
def exit_words(replica: Replica) -> str:
    """How a replica ended, in words; empty while it has not."""
    if replica.exit_code is None and replica.signal is None:
        return ""
    return messages.exit_message(replica.exit_code, replica.signal)


@register.filter
def cores(milli: int) -> str:
    """Milli-CPU as cores: 500 is 0.5."""
    return _short(milli / 1000)


@register.filter
def core_percent(milli: int) -> str:
    """Milli-CPU as percent of one core: 60 is 6%."""
    return f"{number_format(round(milli / 10), use_l10n=True)}%"


@register.filter
def memory(mib: int) -> str:
    """MiB, as GiB from there on."""
    if mib < MIB_PER_GIB:
        return f"{number_format(mib, use_l10n=True)} MiB"
    return f"{_short(mib / MIB_PER_GIB)} GiB"


@register.filter
def transfer_rate(mib_s: float | None) -> str:
    """MiB a second; a dash where that is unknown."""
    return "–" if mib_s is None else f"{number_format(round(mib_s, 1), use_l10n=True)} MiB/s"


@register.filter
def resource_name(kind: str) -> str:
    """Return the label of a resource; a GPU type is its own label."""
    names = {"gpu": _("GPUs"), "cpu_milli": "CPU", "memory_mib": _("Memory"), "jobs": _("Jobs")}
    return names.get(kind, kind)


@register.filter
def of_kind(number: int, kind: str) -> str:
    """An amount of a resource as people read it."""
    if kind == "memory_mib":
        return memory(number)
    return cores(number) if kind == "cpu_milli" else number_format(number, use_l10n=True)


@register.filter
def money(micro: int) -> str:
    """An amount of money in millionths, with at least two decimals; consoles have one currency."""
    cents = micro % 10_000
    return number_format(micro / 1_000_000, decimal_pos=4 if cents else 2, use_l10n=True, force_grouping=True)


@register.filter
def percent(used: int, limit: int) -> int:
    """Whole percent for a meter, 0 to 100."""
    return min(100, round(100 * used / limit)) if limit else 100


def _short(value: float) -> str:
    """At most one decimal, and none where it would be 0."""
    return number_format(round(value, 1), decimal_pos=0 if round(value, 1).is_integer() else 1, use_l10n=True)


@register.filter
def locked_fields(template: JobTemplate) -> list[str]:
    """The fields of a template that stay as they are, by their names."""
    return _fields_with(template, Constraint.LOCKED)


@register.filter
def required_fields(template: JobTemplate) -> list[str]:
    """The fields of a template that must not stay empty, by their names."""
    return _fields_with(template, Constraint.REQUIRED)


def _fields_with(template: JobTemplate, rule: Constraint) -> list[str]:
    return [messages.field_name(path) for path, word in template.constraints.items() if word is rule]


@register.filter
def question_label(parameter: Parameter) -> str:
    """Return the label of a template's question."""
    return parameter.label or question(parameter.name)


@register.filter
def policy_limits(policy: JobPolicy) -> list[str]:
    """Return the limits of a job policy in a few words each."""
    values = ((name, getattr(policy, name)) for name in job_policies.LIMITS)
    return [job_policies.limit_message(name, value) for name, value in values if value not in (None, "")]


@register.filter
def limit_lines(limits: JobLimits | None) -> list[tuple[str, str]]:
    """Return the limits that hold for a person in a few words each, and whose limit each is."""
    if limits is None:
        return []
    text = _("for %(whose)s in quota %(quota)s")
    return [
        (
            job_policies.limit_message(name, found.value),
            text % {"whose": job_policies.describe_subject(found.source), "quota": found.policy.quota.title},
        )
        for name, found in limits.limits.items()
    ]
