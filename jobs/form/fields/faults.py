"""Fault tolerance, the sanity check, TensorBoard and the job's role in the cloud."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form import subfields
from jobs.form.fields.base import BOTH, Field, FieldKind, Words
from jobs.form.measures import Choice, Flag, Measure, PlainText
from jobs.form.subfields import TextArgument

_ARGUMENTS: Final = {
    "job-execution-mode": _("How the job runs"),
    "enable-job-restart": _("Start the job again"),
    "max-num-of-job-restart": _("Restarts at most"),
    "job-restart-timeout": _("Longest time of a restart (seconds)"),
    "enable-job-hang-detection": _("Find out when it hangs (Sync only)"),
    "job-hang-interval": _("It hangs after (seconds)"),
    "enable-c4d-hang-detection": _("C4D finds out when it hangs"),
    "enable-log-hang-detection": _("The log tells when it hangs"),
    "enable-local-detection": _("Look for faults on the node"),
    "enable-perftracker": _("Track performance"),
    "fault-tolerant-policy": _("Start again"),
    "sanity-check-timing": _("When it is done"),
    "sanity-check-timeout-ops": _("When it takes too long"),
}
_WORDS: Final = {
    "Sync": _("Synchronous"),
    "Async": _("Asynchronous"),
    "True": _("Yes"),
    "False": _("No"),
    "OnFailure": _("After every failure"),
    "ExitCodeAndErrorMsg": _("By exit code and error message"),
}


def _argument(prefix: str, path: str, each: subfields.KnownArgument) -> Field:
    """An argument as a field of its own."""
    options: tuple[tuple[str, Words], ...] = (
        ("", _("As the target has it")),
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
            "Watches the job for errors of the algorithm and works around them. Its own instance takes "
            "1 CPU core and 1 GiB of memory of the quota, or an ecs.c6.large of public resources."
        ),
        source=f"{BOTH}: automatic fault tolerance",
    ),
    *(_argument("fault", "/fault_tolerance/arguments", each) for each in subfields.AIMASTER),
    Field(
        "fault-arguments",
        "/fault_tolerance/arguments",
        FieldKind.TEXT,
        _("All arguments of fault tolerance"),
        help=_("The same and any others as they stand in the file."),
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
            "Examines the nodes before training and sets faulty ones aside. Only for PyTorch jobs with GPUs "
            "on a Lingjun quota."
        ),
        source=f"{BOTH}: sanity check",
    ),
    *(_argument("sanity", "/sanity_check/arguments", each) for each in subfields.SANITY_CHECK),
    Field(
        "sanity-arguments",
        "/sanity_check/arguments",
        FieldKind.TEXT,
        _("All arguments of the sanity check"),
        source=f"{BOTH}: sanity check",
    ),
    Field(
        "tensorboard",
        "/tensorboard/enabled",
        FieldKind.FLAG,
        "TensorBoard",
        Flag(),
        help=_("A TensorBoard runs beside the job."),
        source="JobSpec",
    ),
    Field(
        "tensorboard-path",
        "/tensorboard/log_path",
        FieldKind.TEXT,
        _("Folder of the TensorBoard"),
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
            "Empty: no role. “default”: PAI's own, which reaches MaxCompute as you do and the workspace's "
            "default OSS bucket. Or the ARN of a custom role."
        ),
        source=f"{BOTH}: instance RAM role",
        placeholder="acs:ram::123456:role/training",
    ),
)
