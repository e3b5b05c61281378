"""JobSpec → the values of a manifest, in the order in which people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from jobs.dialects.extras import restore_extras
from jobs.dialects.key_spellings import restore_spellings
from jobs.dialects.kubeflow import commands, containers, keys, kinds, resources, roles, volumes
from jobs.dialects.kubeflow.kinds import (
    ALWAYS,
    EXIT_CODE,
    NEVER,
    ON_FAILURE,
    V1,
    V2BETA1,
    WORKER_COMMANDS,
    JobKind,
)
from jobs.dialects.objects import as_list, as_object, secret_placeholders, without_empty, write_fields
from jobs.dialects.spans import split
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec, RestartCondition, RetryPolicy, RoleSpec

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
"""Keys that mean something in a TFJob, and are only kept in the others."""

_PORT_NAME: Final = re.compile(r"(?=[a-z0-9\-]*[a-z])[a-z0-9](?:[a-z0-9\-]{0,13}[a-z0-9])?")


def build_manifest(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return the manifest that says `spec`, with `extras` put back and keys spelled as they were."""
    whole = render_spec(spec, extras)
    restore_extras(whole, _drop_unfitting(spec, extras, whole), keys.NAMES)
    return restore_spellings(whole, extras)


def _drop_unfitting(spec: JobSpec, extras: Mapping[str, object], whole: JsonObject) -> dict[str, object]:
    """Return the extras without those of roles that are gone or of another kind, and outdated requests."""
    kind = kinds.BY_NAME[str(whole[keys.KIND.key])]
    there = as_object(as_object(whole["spec"]).get(kind.specs))
    forms, called = as_object(extras.get(ROLES)), kinds.types(kind, _sizes(spec))
    resized = {
        name
        for name, role in zip(called, spec.roles, strict=True)
        if as_object(forms.get(name)).get("sized") != resources.size(role.resources)
    }
    kept = {}
    for name, value in extras.items():
        tokens = split(name) if name.startswith("/") else []
        of_a_role = len(tokens) > 1 and tokens[0] == "spec" and tokens[1] in _SPECS
        gone = of_a_role and (tokens[1] != kind.specs or (len(tokens) > 2 and tokens[2] not in there))
        if of_a_role and len(tokens) > 8 and tokens[7:9] == ["resources", "requests"]:
            gone = gone or (tokens[2] in resized and resources.is_neutral(tokens[-1]))
        if not gone and not (kind.name == "TFJob" and name in _OF_TENSORFLOW):
            kept[name] = value
    return kept


def _sizes(spec: JobSpec) -> list[tuple[str, int]]:
    return [(role.name, role.replicas) for role in spec.roles]


