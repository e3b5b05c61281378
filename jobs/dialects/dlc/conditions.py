"""What DLC's pages ask of a job that its JobSpec alone tells: each condition once, for whoever tells it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from jobs.dialects.dlc import limits
from jobs.dialects.dlc.job_types import of
from jobs.dialects.dlc.settings_keys import ADVANCED_RULES
from jobs.spec import Framework, JobSpec

PORT_LIST: Final = "customPortList"
PORT_NUMBER: Final = "customPortNumPerWorker"

_PORT_RANGE: Final = re.compile(r"(?P<first>\d{1,5})(?:-(?P<last>\d{1,5}))?", re.ASCII)
_FRAMEWORK_OF: Final = {rule.key: rule.job_type for rule in ADVANCED_RULES}


def variables(spec: JobSpec) -> int:
    """How many environment variables the job sets."""
    return len(spec.env) + len(spec.secret_env)


def gpus_and_cores(spec: JobSpec) -> tuple[int, int]:
    """What the whole job asks for, as the limits of public resources count it."""
    gpus = sum(role.replicas * role.resources.gpus for role in spec.roles)
    return gpus, sum(role.replicas * role.resources.cpu_milli for role in spec.roles) // 1000


def lacks_for_sanity_check(spec: JobSpec, *, quota: bool) -> list[str]:
    """What keeps a job from a sanity check: it is for PyTorch with GPUs on a quota."""
    conditions = (
        ("PyTorchJob", spec.framework is Framework.PYTORCH),
        ("ResourceId", quota),
        ("GPU", any(role.resources.gpus for role in spec.roles)),
    )
    return [what for what, there in conditions if not there]


def needs_job_type(key: str) -> str:
    """The job type to which an advanced setting belongs; "" for one of all."""
    return _FRAMEWORK_OF.get(key, "")


def means_something(key: str, framework: Framework | None) -> bool:
    """Whether an advanced setting is one of this framework."""
    needed = needs_job_type(key)
    return not needed or (framework is not None and of(framework).name == needed)


def both_ways_of_ports(options: Mapping[str, str]) -> bool:
    """Whether ports are asked for by list and by number, which exclude each other."""
    return PORT_LIST in options and PORT_NUMBER in options


def port_faults(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Ports that DLC's page does not allow, as (code, option)."""
    listed = options.get(PORT_LIST)
    if listed is not None:
        ranges = [_PORT_RANGE.fullmatch(part.strip()) for part in listed.split(";") if part.strip()]
        if not ranges or not all(ranges):
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
