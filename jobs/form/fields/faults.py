"""Fault tolerance, the sanity check, TensorBoard and the job's role in the cloud."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.dialects.fault_arguments import BY_NAME, Vendor
from jobs.form import subfields
from jobs.form.fields.base import BOTH, Field, FieldKind, Words, choice_of
from jobs.form.measures import Choice, Flag, Lines, Measure, Number, PlainText
from jobs.form.subfields import TextArgument
from jobs.spec import AlertComparison, AlertMetric, RestartScope

_ARGUMENTS: Final = {
    "job-execution-mode": _("Execution mode"),
    "enable-job-restart": _("Restart the job"),
    "max-num-of-job-restart": _("Maximum restarts"),
    "job-restart-timeout": _("Restart timeout (seconds)"),
    "enable-job-hang-detection": _("Hang detection (Sync only)"),
    "job-hang-interval": _("Hang timeout (seconds)"),
    "enable-c4d-hang-detection": _("C4D hang detection"),
    "enable-log-hang-detection": _("Log-based hang detection"),
    "enable-local-detection": _("Local fault detection"),
    "enable-perftracker": _("Performance tracking"),
    "fault-tolerant-policy": _("Restart policy"),
    "enable-replace": _("Replace faulty nodes"),
    "enable-hang-detection": _("Hang detection"),
    "hang-detection-log-timeout-minutes": _("Time without output (minutes)"),
    "hang-detection-startup-toleration-minutes": _("Start-up tolerance (minutes)"),
    "hang-detection-stack-timeout-minutes": _("Time with the same stack (minutes)"),
    "max-num-of-unconditional-retry": _("Maximum retries after any error"),
    "sanity-check-timing": _("Check timing"),
    "sanity-check-timeout": _("Check timeout (seconds)"),
    "sanity-check-timeout-ops": _("On timeout"),
}
_SOURCES: Final = {Vendor.DLC: "AIMaster", Vendor.AIHC: "AIHC"}
_WORDS: Final = {
    "Sync": _("Synchronous"),
    "Async": _("Asynchronous"),
    "True": _("Yes"),
    "False": _("No"),
    "OnFailure": _("On any failure"),
    "ExitCodeAndErrorMsg": _("By exit code and error message"),
    "AfterJobFaultTolerant": _("Before the first attempt and after each fault"),
    "MarkJobFail": _("The attempt fails"),
}


def _argument(prefix: str, path: str, each: subfields.KnownArgument, source: str) -> Field:
    """An argument as a field of its own."""
    options: tuple[tuple[str, Words], ...] = (
        ("", _("Default")),
        *((value, _WORDS[value]) for value in each.options),
    )
    measure: Measure = PlainText(fits=r"[0-9]{1,9}", wrong="no_number") if each.number else PlainText()
    if each.options:
        measure = Choice({"": "", **{value: value for value in each.options}})
    return Field(
        f"{prefix}-{each.name}",
        path,
        FieldKind.CHOICE if each.options else FieldKind.NUMBER if each.number else FieldKind.TEXT,
        _ARGUMENTS[each.name],
        measure,
        source=source,
        options=options if each.options else (),
        placeholder=each.usual,
        subfield=TextArgument(each.name),
    )


ALERT: Final = (
    Field(
        "alert",
        "/alert/metric",
        FieldKind.CHOICE,
        _("Alert on"),
        choice_of(AlertMetric),
        help=_(
            "Your notification channels are told once when the condition holds while the job runs. Percent "
            "of what the job requested, or minutes of running time."
        ),
        source="JobSpec",
        options=(
            ("", _("None")),
            ("gpu", _("GPU utilization")),
            ("cpu", _("CPU utilization")),
            ("memory", _("Memory use")),
            ("running", _("Running time")),
        ),
    ),
    Field(
        "alert-comparison",
        "/alert/comparison",
        FieldKind.CHOICE,
        _("Condition"),
        choice_of(AlertComparison, none=False),
        source="JobSpec",
        options=(("below", _("below")), ("above", _("above"))),
    ),
    Field(
        "alert-value",
        "/alert/value",
        FieldKind.NUMBER,
        _("Value"),
        Number(most=1_000_000, optional=True, none=10),
        help=_("Percent or minutes. Empty: 10."),
        source="JobSpec",
    ),
    Field(
        "alert-minutes",
        "/alert/minutes",
        FieldKind.NUMBER,
        _("Time before the alert"),
        Number(most=100_000, optional=True, none=10),
        unit=_("minutes"),
        help=_("Empty: 10."),
        source="JobSpec",
    ),
)

FAULTS: Final = (
    Field(
        "fault-tolerance",
        "/fault_tolerance/enabled",
        FieldKind.FLAG,
        _("Automatic fault tolerance"),
        Flag(),
        help=_(
            "Finds out why the job failed or hangs, and restarts it where that can help: after errors of the "
            "platform always, after others as often as allowed, after the program's own errors not."
        ),
        source=f"{BOTH}: automatic fault tolerance",
    ),
    *(
        _argument("fault", "/fault_tolerance/arguments", each, _SOURCES[BY_NAME[each.name].vendor])
        for each in subfields.FAULT_TOLERANCE
    ),
    Field(
        "fault-arguments",
        "/fault_tolerance/arguments",
        FieldKind.TEXT,
        _("All fault tolerance arguments"),
        help=_("These and other arguments, as written in the file."),
        source=f"{BOTH}: automatic fault tolerance",
        placeholder="--enable-job-restart=True --max-num-of-job-restart=3",
    ),
    Field(
        "fault-patterns",
        "/fault_tolerance/patterns",
        FieldKind.LONG,
        _("Also restart after output that matches"),
        Lines(),
        help=_(
            "Regular expressions, one per line. A line that matches ends the running job, which is restarted "
            "as often as allowed. Upper and lower case differ."
        ),
        source="JobSpec",
        placeholder="lost shard [0-9]+",
    ),
    Field(
        "fault-scope",
        "/fault_tolerance/restart_scope",
        FieldKind.CHOICE,
        _("Restart scope"),
        choice_of(RestartScope, none=False),
        help=_(
            "Only the failed replica: the others keep running and wait for it, which the program has to "
            "support, as elastic training with torchrun does."
        ),
        source="JobSpec",
        options=(("job", _("The whole job")), ("replica", _("Only the failed replica"))),
    ),
    Field(
        "sanity-check",
        "/sanity_check/enabled",
        FieldKind.FLAG,
        _("Sanity check"),
        Flag(),
        help=_(
            "Checks CPU, memory, disk, GPUs and network of all replicas before their commands start. Where "
            "a check fails, no command starts, and the next attempt leaves faulty nodes out."
        ),
        source=f"{BOTH}: sanity check",
    ),
    *(_argument("sanity", "/sanity_check/arguments", each, "SanityCheck") for each in subfields.SANITY_CHECK),
    Field(
        "sanity-arguments",
        "/sanity_check/arguments",
        FieldKind.TEXT,
        _("All sanity check arguments"),
        source=f"{BOTH}: sanity check",
    ),
    *ALERT,
    Field(
        "tensorboard",
        "/tensorboard/enabled",
        FieldKind.FLAG,
        "TensorBoard",
        Flag(),
        help=_("Runs TensorBoard alongside the job."),
        source="JobSpec",
    ),
    Field(
        "tensorboard-path",
        "/tensorboard/log_path",
        FieldKind.TEXT,
        _("TensorBoard log folder"),
        source="JobSpec",
        placeholder="/root/logs",
    ),
)


ROLES: Final = (
    Field(
        "instance-role",
        "/instance_role",
        FieldKind.TEXT,
        _("Instance RAM role"),
        help=_(
            "The job gets short-lived credentials of this role. Empty: no role. “default”: the default "
            "role of the workspace. Or the ARN of a role that an admin has added to the workspace."
        ),
        source=f"{BOTH}: instance RAM role",
        placeholder="acs:ram::123456:role/training",
    ),
)