def render_spec(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return what a manifest says of `spec` alone, in the form that `extras` remember."""
    kind = kinds.kind_for(spec)
    forms = as_object(extras.get(ROLES))
    called = kinds.types(kind, _sizes(spec))
    own = {name: role for name, role in zip(called, spec.roles, strict=True) if name}
    counts = {name: role.replicas for name, role in own.items()}
    wanted = {name: role.completion for name, role in own.items()}
    api = V2BETA1 if kind.name == "MPIJob" and extras.get(API) == V2BETA1 else V1
    restarts = _restarts(spec.retry, kind, own, forms, extras.get(BACKOFF))
    annotations = write_fields((keys.DESCRIPTION,), spec)
    return {
        keys.API_VERSION.key: api,
        keys.KIND.key: kind.name,
        keys.METADATA.key: {
            keys.NAME.key: spec.name if keys.fits_name(spec.name) else keys.propose_name(spec.name),
            **write_fields((keys.LABELS,), spec),
            **without_empty({keys.ANNOTATIONS.key: annotations}),
        },
        "spec": {
            **without_empty(
                {
                    keys.RUN_POLICY.key: _run_policy(spec, extras),
                    keys.SUCCESS_POLICY.key: kinds.policy_for(kind, wanted, counts),
                    keys.DYNAMIC.key: kinds.is_dynamic(kind, wanted),
                    keys.ELASTIC_POLICY.key: _elastic_policy(kind, own),
                }
            ),
            kind.specs: {
                name: _role(spec, role, name, as_object(forms.get(name)), restarts[name], kind, api)
                for name, role in own.items()
            },
        },
    }


def _elastic_policy(kind: JobKind, own: Mapping[str, RoleSpec]) -> JsonObject:
    wanted = {name: role.completion for name, role in own.items()}
    least = kinds.minimum_for(kind, wanted, {name: role.replicas for name, role in own.items()})
    policy: JsonObject = without_empty({keys.MIN_REPLICAS.key: least})
    for name, role in own.items():
        if kinds.is_elastic(kind, name) and role.restart.limit is not None:
            policy[keys.MAX_RESTARTS.key] = role.restart.limit
    return policy


def _run_policy(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    limit = spec.retry.limit
    kept = extras.get(BACKOFF)
    backoff = limit if limit or (limit == 0 and spec.retry.on_success) else kept if limit == 0 else None
    return {
        **write_fields((keys.TIME_LIMIT,), spec),
        **({} if backoff is None else {keys.BACKOFF.key: backoff}),
        **write_fields((keys.SUSPEND,), spec),
        **without_empty({keys.SCHEDULING.key: write_fields((keys.QUEUE,), spec)}),
    }


def _restarts(
    retry: RetryPolicy,
    kind: JobKind,
    own: Mapping[str, RoleSpec],
    forms: Mapping[str, object],
    backoff: object,
) -> dict[str, str]:
    """Return the restart policy of each role, as it was said while that still says `retry`; "" for none."""
    said = {name: str(as_object(forms.get(name)).get("restart", "")) for name in own}
    meant = [policy or kind.restart for policy in said.values()]
    same_limit = kinds.retry_limit(meant, retry.limit) == retry.limit
    same_end = all(policy == ALWAYS for policy in meant) == retry.on_success
    never = all(policy == NEVER for policy in meant)
    told = never or retry.limit != 0 or retry.on_success or backoff == 0
    same_ends = all(
        kinds.condition_for(policy, meant) == role.restart.condition
        for policy, role in zip(meant, own.values(), strict=True)
    )
    if forms and same_limit and same_end and same_ends and told:
        return said
    policy = ALWAYS if retry.on_success else NEVER if retry.limit == 0 else ON_FAILURE
    words = {
        RestartCondition.FAILURE: policy,
        RestartCondition.EXIT_CODE: EXIT_CODE,
        RestartCondition.NEVER: NEVER,
    }
    return {name: NEVER if policy == NEVER else words[role.restart.condition] for name, role in own.items()}


def _role(
    spec: JobSpec,
    role: RoleSpec,
    name: str,
    forms: Mapping[str, Any],
    restart: str,
    kind: JobKind,
    api: str,
) -> JsonObject:
    absent = as_list(forms.get(ABSENT))
    shared = [volumes.shared_folder(path) for path in role.shared_paths]
    mounts = [*shared, *(each for each in spec.mounts if each.path not in absent)]
    names = {str(path): str(each) for path, each in as_object(forms.get(VOLUMES)).items()}
    written, mounted = volumes.write(mounts, role.resources.shm_mib, names)
    variables = {**spec.env, **secret_placeholders(spec), **role.env}
    has = resources.write(
        role.resources, as_list(forms.get("silent")), str(forms.get("gpu", "")), str(forms.get("rdma", ""))
    )
    own = api if kind.name == "MPIJob" and name == "Worker" else ""
    called = str(forms.get("container") or kind.container)
    common = [each for each in mounted if each["mountPath"] in role.shared_paths]
    first, beside = containers.write(role, called, as_object(forms.get(containers.NATIVE)), common)
    container = {
        keys.CONTAINER_NAME.key: called,
        **write_fields((keys.IMAGE,), role),
        **_words(role.command, forms.get("words"), variables, own),
        **without_empty(
            {
                keys.ENV.key: [{"name": key, "value": value} for key, value in variables.items()],
                keys.RESOURCES.key: without_empty({keys.LIMITS.key: has}),
                keys.PORTS.key: _ports(role),
                keys.VOLUME_MOUNTS.key: mounted,
            }
        ),
    }
    labels = {**role.nodes.labels, **without_empty({keys.GPU_PRODUCT: role.resources.gpu_type})}
    pod: JsonObject = {
        keys.CONTAINERS.key: [container, *beside],
        **without_empty(
            {
                keys.INIT_CONTAINERS.key: first,
                keys.VOLUMES.key: written,
                keys.NODE_SELECTOR.key: labels,
                keys.AFFINITY.key: roles.write_affinity(role.nodes),
            }
        ),
        **({} if spec.grace_s == keys.GRACE.default else {keys.GRACE.key: spec.grace_s}),
    }
    return {
        **write_fields((keys.REPLICAS,), role),
        **without_empty({keys.RESTART_POLICY.key: restart}),
        keys.TEMPLATE.key: {keys.POD.key: pod},
    }


def _words(command: str, said: object, variables: Mapping[str, str], api: str) -> JsonObject:
    """Return command and arguments, as they were said while they still say the same."""
    if isinstance(said, dict):
        spoken = {str(key): [str(word) for word in words] for key, words in said.items()}
        both = spoken.get(keys.COMMAND.key, []), spoken.get(keys.ARGS.key, [])
        default = not both[0] and not both[1]
        meant = WORKER_COMMANDS.get(api, ()) if default else both[0]
        if meant and commands.join(meant, both[1], variables) == command:
            return dict(spoken)
    return {keys.COMMAND.key: commands.split(command, variables)}


def _ports(role: RoleSpec) -> list[JsonObject]:
    """Return the ports that have a number; a name only where the cluster takes it."""
    found: dict[int, JsonObject] = {}
    for port in role.ports:
        if port.begin_at:
            named = _PORT_NAME.fullmatch(port.label) and port.label != str(port.begin_at)
            more: JsonObject = {keys.PORT_NAME.key: port.label} if named else {}
            found.setdefault(port.begin_at, {keys.PORT.key: port.begin_at, **more})
    return list(found.values())
