"""JobSpec → the JSON values of a `CreateJob` request, in the order of the page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

from jobs.dialects import fault_flags, placeholders
from jobs.dialects.dlc import keys, role_document, types_for
from jobs.dialects.dlc import settings_keys as names
from jobs.dialects.dlc.completion import Part, Success, said
from jobs.dialects.dlc.job_types import JobType
from jobs.dialects.dlc.settings import DEFAULT_GRACE_S, instance_role
from jobs.dialects.findings import Findings
from jobs.dialects.ours import kept
from jobs.dialects.rendering import JsonObject
from jobs.dialects.request import Request
from jobs.spec import CodeSource, JobSpec, Mount, Network, Reservation, Visibility

UNLIMITED_BY_SILENCE: Final = "no_running_time"
"""An extra: the text says nothing of a running time, and shall go on saying nothing."""

CUSTOM_ENVS: Final = "custom_envs"
"""An extra: the variables that the text has among its CustomEnvs."""

CREDENTIALS: Final = "credentials"
"""An extra: how the text says its RAM role, where that is not how it would be written here."""


def plain(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """What DLC's own keys say of `spec`, in the form that `extras` remember."""
    job_type = types_for.job_type(spec, extras)
    success = _success(spec, job_type, kept.names(extras))
    command = spec.roles[0].command
    variables = _variables(spec)
    custom = _custom_envs(variables, extras)
    others = {name: value for name, value in variables.items() if name not in custom}
    return {
        keys.DISPLAY_NAME.key: _name(spec.name),
        **_if(keys.DESCRIPTION.key, spec.description),
        keys.JOB_TYPE.key: job_type.name,
        keys.JOB_SPECS.key: [
            role_document.document(role, part, spec.registry_auth, command)
            for role, part in zip(spec.roles, success.parts, strict=True)
        ],
        keys.USER_COMMAND.key: command,
        **_if(keys.DATA_SOURCES.key, [_mount(mount) for mount in spec.mounts]),
        **_if(keys.CODE_SOURCE.key, _code(spec.code)),
        **_if(keys.USER_VPC.key, _network(spec.network)),
        **_if(keys.LIBRARIES.key, list(spec.requirements.packages)),
        **_if(keys.LIBRARY_DIR.key, spec.requirements.directory),
        **_if(keys.ENVS.key, others),
        **_if(keys.CUSTOM_ENVS.key, [{"Key": name, "Value": variables[name]} for name in custom]),
        **_running_time(spec, extras),
        **_if(keys.WORKSPACE_ID.key, spec.workspace),
        **_if(keys.RESOURCE_ID.key, spec.quota),
        **_if(keys.PRIORITY.key, spec.priority),
        **_if(names.SETTINGS.key, _settings(spec)),
        **_if(keys.SUCCESS_POLICY.key, success.policy),
        **_if(keys.ACCESSIBILITY.key, _visibility(spec.visibility)),
        **_if(keys.CREDENTIAL_CONFIG.key, _credentials(spec.instance_role, extras)),
    }


def _if(key: str, value: object) -> JsonObject:
    """The member, if there is something to say."""
    return {key: value} if value else {}


def _name(name: str) -> str:
    return name if keys.DISPLAY_NAME.fits(name) else keys.DISPLAY_NAME.propose(name)


def _success(spec: JobSpec, job_type: JobType, named: Mapping[str, str]) -> Success:
    types = types_for.role_types(spec, job_type, named)
    parts = [Part(name, role.replicas) for name, role in zip(types, spec.roles, strict=True)]
    return said(job_type, parts, [role.completion for role in spec.roles])


def _variables(spec: JobSpec) -> dict[str, str]:
    """The job's variables, and those of roles where they don't contradict each other: DLC knows no others."""
    variables: dict[str, str] = {}
    for role in reversed(spec.roles):
        variables |= role.env
    variables |= spec.env
    return variables | {
        name: placeholders.placeholder(secret.name) for name, secret in spec.secret_env.items()
    }


def _custom_envs(variables: Mapping[str, str], extras: Mapping[str, object]) -> list[str]:
    """The variables that go to CustomEnvs, where they were."""
    listed = extras.get(CUSTOM_ENVS)
    return [name for name in listed if name in variables] if isinstance(listed, list) else []


