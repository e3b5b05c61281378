"""`Settings` and `CredentialConfig` ↔ the fields of a JobSpec."""

from __future__ import annotations

from typing import Any, Final

from jobs.dialects import fault_arguments
from jobs.dialects.dlc import conditions, keys
from jobs.dialects.dlc import settings_keys as names
from jobs.dialects.dlc.limits import MOST_CUSTOM_PORTS, PAGE
from jobs.dialects.objects import read_field, read_fields, read_texts, without_empty, write_fields
from jobs.dialects.request import Request
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import Check, FaultTolerance, JobSpec, Reservation

DEFAULT_GRACE_S: Final = 30
_RESERVATION: Final = (names.RESERVED_MINUTES, names.RESERVED_POLICY)


def read(job: Request, job_type: str) -> dict[str, Any]:
    """Read `Settings` into fields of a JobSpec, and `rdma`, which is one of its roles' resources."""
    settings = job.group(names.SETTINGS)
    grace = read_field(settings, names.GRACE)
    return {
        "grace_s": DEFAULT_GRACE_S if grace is None else grace,
        "idle": settings.word_meaning(names.OVERSOLD_TYPE) or None,
        "tags": read_texts(settings, names.TAGS),
        "framework_options": _read_advanced(settings, job_type),
        **read_fields(settings, (names.ENABLE_RDMA, names.CPU_AFFINITY)),
        "fault_tolerance": FaultTolerance(**read_fields(settings, (names.AIMASTER, names.AIMASTER_ARGS))),
        "sanity_check": Check(**read_fields(settings, (names.SANITY_CHECK, names.SANITY_CHECK_ARGS))),
        "reserve_after": _read_reservation(settings),
    }


def _read_reservation(settings: Request) -> Reservation | None:
    said = read_fields(settings, _RESERVATION)
    return Reservation(**said) if said["seconds"] > 0 else None


def _read_advanced(settings: Request, job_type: str) -> dict[str, str]:
    """Read `AdvancedSettings`; what DLC would not take is noted."""
    options = read_texts(settings, names.ADVANCED)
    where, findings = settings.at(names.ADVANCED.key), settings.findings
    for key in options:
        needed = conditions.find_needed_job_type(key)
        if needed and job_type and needed != job_type:
            findings.note("option_elsewhere", f"{where}/{key}", key=key, needs=needed)
    if conditions.has_both_port_settings(options):
        one, other = conditions.PORT_NUMBER, conditions.PORT_LIST
        findings.note("exclusive_options", where, key=one, other=other, source=PAGE)
    for code, key in conditions.find_port_faults(options):
        most = MOST_CUSTOM_PORTS.value
        findings.note(code, f"{where}/{key}", key=key, value=options[key][:60], most=most)
    return options


def read_instance_role(job: Request) -> str:
    """Return the RAM role of the job: its ARN, `default`, or "" for none."""
    config = job.group(keys.CREDENTIAL_CONFIG)
    wanted = config.text(keys.CREDENTIAL_ENV_KEY)
    found = [_read_item(item) for item in config.requests(keys.CREDENTIAL_ITEMS)]
    if not config.flag(keys.ENABLE_CREDENTIALS):
        return ""
    arn = next((arn for key, arn in found if key == wanted), found[0][1] if found else "")
    return "default" if not arn or arn.endswith(f"/{keys.DEFAULT_ROLE}") else arn


def _read_item(item: Request) -> tuple[str, str]:
    """Return an item's key, and the ARN of the last role of its chain ("" for the service's own)."""
    item.choice(keys.CREDENTIAL_ITEM_TYPE)
    arns = [""]
    for role in item.requests(keys.CREDENTIAL_ROLES):
        role.choice(keys.CREDENTIAL_ROLE_TYPE)
        arns.append(role.text(keys.ROLE_ARN))
    return item.text(keys.CREDENTIAL_KEY), arns[-1]


def write(spec: JobSpec) -> JsonObject:
    """Return `Settings`, in the order of the page; AIHC's words of fault tolerance mean nothing here."""
    check = spec.fault_tolerance
    return {
        **write_fields((names.OVERSOLD_TYPE,), spec),
        **without_empty(
            {
                names.AIMASTER.key: check.enabled,
                names.AIMASTER_ARGS.key: fault_arguments.remove_arguments(
                    fault_arguments.Vendor.AIHC, check.arguments
                ),
                names.ENABLE_RDMA.key: any(role.resources.rdma for role in spec.roles),
            }
        ),
        **write_fields((names.SANITY_CHECK, names.SANITY_CHECK_ARGS), spec.sanity_check),
        **(write_fields(_RESERVATION, spec.reserve_after) if spec.reserve_after else {}),
        **write_fields((names.TAGS, names.ADVANCED, names.CPU_AFFINITY), spec),
        **({names.GRACE.key: spec.grace_s} if spec.grace_s != DEFAULT_GRACE_S else {}),
    }
