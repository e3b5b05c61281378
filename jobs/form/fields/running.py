"""When the job runs, how long, and what is left of it afterwards."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, SEED_SCM, SEED_ZH, Field, Kind, Rows, cell, choice_of
from jobs.form.measures import Choice, Flag, Number, Text
from jobs.spec import Idle, When

MINUTE: Final = 60
HOUR: Final = 3600
HOURS: Final = _("hours")

RUNNING: Final = (
    Field(
        "idle",
        "/idle",
        Kind.CHOICE,
        _("Idle resources"),
        choice_of(Idle),
        help=_("Runs on what other quotas leave idle; it is ended when they want it back."),
        source=f"{BOTH}: idle resources",
        options=(
            ("", _("As the quota says")),
            ("forbid", _("Never")),
            ("accept", _("Also on idle resources")),
            ("force", _("Only on idle resources")),
        ),
    ),
    Field(
        "cpu-affinity",
        "/cpu_affinity",
        Kind.FLAG,
        _("CPU affinity"),
        Flag(),
        help=_("Binds processes to cores: fewer cache misses and switches, for what is sensitive to them."),
        source=f"{BOTH}: CPU affinity",
    ),
    Field(
        "time-limit",
        "/time_limit_s",
        Kind.NUMBER,
        _("Longest running time"),
        Number(HOUR, least=1, optional=True),
        unit=HOURS,
        help=_("After that the job is ended. Empty: no limit; the PAI page begins with 30 hours."),
        source=f"{SEED_ZH}: longest running time",
    ),
    Field(
        "end-signal",
        "/end_signal/signal",
        Kind.CHOICE,
        _("Signal before the end"),
        Choice({"": "", **{each: each for each in ("USR1", "USR2", "INT", "HUP", "TERM")}}),
        help=_("A warning to the job's processes, so that they can save what they have."),
        source="JobSpec",
        options=(("", _("None")), *((each, f"SIG{each}") for each in ("USR1", "USR2", "INT", "HUP", "TERM"))),
    ),
    Field(
        "end-signal-before",
        "/end_signal/seconds_before",
        Kind.NUMBER,
        _("How long before the end"),
        Number(optional=True, none=300),
        unit=_("seconds"),
        help=_("Empty: 300."),
        source="JobSpec",
    ),
    Field(
        "grace",
        "/grace_s",
        Kind.NUMBER,
        _("Time to end by itself"),
        Number(most=3600),
        unit=_("seconds"),
        help=_("Between the request to end and the end by force."),
        source="CreateJob: TerminationGracePeriodSeconds",
    ),
    Field(
        "keep-for",
        "/reserve_after/seconds",
        Kind.NUMBER,
        _("Retention"),
        Number(MINUTE, least=1, optional=True),
        unit=_("minutes"),
        help=_("A kept job goes on holding its resources after its end; then it is deleted for good."),
        source=f"{SEED_ZH}: retention",
    ),
    Field(
        "keep-when",
        "/reserve_after/when",
        Kind.CHOICE,
        _("Keep it when it"),
        Choice({each: each for each in ("always", "failed", "succeeded")}),
        source=f"{SEED_ZH}: retention",
        options=(
            ("always", _("has ended, however")),
            ("failed", _("has failed")),
            ("succeeded", _("has succeeded")),
        ),
    ),
    Field(
        "keep-failed",
        "/keep_failed_s",
        Kind.NUMBER,
        _("Keep what a failed task left"),
        Number(MINUTE, none=0, optional=True),
        unit=_("minutes"),
        help=_("Its folder and container stay for so long, to look into."),
        source=f"{SEED_SCM}: jobEnvs.isDebug",
    ),
    Field(
        "hold",
        "/hold",
        Kind.FLAG,
        _("Submit on hold"),
        Flag(),
        help=_("The job waits until you release it."),
        source="JobSpec",
    ),
    Field(
        "not-before",
        "/not_before",
        Kind.TEXT,
        _("Not before"),
        Text(fits=r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?", wrong="no_time"),
        help=_("A date and a time, as 2027-01-31T22:00:00+08:00."),
        source="JobSpec",
    ),
    Field(
        "retries",
        "/retry/limit",
        Kind.NUMBER,
        _("Automatic retries"),
        Number(optional=True),
        help=_("Empty: again and again."),
        source=f"{SEED_SCM}: retryCount",
    ),
)

AFTER: Final = Rows(
    "after",
    "/after",
    _("Start after other jobs"),
    (
        cell("job", Kind.TEXT, _("Job"), placeholder="9f2k4m7q1x3z"),
        cell(
            "when",
            Kind.CHOICE,
            _("once it has"),
            choice_of(When, none=False),
            options=(("succeeded", _("succeeded")), ("ended", _("ended, however")), ("failed", _("failed"))),
        ),
    ),
    help=_(
        "The id of a job, or the name of one of your own. The job waits until all of them have come so far."
    ),
    source="JobSpec",
)
