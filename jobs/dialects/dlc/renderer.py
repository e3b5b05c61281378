"""JobSpec → the JSON values of a `CreateJob` request, in the order of the page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

from jobs.dialects.dlc import job_types, keys, roles, settings
from jobs.dialects.dlc import settings_keys as names
from jobs.dialects.dlc.completion import Participant, choose_success, find_minimum
from jobs.dialects.findings import Findings
from jobs.dialects.objects import as_list, as_object, secret_placeholders, without_empty, write_fields
from jobs.dialects.ours import export_data
from jobs.dialects.request import Request
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec, Mount, Visibility

UNLIMITED_BY_SILENCE: Final = "no_running_time"
"""An extra: the text says nothing of a running time, and shall go on saying nothing."""

CUSTOM_ENVS: Final = "custom_envs"
"""An extra: the variables that the text has among its CustomEnvs."""

CREDENTIALS: Final = "credentials"
"""An extra: how the text says its RAM role, where that is not how it would be written here."""


def render_spec(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return what DLC's own keys say of `spec`, in the form that `extras` remember."""
    job_type = job_types.choose_job_type(spec, extras)
    types = job_types.choose_role_types(spec, job_type, export_data.read_role_names(extras))
    parts = [Participant(name, role.replicas) for name, role in zip(types, spec.roles, strict=True)]
    success = choose_success(job_type, parts, [role.completion for role in spec.roles])
    command = spec.roles[0].command
    variables = _variables(spec)
    custom = [name for name in as_list(extras.get(CUSTOM_ENVS)) if name in variables]
    rule, code = keys.DISPLAY_NAME, spec.code
    return {
        rule.key: spec.name if rule.fits(spec.name) else rule.propose(spec.name),
        **write_fields((keys.DESCRIPTION,), spec),
        keys.JOB_TYPE.key: job_type.name,
        keys.JOB_SPECS.key: [
            roles.write(
                role,
                part,
                spec.registry_auth,
                command,
                find_minimum(job_type, role.completion, role.replicas),
            )
            for role, part in zip(spec.roles, success.parts, strict=True)
        ],
        keys.USER_COMMAND.key: command,
        **without_empty(
            {
                keys.DATA_SOURCES.key: [_mount(mount) for mount in spec.mounts],
                # a repository that DLC has not been told of can't be named
                keys.CODE_SOURCE.key: write_fields(keys.CODE_FIELDS, code) if code and code.id else {},
                keys.USER_VPC.key: write_fields(keys.USER_VPC.keys, spec.network),
                **write_fields((keys.LIBRARIES, keys.LIBRARY_DIR), spec.requirements),
                keys.ENVS.key: {name: value for name, value in variables.items() if name not in custom},
                keys.CUSTOM_ENVS.key: [{"Key": name, "Value": variables[name]} for name in custom],
            }
        ),
        **_running_time(spec, extras),
        **write_fields((keys.WORKSPACE_ID, keys.RESOURCE_ID, keys.PRIORITY), spec),
        **without_empty(
            {
                names.SETTINGS.key: settings.write(spec),
                keys.SUCCESS_POLICY.key: success.policy,
                keys.ACCESSIBILITY.key: "PUBLIC" if spec.visibility is Visibility.PUBLIC else "",
                keys.CREDENTIAL_CONFIG.key: _credentials(spec.instance_role, extras),
            }
        ),
    }


def _variables(spec: JobSpec) -> dict[str, str]:
    """Return the job's variables, and those of roles as far as they agree: DLC knows no others."""
    variables: dict[str, str] = {}
    for role in reversed(spec.roles):
        variables |= role.env
    return {**variables, **spec.env, **secret_placeholders(spec)}


def _mount(mount: Mount) -> JsonObject:
    options = json.dumps(mount.options, ensure_ascii=False, separators=(",", ":")) if mount.options else ""
    rest = {keys.DATA_OPTIONS.key: options, keys.DATA_ACCESS.key: "RO" if mount.read_only else ""}
    return {
        **write_fields((keys.DATA_SOURCE_ID, keys.DATA_URI, keys.DATA_PATH), mount),
        **without_empty(rest),
    }


def _running_time(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return the limit; that there is none is written out, since DLC would set one of its own."""
    if spec.time_limit_s is None and extras.get(UNLIMITED_BY_SILENCE):
        return {}
    return {keys.MAX_RUNNING.key: math.ceil((spec.time_limit_s or 0) / 60)}


def _credentials(role: str, extras: Mapping[str, object]) -> JsonObject:
    """Return the RAM role, in the words of the text while they still mean the same."""
    said = as_object(extras.get(CREDENTIALS))
    rule = keys.CREDENTIAL_CONFIG
    request = Request({rule.key: said}, "", Findings(), (rule,))
    if said and settings.read_instance_role(request) == role:
        return said
    return write_credentials(role) if role else {}


def write_credentials(role: str) -> JsonObject:
    """Return the configuration that gives a job a RAM role: its ARN, or `default`."""
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
