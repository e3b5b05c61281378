"""JobSpec → the JSON values of an AIHC `CreateJob` body, in the order of the page's sample."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from jobs.dialects import fault_arguments
from jobs.dialects.aihc import data_sources, keys, resources
from jobs.dialects.argument_text import parse_arguments, set_argument
from jobs.dialects.extras import restore_extras
from jobs.dialects.fault_arguments import BY_NAME
from jobs.dialects.fields import Flag
from jobs.dialects.key_spellings import KEPT, restore_spellings
from jobs.dialects.objects import (
    as_list,
    as_object,
    secret_placeholders,
    without_empty,
    write_fields,
    write_login,
)
from jobs.dialects.spans import split
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import Framework, JobSpec, Reservation, Resources, RoleSpec, TensorBoard

V1: Final = "v1"
"""An extra: the body is of protocol v1, which has the command inside of `jobSpec`."""

V1_SPELLING: Final = {keys.JOB_TYPE.key: ["jobFramework"], keys.ENABLE_TENSORBOARD.key: ["enableTensorboard"]}
"""What v1 calls keys of v2."""

SHAPE: Final = "job_spec"
"""An extra: `map` or `one`, where the text writes `jobSpec` otherwise than its job type suggests."""

NO_AMOUNTS: Final = "no_amounts"
"""An extra: the roles that the text gives no resources."""

FAULT_CONFIG: Final = "fault_config"
"""An extra: the keys of v1's `faultToleranceConfig` by which the text says arguments of fault tolerance."""

UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60}
"""Seconds in each unit of a retention period, the longest unit first."""

_WORDS: Final = {Framework.TENSORFLOW: "TFJob", Framework.MPI: "MPIJob"}
_WORKER: Final = "Worker"


