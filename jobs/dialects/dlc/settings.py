"""`Settings` and `CredentialConfig` → what a JobSpec says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobs.dialects import pairs
from jobs.dialects.dlc import conditions, keys
from jobs.dialects.dlc import settings_keys as names
from jobs.dialects.dlc.limits import MOST_CUSTOM_PORTS, PAGE
from jobs.dialects.fields import Bag
from jobs.dialects.request import Request
from jobs.dialects.spans import escape
from jobs.dialects.variables import as_text
from jobs.spec import Check, Idle, Reservation

DEFAULT_GRACE_S: Final = 30


@dataclass(frozen=True, slots=True)
class Settings:
    """The neutral part of `Settings`."""

    tags: Mapping[str, str]
    options: Mapping[str, str]
    idle: Idle | None
    rdma: bool
    cpu_affinity: bool
    fault_tolerance: Check
    sanity_check: Check
    reserve_after: Reservation | None
    grace_s: int


def read(job: Request, job_type: str) -> Settings:
    """Everything in `Settings`."""
    settings = job.group(names.SETTINGS)
    grace = settings.optional_integer(names.GRACE)
    idle = settings.meaning(names.OVERSOLD_TYPE)
    return Settings(
        tags=texts(settings, names.TAGS),
        options=_advanced(settings, job_type),
        idle=Idle(idle) if idle else None,
        rdma=settings.flag(names.ENABLE_RDMA),
        cpu_affinity=settings.flag(names.CPU_AFFINITY),
        fault_tolerance=Check(
            enabled=settings.flag(names.AIMASTER), arguments=settings.text(names.AIMASTER_ARGS)
        ),
        sanity_check=Check(
            enabled=settings.flag(names.SANITY_CHECK), arguments=settings.text(names.SANITY_CHECK_ARGS)
        ),
        reserve_after=_reservation(settings),
        grace_s=DEFAULT_GRACE_S if grace is None else grace,
    )


def _reservation(settings: Request) -> Reservation | None:
    minutes, when = settings.integer(names.RESERVED_MINUTES), settings.meaning(names.RESERVED_POLICY)
    return Reservation(seconds=minutes * 60, when=when or "always") if minutes > 0 else None


def texts(request: Request, rule: Bag) -> dict[str, str]:
    """An object of strings; `k=v,k=v` or JSON in a string is taken too, as the command line writes it."""
    value = request.value.get(rule.key)
    if isinstance(value, str):
        request.findings.note("object_from_text", request.at(rule.key), key=rule.key)
        return pairs.read(value)
    found = {}
    for name, item in request.bag(rule).items():
        if not isinstance(item, str):
            where = f"{request.at(rule.key)}/{escape(name)}"
            request.findings.note("value_as_text", where, key=name, value=as_text(item)[:60])
        found[name] = as_text(item)
    return found


def _advanced(settings: Request, job_type: str) -> dict[str, str]:
    """`AdvancedSettings`, with a word on what DLC would not take."""
    options = texts(settings, names.ADVANCED)
    where = settings.at(names.ADVANCED.key)
    for key in options:
        needed = conditions.needs_job_type(key)
        if needed and job_type and needed != job_type:
            settings.findings.note("option_elsewhere", f"{where}/{key}", key=key, needs=needed)
    if conditions.both_ways_of_ports(options):
        settings.findings.note(
            "exclusive_options", where, key=conditions.PORT_NUMBER, other=conditions.PORT_LIST, source=PAGE
        )
    for code, key in conditions.port_faults(options):
        most = MOST_CUSTOM_PORTS.value
        settings.findings.note(code, f"{where}/{key}", key=key, value=options[key][:60], most=most)
    return options


def instance_role(job: Request) -> str:
    """The RAM role of the job: its ARN, `default`, or "" for none."""
    config = job.group(keys.CREDENTIAL_CONFIG)
    wanted = config.text(keys.CREDENTIAL_ENV_KEY)
    found = [_item(item) for item in config.requests(keys.CREDENTIAL_ITEMS)]
    if not config.flag(keys.ENABLE_CREDENTIALS):
        return ""
    arn = next((arn for key, arn in found if key == wanted), found[0][1] if found else "")
    return "default" if not arn or arn.endswith(f"/{keys.DEFAULT_ROLE}") else arn


def _item(item: Request) -> tuple[str, str]:
    """An item's key, and the ARN of the last role of its chain ("" for the service's own)."""
    item.choice(keys.CREDENTIAL_ITEM_TYPE)
    arns = []
    for role in item.requests(keys.CREDENTIAL_ROLES):
        role.choice(keys.CREDENTIAL_ROLE_TYPE)
        arns.append(role.text(keys.ROLE_ARN))
    return item.text(keys.CREDENTIAL_KEY), arns[-1] if arns else ""
