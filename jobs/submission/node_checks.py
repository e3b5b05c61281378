"""The sanity check of an attempt: whether it has one."""

from __future__ import annotations

from typing import Final

from jobs.dialects.argument_text import parse_arguments
from jobs.models import Attempt, SanityCheck
from jobs.spec import JobSpec

AFTER_FAULTS: Final = "AfterJobFaultTolerant"
"""Value of `--sanity-check-timing`: later attempts are checked too, not the first alone."""


def adapt(spec: JobSpec, attempt: Attempt) -> JobSpec:
    """Return the job as this attempt runs it.

    The first one is checked, later ones where the job asks for it or the check has not been passed yet.
    """
    if not spec.sanity_check.enabled or attempt.number == 1:
        return spec
    checks = SanityCheck.objects.filter(attempt__job=attempt.job_id, attempt__number__lt=attempt.number)
    after_faults = parse_arguments(spec.sanity_check.arguments).get("sanity-check-timing") == AFTER_FAULTS
    if not after_faults and checks.filter(status=SanityCheck.Status.SUCCEEDED).exists():
        off = spec.sanity_check.model_copy(update={"enabled": False})
        spec = spec.model_copy(update={"sanity_check": off})
    return spec