def build_body(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return the body that says `spec`, with `extras` put back and keys spelled as they were."""
    body = render_spec(spec, extras)
    restore_extras(body, _drop_gone_roles(extras, body), keys.NAMES)
    spelling = {**(V1_SPELLING if extras.get(V1) else {}), **as_object(extras.get(KEPT))}
    return restore_spellings(body, {**extras, KEPT: spelling})


def render_spec(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return what a body says of `spec` alone, in the form that `extras` remember."""
    is_v1 = bool(extras.get(V1))
    check = spec.fault_tolerance
    own = fault_arguments.remove_arguments(fault_arguments.Vendor.DLC, check.arguments)
    config, arguments = _fault_config(own, extras)
    return {
        **write_fields((keys.NAME, keys.QUEUE), spec),
        keys.JOB_TYPE.key: _WORDS.get(_framework(spec), "PyTorchJob"),
        **({} if is_v1 else {keys.COMMAND.key: spec.roles[0].command}),
        keys.JOB_SPEC.key: _job_spec(spec, extras, is_v1=is_v1),
        **without_empty(
            {
                keys.LABELS.key: [{"key": name, "value": value} for name, value in spec.tags.items()],
                keys.PRIORITY.key: _priority(spec.priority),
                keys.DATA_SOURCES.key: [*filter(None, map(data_sources.write, spec.mounts))],
                keys.ENABLE_BCCL.key: spec.software.bccl,
                keys.FAULT_TOLERANCE.key: check.enabled,
                keys.FAULT_TOLERANCE_ARGS.key: arguments,
                keys.FAULT_CONFIG.key: config,
                keys.TENSORBOARD.key: _tensorboard(spec.tensorboard),
                keys.RETENTION.key: _retention(spec.reserve_after),
            }
        ),
    }


def _fault_config(arguments: str, extras: Mapping[str, object]) -> tuple[JsonObject, str]:
    """Return v1's configuration of fault tolerance, where the text has one, and the arguments without it."""
    config: JsonObject = {}
    for rule, name in keys.FAULT_CONFIG_ARGUMENTS.items():
        value = parse_arguments(arguments).get(name)
        if rule.key in as_list(extras.get(FAULT_CONFIG)) and value and BY_NAME[name].fits(value):
            config[rule.key] = value.lower() == "true" if isinstance(rule, Flag) else int(value)
            arguments = set_argument(arguments, name, "")
    return config, arguments


def _framework(spec: JobSpec) -> Framework:
    """Return the framework; for a job with none and several roles, the only one that keeps roles apart."""
    return spec.framework or (Framework.TENSORFLOW if len(spec.roles) > 1 else Framework.PYTORCH)


def _drop_gone_roles(extras: Mapping[str, object], body: JsonObject) -> dict[str, object]:
    """Return the extras without those of roles that are gone: a map's roles are not made anew from them."""
    job_spec = as_object(body[keys.JOB_SPEC.key])
    has_map = set(job_spec) <= set(keys.ROLES)
    kept = {}
    for name, value in extras.items():
        tokens = split(name)
        is_inside = len(tokens) > 1 and tokens[0] == keys.JOB_SPEC.key
        if not is_inside or (tokens[1] in job_spec if has_map else tokens[1] not in keys.ROLES):
            kept[name] = value
    return kept


def _job_spec(spec: JobSpec, extras: Mapping[str, object], *, is_v1: bool) -> JsonObject:
    """Return one JobSpec, or a map of them for TFJob and where several roles can't be one."""
    shape, is_only_worker = extras.get(SHAPE), [role.name for role in spec.roles] == [_WORKER]
    has_map = _framework(spec) is Framework.TENSORFLOW or (
        spec.framework is Framework.MPI and len(spec.roles) > 1
    )
    if shape == "map" or (shape == "one" and is_only_worker):
        has_map = shape == "map"
    if has_map:
        named = zip(_names(spec), spec.roles, strict=True)
        return {name: _role(spec, role, name, extras, is_v1=is_v1) for name, role in named if name}
    whole = spec.roles[0].model_copy(update={"replicas": spec.replicas})
    return _role(spec, whole, _WORKER, extras, is_v1=is_v1)


def _names(spec: JobSpec) -> list[str]:
    """Return a key of the map for each role: its own name where that is one, else the first that is free."""
    known = {name.lower(): name for name in keys.ROLES}
    own = [known.get(role.name.lower(), "") for role in spec.roles]
    taken = set(own)
    names = []
    for name in own:
        names.append(name or next((each for each in keys.ROLES if each not in taken), ""))
        taken.add(names[-1])
    return names


def _role(
    spec: JobSpec, role: RoleSpec, name: str, extras: Mapping[str, object], *, is_v1: bool
) -> JsonObject:
    has = role.resources
    is_silent = has == Resources(rdma=has.rdma) and name in as_list(extras.get(NO_AMOUNTS))
    variables = {**spec.env, **secret_placeholders(spec), **role.env}
    login = write_login(spec.registry_auth, keys.PASSWORD, (keys.USERNAME,))
    return {
        **({keys.COMMAND_INSIDE.key: role.command} if is_v1 else {}),
        keys.REPLICAS.key: role.replicas,
        **without_empty({keys.IMAGE.key: role.image, keys.IMAGE_CONFIG.key: login}),
        **({} if is_silent else {keys.RESOURCES.key: resources.write(has)}),
        **without_empty(
            {
                keys.ENVS.key: [
                    {keys.ENV_NAME.key: name, keys.ENV_VALUE.key: value} for name, value in variables.items()
                ],
                keys.ENABLE_RDMA.key: has.rdma,
            }
        ),
    }


def _priority(priority: int | None) -> str:
    """Return the word for a priority: 7 to 9 is high, 4 to 6 normal, 1 to 3 low."""
    if priority is None:
        return ""
    return "high" if priority > 6 else "normal" if priority > 3 else "low"


def _tensorboard(board: TensorBoard | None) -> JsonObject:
    if board is None:
        return {}
    return {keys.ENABLE_TENSORBOARD.key: board.enabled, **write_fields((keys.LOG_PATH,), board)}


def _retention(kept: Reservation | None) -> str:
    """Return how long an ended job is kept, in the longest unit that fits, else in minutes."""
    if kept is None:
        return ""
    unit = next((unit for unit, seconds in UNITS.items() if kept.seconds % seconds == 0), "m")
    return f"{math.ceil(kept.seconds / UNITS[unit])}{unit}"
