"""Fault tolerance, the sanity check, TensorBoard and the job's role in the cloud."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form import subfields
from jobs.form.fields.base import BOTH, Field, FieldKind, Words
from jobs.form.measures import Choice, Flag, Measure, PlainText
from jobs.form.subfields import TextArgument

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
    "sanity-check-timing": _("Check timing"),
    "sanity-check-timeout-ops": _("On timeout"),
}
_WORDS: Final = {
    "Sync": _("Synchronous"),
    "Async": _("Asynchronous"),
    "True": _("Yes"),
    "False": _("No"),
    "OnFailure": _("On any failure"),
    "ExitCodeAndErrorMsg": _("By exit code and error message"),
}


def _argument(prefix: str, path: str, each: subfields.KnownArgument) -> Field:
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
        source="AIMaster" if prefix == "fault" else "SanityCheck",
        options=options if each.options else (),
        placeholder=each.usual,
        subfield=TextArgument(each.name),
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
    *(_argument("fault", "/fault_tolerance/arguments", each) for each in subfields.AIMASTER),
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
        "sanity-check",
        "/sanity_check/enabled",
        FieldKind.FLAG,
        _("Sanity check"),
        Flag(),
        help=_(
            "Checks the nodes before training and isolates faulty ones. PyTorch jobs with GPUs on "
            "a Lingjun quota only."
        ),
        source=f"{BOTH}: sanity check",
    ),
    *(_argument("sanity", "/sanity_check/arguments", each) for each in subfields.SANITY_CHECK),
    Field(
        "sanity-arguments",
        "/sanity_check/arguments",
        FieldKind.TEXT,
        _("All sanity check arguments"),
        source=f"{BOTH}: sanity check",
    ),
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
            "Empty: no role. “default”: the PAI default role, with your MaxCompute permissions and "
            "access to the workspace's default OSS bucket. Or the ARN of a custom role."
        ),
        source=f"{BOTH}: instance RAM role",
        placeholder="acs:ram::123456:role/training",
    ),
)