def _mount(mount: Mount) -> JsonObject:
    options = json.dumps(mount.options, ensure_ascii=False, separators=(",", ":")) if mount.options else ""
    return {
        **_if(keys.DATA_SOURCE_ID.key, mount.id),
        **_if(keys.DATA_URI.key, mount.uri),
        **_if(keys.DATA_PATH.key, mount.path),
        **_if(keys.DATA_OPTIONS.key, options),
        **_if(keys.DATA_ACCESS.key, "RO" if mount.read_only else ""),
    }


def _code(code: CodeSource | None) -> JsonObject:
    """The registered source; a repository that DLC has not been told of can't be named."""
    if code is None or not code.id:
        return {}
    return {
        keys.CODE_SOURCE_ID.key: code.id,
        **_if(keys.CODE_BRANCH.key, code.branch),
        **_if(keys.CODE_COMMIT.key, code.commit),
        **_if(keys.CODE_PATH.key, code.path),
    }


def _network(network: Network) -> JsonObject:
    return {
        **_if(keys.VPC_ID.key, network.vpc),
        **_if(keys.SWITCH_ID.key, network.switch),
        **_if(keys.SECURITY_GROUP_ID.key, network.security_group),
        **_if(keys.EXTENDED_CIDRS.key, list(network.cidrs)),
        **_if(keys.DEFAULT_ROUTE.key, network.gateway),
    }


def _running_time(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """DLC would set a limit of its own: that there is none is written out."""
    if spec.time_limit_s is None and extras.get(UNLIMITED_BY_SILENCE):
        return {}
    return {keys.MAX_RUNNING.key: math.ceil((spec.time_limit_s or 0) / 60)}


def _settings(spec: JobSpec) -> JsonObject:
    idle = {meaning: word for word, meaning in names.OVERSOLD_TYPE.meanings.items()}
    check = spec.fault_tolerance
    arguments = "" if fault_flags.are_of(fault_flags.AIHC, check.arguments) else check.arguments
    return {
        **_if(names.OVERSOLD_TYPE.key, idle[spec.idle] if spec.idle else ""),
        **_if(names.AIMASTER.key, check.enabled),
        **_if(names.AIMASTER_ARGS.key, arguments),
        **_if(names.ENABLE_RDMA.key, any(role.resources.rdma for role in spec.roles)),
        **_if(names.SANITY_CHECK.key, spec.sanity_check.enabled),
        **_if(names.SANITY_CHECK_ARGS.key, spec.sanity_check.arguments),
        **_reservation(spec.reserve_after),
        **_if(names.TAGS.key, dict(spec.tags)),
        **_if(names.ADVANCED.key, dict(spec.framework_options)),
        **_if(names.CPU_AFFINITY.key, spec.cpu_affinity),
        **({names.GRACE.key: spec.grace_s} if spec.grace_s != DEFAULT_GRACE_S else {}),
    }


def _reservation(reservation: Reservation | None) -> JsonObject:
    if reservation is None:
        return {}
    words = {meaning: word for word, meaning in names.RESERVED_POLICY.meanings.items()}
    return {
        names.RESERVED_MINUTES.key: math.ceil(reservation.seconds / 60),
        names.RESERVED_POLICY.key: words[reservation.when],
    }


def _visibility(visibility: Visibility) -> str:
    return "PUBLIC" if visibility is Visibility.PUBLIC else ""


def _credentials(role: str, extras: Mapping[str, object]) -> JsonObject:
    """The RAM role, in the words of the text while they still mean the same."""
    said = extras.get(CREDENTIALS)
    if isinstance(said, dict) and _role_in(said) == role:
        return said
    return credentials(role) if role else {}


def credentials(role: str) -> JsonObject:
    """How a RAM role is written: its ARN, or `default`."""
    named: JsonObject = (
        {"RoleType": "service"} if role == "default" else {"RoleArn": role, "RoleType": "user"}
    )
    return {
        keys.ENABLE_CREDENTIALS.key: True,
        keys.CREDENTIAL_ENV_KEY.key: "0",
        keys.CREDENTIAL_ITEMS.key: [
            {keys.CREDENTIAL_KEY.key: "0", keys.CREDENTIAL_ITEM_TYPE.key: "Role", "Roles": [named]}
        ],
    }


def _role_in(config: JsonObject) -> str:
    request = Request({keys.CREDENTIAL_CONFIG.key: config}, "", Findings(), (keys.CREDENTIAL_CONFIG,))
    return instance_role(request)
