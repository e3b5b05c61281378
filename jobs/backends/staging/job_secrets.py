"""Secrets of a job, which reach it in a file of its own and are in no plan."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from jobs.backends.base import Submission
from jobs.backends.staging import code_sources, containers, remotes
from jobs.backends.staging.code_sources import CodeRules
from jobs.backends.staging.mounts import MountPlanner
from jobs.dialects import placeholders
from jobs.facilities import HDFS
from jobs.node.frameworks import mpi, registry
from jobs.node.sandbox import role_credentials
from jobs.node.wrapper.environment import LOCATION_VARIABLES
from jobs.spec import JobSpec, MountPurpose


def list_names(submission: Submission, rules: CodeRules) -> Iterator[str]:
    """Every secret that the job names, and those of registered code."""
    spec = submission.spec
    yield from placeholders.list_references(_code_uri(spec, rules))
    if spec.registry_auth and spec.registry_auth.password:
        yield spec.registry_auth.password.name
    yield from list_used(spec)


def list_used(spec: JobSpec) -> Iterator[str]:
    """Yield every secret that the job names where no image is pulled."""
    uris = [*([spec.code.uri] if spec.code else []), *(mount.uri for mount in spec.mounts)]
    for uri in uris:
        yield from placeholders.list_references(uri)
    yield from (ref.name for ref in spec.secret_env.values())
    yield from containers.list_secrets(spec)


def secrets_of(submission: Submission, rules: CodeRules, layer: MountPlanner) -> dict[str, Any]:
    """Return the content of `layout.SECRETS`: secret variables, and logins for image registry and code.

    A place with a password in it is secret as a whole, so its variable is given here and not by the plan.
    """
    spec, values = submission.spec, submission.secrets
    env = {
        LOCATION_VARIABLES[mount.purpose]: placeholders.fill(mount.uri, values)
        for mount in spec.mounts
        if placeholders.list_references(mount.uri) and layer.locations.get(mount.purpose) == mount.uri
    }
    found: dict[str, Any] = {"env": {**env, **submission.secret_variables()}}
    if own := containers.secrets_of(spec, values):
        found["containers"] = own
    if submission.role_token:
        found[role_credentials.SECRET] = submission.role_token
        found[role_credentials.PROVIDER] = submission.role_provider
    code_dir = next((mount.uri for mount in spec.mounts if mount.purpose is MountPurpose.CODE), "")
    for name, uri in (("code", _code_uri(spec, rules)), ("code_dir", code_dir)):
        if login := code_sources.login_of(uri):
            found[name] = placeholders.fill(login, values)
        if key := code_sources.key_of(uri):
            found[f"{name}_key"] = placeholders.fill(key, values)
    if layer.datas:
        found["data"] = [_login(uri, submission) for uri in layer.data_uris]
    if layer.login:
        found["registry"] = layer.login
    auth = spec.registry_auth
    if auth is not None and auth.password is not None:
        password = values[auth.password.name]
        found["registry"] = {"registry": auth.registry, "username": auth.username, "password": password}
    return found


def add_key(found: dict[str, Any], spec: JobSpec) -> None:
    """Add a key of the attempt, where its replicas know each other by one."""
    if registry.needs_key(spec.framework):
        found["env"][mpi.KEY] = secrets.token_hex(32)


def _login(uri: str, submission: Submission) -> dict[str, str]:
    """Return the login for data: the address's, or else that of the job's own variables.

    To an HDFS everybody is known by the own name.
    """
    spec, values = submission.spec, submission.secrets
    if uri.startswith(f"{HDFS}://"):
        return {"user": submission.person.name, "password": ""}
    user, password = remotes.login_of(uri)
    if not password:
        env = {**spec.env, **{name: values[ref.name] for name, ref in spec.secret_env.items()}}
        names = remotes.KEYS.get(uri.partition(":")[0])
        user, password = (env.get(name, "") for name in names) if names else ("", "")
    return {"user": user, "password": placeholders.fill(password, values)}


def _code_uri(spec: JobSpec, rules: CodeRules) -> str:
    """Return the code's address, with the login that may be in it."""
    return code_sources.resolve_source(spec.code, rules).uri if spec.code else ""
