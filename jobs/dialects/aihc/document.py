"""JobSpec → the JSON values of an AIHC `CreateJob` body, in the order of the page's sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects import fault_flags, placeholders
from jobs.dialects.aihc import keys, places, resources
from jobs.dialects.leftovers import put_back
from jobs.dialects.rendering import JsonObject
from jobs.dialects.spans import split
from jobs.dialects.spelling import KEPT, respelled
from jobs.spec import Check, Framework, JobSpec, RegistryAuth, Resources, TaskRole, TensorBoard

V1: Final = "v1"
"""An extra: the body is of protocol v1, which has the command inside of `jobSpec`."""

V1_SPELLING: Final = {keys.JOB_TYPE.key: ["jobFramework"], keys.ENABLE_TENSORBOARD.key: ["enableTensorboard"]}
"""What v1 calls keys of v2."""

SHAPE: Final = "job_spec"
"""An extra: `map` or `one`, where the text writes `jobSpec` otherwise than its job type suggests."""

NO_AMOUNTS: Final = "no_amounts"
"""An extra: the roles that the text gives no resources."""

_WORDS: Final = {Framework.TENSORFLOW: "TFJob", Framework.MPI: "MPIJob"}
_WORKER: Final = "Worker"


def document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """The body, with `extras` put back and keys spelled as they were."""
    body = plain(spec, extras)
    put_back(body, _with_roles(extras, body), keys.NAMES)
    return respelled(body, {**extras, KEPT: _spelling(extras)})


def plain(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """What a body says of `spec` alone, in the form that `extras` remember."""
    is_v1 = bool(extras.get(V1))
    return {
        keys.NAME.key: spec.name,
        **_if(keys.QUEUE.key, spec.quota),
        keys.JOB_TYPE.key: _WORDS.get(_framework(spec), "PyTorchJob"),
        **({} if is_v1 else {keys.COMMAND.key: spec.roles[0].command}),
        keys.JOB_SPEC.key: _job_spec(spec, extras, is_v1=is_v1),
        **_if(keys.LABELS.key, [{"key": name, "value": value} for name, value in spec.tags.items()]),
        **_if(keys.PRIORITY.key, _priority(spec.priority)),
        **_if(keys.DATA_SOURCES.key, [each for mount in spec.mounts if (each := places.document(mount))]),
        **_fault_tolerance(spec.fault_tolerance),
        **_if(keys.TENSORBOARD.key, _tensorboard(spec.tensorboard)),
    }


def _framework(spec: JobSpec) -> Framework:
    """The job's framework; for one without any that has several roles, the only one that keeps them apart."""
    return spec.framework or (Framework.TENSORFLOW if len(spec.roles) > 1 else Framework.PYTORCH)


def _spelling(extras: Mapping[str, object]) -> dict[str, object]:
    """The spelling of the text; what it does not use is spelled as its version does."""
    kept = extras.get(KEPT)
    return {**(V1_SPELLING if extras.get(V1) else {}), **(kept if isinstance(kept, dict) else {})}


def _if(key: str, value: object) -> JsonObject:
    """The member, if there is something to say."""
    return {key: value} if value else {}


def _with_roles(extras: Mapping[str, object], body: JsonObject) -> dict[str, object]:
    """The extras without those of roles that are gone: a map's roles are not made anew by what they had."""
    job_spec = body[keys.JOB_SPEC.key]
    assert isinstance(job_spec, dict)
    is_map = set(job_spec) <= set(keys.ROLES)
    kept = {}
    for name, value in extras.items():
        tokens = split(name)
        inside = len(tokens) > 1 and tokens[0] == keys.JOB_SPEC.key
        if not inside or (tokens[1] in job_spec if is_map else tokens[1] not in keys.ROLES):
            kept[name] = value
    return kept


def _job_spec(spec: JobSpec, extras: Mapping[str, object], *, is_v1: bool) -> JsonObject:
    """One JobSpec, or a map of them for TFJob and where several roles can't be one."""
    shape = extras.get(SHAPE)
    is_map = _framework(spec) is Framework.TENSORFLOW
    if spec.framework is Framework.MPI and len(spec.roles) > 1:
        is_map = True
    if shape == "map" or (shape == "one" and [role.name for role in spec.roles] == [_WORKER]):
        is_map = shape == "map"
    if is_map:
        named = zip(_names(spec), spec.roles, strict=True)
        return {name: _role(spec, role, name, extras, is_v1=is_v1) for name, role in named if name}
    first = spec.roles[0]
    whole = first.model_copy(update={"replicas": spec.replicas})
    return _role(spec, whole, _WORKER, extras, is_v1=is_v1)


def _names(spec: JobSpec) -> list[str]:
    """A key of the map for each role: its own name where that is one, else the first that is free."""
    known = {name.lower(): name for name in keys.ROLES}
    own = [known.get(role.name.lower(), "") for role in spec.roles]
    taken = set(own)
    names = []
    for name in own:
        free = next((each for each in keys.ROLES if each not in taken), "")
        names.append(name or free)
        taken.add(names[-1])
    return names


def _role(
    spec: JobSpec, role: TaskRole, name: str, extras: Mapping[str, object], *, is_v1: bool
) -> JsonObject:
    has = role.resources
    silent = _says_nothing(has) and name in _list(extras.get(NO_AMOUNTS))
    return {
        **({keys.COMMAND_INSIDE.key: role.command} if is_v1 else {}),
        keys.REPLICAS.key: role.replicas,
        **_if(keys.IMAGE.key, role.image),
        **_if(keys.IMAGE_CONFIG.key, _registry(spec.registry_auth)),
        **({} if silent else {keys.RESOURCES.key: resources.document(has)}),
        **_if(keys.ENVS.key, _variables(spec, role)),
        **_if(keys.ENABLE_RDMA.key, has.rdma),
    }


def _says_nothing(has: Resources) -> bool:
    return has == Resources(rdma=has.rdma)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _registry(auth: RegistryAuth | None) -> JsonObject:
    if auth is None:
        return {}
    password = placeholders.placeholder(auth.password.name) if auth.password else ""
    return {**_if(keys.USERNAME.key, auth.username), **_if(keys.PASSWORD.key, password)}


def _variables(spec: JobSpec, role: TaskRole) -> list[JsonObject]:
    secret = {name: placeholders.placeholder(each.name) for name, each in spec.secret_env.items()}
    variables = {**spec.env, **secret, **role.env}
    return [{keys.ENV_NAME.key: name, keys.ENV_VALUE.key: value} for name, value in variables.items()]


def _priority(priority: int | None) -> str:
    """The word for a priority: 7 to 9 is high, 4 to 6 normal, 1 to 3 low."""
    if priority is None:
        return ""
    return "high" if priority > 6 else "normal" if priority > 3 else "low"


def _fault_tolerance(check: Check) -> JsonObject:
    """The switch and its arguments; those of DLC's AIMaster mean nothing here."""
    foreign = fault_flags.are_of(fault_flags.DLC, check.arguments)
    return {
        **_if(keys.FAULT_TOLERANCE.key, check.enabled),
        **_if(keys.FAULT_TOLERANCE_ARGS.key, "" if foreign else check.arguments),
    }


def _tensorboard(board: TensorBoard | None) -> JsonObject:
    if board is None:
        return {}
    return {keys.ENABLE_TENSORBOARD.key: board.enabled, **_if(keys.LOG_PATH.key, board.log_path)}
