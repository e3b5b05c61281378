"""JobSpec → the values of a manifest, in the order in which people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.kubeflow import commands, keys, kinds, names, nodes, resources, volumes
from jobs.dialects.kubeflow.kinds import ALWAYS, NEVER, ON_FAILURE, V1, V2BETA1, WORKER_COMMANDS, Kind
from jobs.dialects.leftovers import put_back
from jobs.dialects.rendering import JsonObject
from jobs.dialects.spans import split
from jobs.dialects.spelling import respelled
from jobs.spec import JobSpec, RetryPolicy, TaskRole

API: Final = "api_version"
"""An extra: the apiVersion, where it is not the usual one."""

ROLES: Final = "roles"
"""An extra: for each role, how it says what could be said otherwise."""

ABSENT: Final = "absent"
VOLUMES: Final = "volumes"
"""Of a role: the paths that it does not mount, and what its volumes are called, by path."""

BACKOFF: Final = "backoff"
"""An extra: a backoffLimit beside roles of which none is ever started again."""

_SPECS: Final = frozenset(kind.specs for kind in kinds.KINDS)
_OF_TENSORFLOW: Final = frozenset({f"/spec/{keys.SUCCESS_POLICY.key}", f"/spec/{keys.DYNAMIC.key}"})
"""What says something in a TFJob, and is only kept in the others."""

_PORT_NAME: Final = re.compile(r"(?=[a-z0-9\-]*[a-z])[a-z0-9](?:[a-z0-9\-]{0,13}[a-z0-9])?")


def document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """The manifest, with `extras` put back and keys spelled as they were."""
    whole = plain(spec, extras)
    put_back(whole, _fitting(extras, whole, _resized(spec, extras)), keys.NAMES)
    return respelled(whole, extras)


def _resized(spec: JobSpec, extras: Mapping[str, object]) -> set[str]:
    """The roles whose requests, beside limits, were for other amounts."""
    called = kinds.types(kinds.kind_for(spec), [(role.name, role.replicas) for role in spec.roles])
    kept = extras.get(ROLES)
    spelled = kept if isinstance(kept, dict) else {}
    return {
        name
        for name, role in zip(called, spec.roles, strict=True)
        if _of(spelled, name).get("sized") != resources.size(role.resources)
    }


def _fitting(extras: Mapping[str, object], whole: JsonObject, resized: set[str]) -> dict[str, object]:
    """The extras without those of roles that are gone, or of another kind, and old requests."""
    kind = kinds.BY_NAME[str(whole[keys.KIND.key])]
    spec = whole["spec"]
    there = spec.get(kind.specs) if isinstance(spec, dict) else None
    roles = there if isinstance(there, dict) else {}
    kept = {}
    for name, value in extras.items():
        tokens = split(name) if name.startswith("/") else []
        of_a_role = len(tokens) > 1 and tokens[0] == "spec" and tokens[1] in _SPECS
        gone = of_a_role and (tokens[1] != kind.specs or (len(tokens) > 2 and tokens[2] not in roles))
        if of_a_role and len(tokens) > 8 and tokens[7:9] == ["resources", "requests"]:
            gone = gone or (tokens[2] in resized and resources.is_neutral(tokens[-1]))
        if not gone and not (kind.name == "TFJob" and name in _OF_TENSORFLOW):
            kept[name] = value
    return kept


def plain(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """What a manifest says of `spec` alone, in the form that `extras` remember."""
    kind = kinds.kind_for(spec)
    kept = extras.get(ROLES)
    spelled: Mapping[str, object] = kept if isinstance(kept, dict) else {}
    called = kinds.types(kind, [(role.name, role.replicas) for role in spec.roles])
    own = {name: role for name, role in zip(called, spec.roles, strict=True) if name}
    counts = {name: role.replicas for name, role in own.items()}
    wanted = {name: role.completion for name, role in own.items()}
    policy = kinds.policy_for(kind, wanted, counts)
    api = V2BETA1 if kind.name == "MPIJob" and extras.get(API) == V2BETA1 else V1
    restarts = _restarts(spec.retry, kind, own, spelled, extras.get(BACKOFF))
    specs = {
        name: _role(spec, role, name, _of(spelled, name), restarts[name], kind, api)
        for name, role in own.items()
    }
    return {
        keys.API_VERSION.key: api,
        keys.KIND.key: kind.name,
        keys.METADATA.key: {
            keys.NAME.key: spec.name if names.fits(spec.name) else names.proposed(spec.name),
            **_if(keys.LABELS.key, dict(spec.tags)),
            **_if(keys.ANNOTATIONS.key, _if(keys.DESCRIPTION_KEY, spec.description)),
        },
        "spec": {
            **_if(keys.RUN_POLICY.key, _run_policy(spec, extras)),
            **_if(keys.SUCCESS_POLICY.key, policy),
            **_if(keys.DYNAMIC.key, kinds.is_dynamic(kind, wanted)),
            kind.specs: specs,
        },
    }


def _if(key: str, value: object) -> JsonObject:
    """The member, if there is something to say."""
    return {key: value} if value else {}


def _of(spelled: Mapping[str, object], name: str) -> Mapping[str, object]:
    """How a role was spelled."""
    found = spelled.get(name)
    return found if isinstance(found, dict) else {}


def _run_policy(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    limit = spec.retry.limit
    kept = extras.get(BACKOFF)
    backoff = limit if limit or (limit == 0 and spec.retry.on_success) else kept if limit == 0 else None
    return {
        **_if(keys.TIME_LIMIT.key, spec.time_limit_s),
        **({} if backoff is None else {keys.BACKOFF.key: backoff}),
        **_if(keys.SUSPEND.key, spec.hold),
        **_if(keys.SCHEDULING.key, _if(keys.QUEUE.key, spec.quota)),
    }


def _restarts(
    retry: RetryPolicy,
    kind: Kind,
    own: Mapping[str, TaskRole],
    spelled: Mapping[str, object],
    backoff: object,
) -> dict[str, str]:
    """The restart policy of each role: as it was said while that still says `retry`; "" for the default."""
    said = {name: str(_of(spelled, name).get("restart", "")) for name in own}
    meant = [policy or kind.restart for policy in said.values()]
    same_limit = kinds.retry_limit(meant, retry.limit) == retry.limit
    same_end = all(policy == ALWAYS for policy in meant) == retry.on_success
    never = all(policy == NEVER for policy in meant)
    told = never or retry.limit != 0 or retry.on_success or backoff == 0
    if spelled and same_limit and same_end and told:
        return said
    policy = ALWAYS if retry.on_success else NEVER if retry.limit == 0 else ON_FAILURE
    return dict.fromkeys(own, policy)


def _role(
    spec: JobSpec,
    role: TaskRole,
    name: str,
    spelled: Mapping[str, object],
    restart: str,
    kind: Kind,
    api: str,
) -> JsonObject:
    absent = spelled.get(ABSENT)
    mounts = [each for each in spec.mounts if not isinstance(absent, list) or each.path not in absent]
    written = volumes.document(mounts, role.resources.shm_mib, _names(spelled))
    labels = {**role.nodes.labels, **_if(keys.GPU_PRODUCT, role.resources.gpu_type)}
    pod: JsonObject = {
        keys.CONTAINERS.key: [_container(spec, role, name, spelled, written.mounts, kind, api)],
        **_if(keys.VOLUMES.key, written.volumes),
        **_if(keys.NODE_SELECTOR.key, labels),
        **_if(keys.AFFINITY.key, nodes.document(role.nodes)),
        **({} if spec.grace_s == keys.GRACE.default else {keys.GRACE.key: spec.grace_s}),
    }
    return {
        keys.REPLICAS.key: role.replicas,
        **_if(keys.RESTART_POLICY.key, restart),
        keys.TEMPLATE.key: {keys.POD.key: pod},
    }


def _names(spelled: Mapping[str, object]) -> dict[str, str]:
    """What the volumes were called, by path."""
    kept = spelled.get(VOLUMES)
    return {str(path): str(name) for path, name in kept.items()} if isinstance(kept, dict) else {}


def _container(
    spec: JobSpec,
    role: TaskRole,
    name: str,
    spelled: Mapping[str, object],
    mounts: list[JsonObject],
    kind: Kind,
    api: str,
) -> JsonObject:
    secret = {key: placeholders.placeholder(each.name) for key, each in spec.secret_env.items()}
    variables = {**spec.env, **secret, **role.env}
    silent = spelled.get("silent")
    has = resources.document(
        role.resources,
        tuple(silent) if isinstance(silent, list) else (),
        str(spelled.get("gpu", "")),
        str(spelled.get("rdma", "")),
    )
    own = api if kind.name == "MPIJob" and name == "Worker" else ""
    return {
        keys.CONTAINER_NAME.key: str(spelled.get("container") or kind.container),
        **_if(keys.IMAGE.key, role.image),
        **_words(role.command, spelled.get("words"), variables, own),
        **_if(keys.ENV.key, [{"name": key, "value": value} for key, value in variables.items()]),
        **_if(keys.RESOURCES.key, _if(keys.LIMITS.key, has)),
        **_if(keys.PORTS.key, _ports(role)),
        **_if(keys.VOLUME_MOUNTS.key, mounts),
    }


def _words(command: str, said: object, variables: Mapping[str, str], api: str) -> JsonObject:
    """Command and arguments, as they were said while they still say the same."""
    if isinstance(said, dict):
        spoken = {str(key): [str(word) for word in words] for key, words in said.items()}
        both = spoken.get(keys.COMMAND.key, []), spoken.get(keys.ARGS.key, [])
        default = not both[0] and not both[1]
        meant = WORKER_COMMANDS.get(api, ()) if default else both[0]
        if meant and commands.shell(meant, both[1], variables) == command:
            return dict(spoken)
    return {keys.COMMAND.key: commands.words(command, variables)}


def _ports(role: TaskRole) -> list[JsonObject]:
    """The ports that have a number; a name only where the cluster takes it."""
    found: dict[int, JsonObject] = {}
    for port in role.ports:
        if port.begin_at:
            named = _PORT_NAME.fullmatch(port.label) and port.label != str(port.begin_at)
            more: JsonObject = {keys.PORT_NAME.key: port.label} if named else {}
            found.setdefault(port.begin_at, {keys.PORT.key: port.begin_at, **more})
    return list(found.values())
