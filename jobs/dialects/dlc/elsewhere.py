"""What DLC itself would not take: limits and conditions of that target, told to everybody, binding none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from jobs.dialects.dlc import conditions, keys, limits
from jobs.dialects.dlc import settings_keys as names
from jobs.dialects.fields import Limit
from jobs.dialects.findings import Findings
from jobs.spec import JobSpec

DLC: Final = "DLC"


def remark(spec: JobSpec, value: Mapping[str, object], findings: Findings) -> None:
    """Note every limit of DLC's that the request goes beyond."""
    _over(findings, keys.ENVS.key, conditions.variables(spec), limits.MOST_VARIABLES)
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    _over(findings, "", size, limits.MOST_BYTES)
    if not spec.quota:
        gpus, cores = conditions.gpus_and_cores(spec)
        _over_public(findings, "GPU", gpus, limits.PUBLIC_GPUS)
        _over_public(findings, "CPU", cores, limits.PUBLIC_CPUS)
    if spec.time_limit_s is None and keys.MAX_RUNNING.key not in value:
        minutes = limits.DEFAULT_RUNNING_MINUTES.value
        findings.note("no_limit_here", "", key=keys.MAX_RUNNING.key, minutes=minutes, target=DLC)
    _sanity_check(spec, findings)


def _over(findings: Findings, key: str, value: int, most: Limit) -> None:
    if value > most.value:
        pointer = f"/{key}" if key else ""
        findings.note(
            "over_vendor_limit",
            pointer,
            key=key,
            value=value,
            most=most.value,
            target=DLC,
            source=most.source,
        )


def _over_public(findings: Findings, kind: str, value: int, most: Limit) -> None:
    if value > most.value:
        pointer = f"/{keys.JOB_SPECS.key}"
        findings.note("over_public_limit", pointer, key=kind, value=value, most=most.value, target=DLC)


def _sanity_check(spec: JobSpec, findings: Findings) -> None:
    """SanityCheck is for PyTorch with GPUs on a Lingjun quota."""
    if not spec.sanity_check.enabled:
        return
    lacking = conditions.lacks_for_sanity_check(spec, quota=bool(spec.quota))
    if lacking:
        pointer = f"/{names.SETTINGS.key}/{names.SANITY_CHECK.key}"
        findings.note(
            "condition_unmet",
            pointer,
            key=names.SANITY_CHECK.key,
            lacking=", ".join(lacking),
            target=DLC,
            source=limits.PAGE,
        )
