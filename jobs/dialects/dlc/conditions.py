"""Conditions and limits of DLC for a job, each worked out once for the form and the dialect.

They bind a job at DLC alone: elsewhere `note_limits` only tells of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from jobs.dialects.dlc import keys, limits
from jobs.dialects.dlc import settings_keys as names
from jobs.dialects.dlc.job_types import find_job_type
from jobs.dialects.fields import Limit
from jobs.dialects.findings import Findings
from jobs.spec import Framework, JobSpec

DLC: Final = "DLC"
PORT_LIST: Final = "customPortList"
PORT_NUMBER: Final = "customPortNumPerWorker"

_LAST_PORT: Final = 65_535
_PORT_RANGE: Final = re.compile(r"(?P<first>\d{1,5})(?:-(?P<last>\d{1,5}))?", re.ASCII)


def count_variables(spec: JobSpec) -> int:
    """Return the number of environment variables that the job sets."""
    return len(spec.env) + len(spec.secret_env)


def count_gpus_and_cores(spec: JobSpec) -> tuple[int, int]:
    """Return the GPUs and CPU cores of the whole job, as the limits of public resources count them."""
    gpus = sum(role.replicas * role.resources.gpus for role in spec.roles)
    return gpus, sum(role.replicas * role.resources.cpu_milli for role in spec.roles) // 1000


def find_unmet_sanity_conditions(spec: JobSpec, *, quota: bool) -> list[str]:
    """Return the unmet conditions of a sanity check: PyTorch, GPUs, and a Lingjun quota."""
    conditions = (
        ("PyTorchJob", spec.framework is Framework.PYTORCH),
        ("ResourceId", quota),
        ("GPU", any(role.resources.gpus for role in spec.roles)),
    )
    return [condition for condition, is_met in conditions if not is_met]


def find_needed_job_type(key: str) -> str:
    """Return the job type to which an advanced setting belongs; "" for one of all."""
    return names.JOB_TYPE_OF_SETTING.get(key, "")


def is_for_framework(key: str, framework: Framework | None) -> bool:
    """Tell whether an advanced setting is one of this framework."""
    needed = find_needed_job_type(key)
    return not needed or (framework is not None and find_job_type(framework).name == needed)


def has_both_port_settings(options: Mapping[str, str]) -> bool:
    """Tell whether ports are requested by list and by number, which exclude each other."""
    return PORT_LIST in options and PORT_NUMBER in options


def list_requested_ports(spec: JobSpec) -> Iterator[int]:
    """Yield the ports of `customPortList`; none where DLC would not take it.  There may be very many."""
    listed = spec.framework_options.get(PORT_LIST, "")
    if not is_for_framework(PORT_LIST, spec.framework) or _has_fault(spec.framework_options, PORT_LIST):
        return
    for match in filter(None, (_PORT_RANGE.fullmatch(part.strip()) for part in listed.split(";"))):
        yield from range(
            max(1, int(match["first"])), min(int(match["last"] or match["first"]), _LAST_PORT) + 1
        )


def count_requested_ports(spec: JobSpec) -> int:
    """Return the number of `customPortNumPerWorker`; 0 where DLC would not take it."""
    number = spec.framework_options.get(PORT_NUMBER, "0")
    if not is_for_framework(PORT_NUMBER, spec.framework) or _has_fault(spec.framework_options, PORT_NUMBER):
        return 0
    return int(number)


def _has_fault(options: Mapping[str, str], key: str) -> bool:
    return any(option == key and code != "master_port_listed" for code, option in find_port_faults(options))


def find_port_faults(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield ports that DLC's page does not allow, as (code, option)."""
    listed = options.get(PORT_LIST)
    if listed is not None:
        ranges = [_PORT_RANGE.fullmatch(part.strip()) for part in listed.split(";") if part.strip()]
        if not ranges or not all(match and _is_port_range(match) for match in ranges):
            yield "not_a_port_list", PORT_LIST
        elif any(
            int(match["first"]) <= limits.MASTER_PORT <= int(match["last"] or match["first"])
            for match in ranges
            if match
        ):
            yield "master_port_listed", PORT_LIST
    number = options.get(PORT_NUMBER)
    if number is not None:
        digits = number.isascii() and number.isdigit() and len(number) < 9
        if not digits or int(number) > limits.MOST_CUSTOM_PORTS.value:
            yield "not_a_port_number", PORT_NUMBER


def _is_port_range(match: re.Match[str]) -> bool:
    first = int(match["first"])
    return 0 < first <= int(match["last"] or first) <= _LAST_PORT


def note_limits(spec: JobSpec, value: Mapping[str, object], findings: Findings) -> None:
    """Note every limit and condition of DLC's that the job, with the request `value`, does not keep."""
    _note_over(findings, keys.ENVS.key, count_variables(spec), limits.MOST_VARIABLES)
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    _note_over(findings, "", size, limits.MOST_BYTES)
    if not spec.quota:
        amounts = zip(
            ("GPU", "CPU"), count_gpus_and_cores(spec), (limits.PUBLIC_GPUS, limits.PUBLIC_CPUS), strict=True
        )
        for kind, amount, most in amounts:
            if amount > most.value:
                at = f"/{keys.JOB_SPECS.key}"
                findings.note("over_public_limit", at, key=kind, value=amount, most=most.value, target=DLC)
    if spec.time_limit_s is None and keys.MAX_RUNNING.key not in value:
        minutes = limits.DEFAULT_RUNNING_MINUTES.value
        findings.note("no_limit_here", "", key=keys.MAX_RUNNING.key, minutes=minutes, target=DLC)
    lacking = ", ".join(find_unmet_sanity_conditions(spec, quota=bool(spec.quota)))
    if spec.sanity_check.enabled and lacking:
        key = names.SANITY_CHECK.key
        findings.note(
            "condition_unmet",
            f"/{names.SETTINGS.key}/{key}",
            key=key,
            lacking=lacking,
            target=DLC,
            source=limits.PAGE,
        )


def _note_over(findings: Findings, key: str, value: int, most: Limit) -> None:
    if value > most.value:
        findings.note(
            "over_vendor_limit",
            f"/{key}" if key else "",
            key=key,
            value=value,
            most=most.value,
            target=DLC,
            source=most.source,
        )
