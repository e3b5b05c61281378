"""`jobSpec`, one or a map of them → the roles of a JobSpec."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jobs.dialects import placeholders
from jobs.dialects.aihc import keys, resources
from jobs.dialects.aihc.resources import Amounts
from jobs.dialects.fields import AnyKey, Group
from jobs.dialects.record import kind_of
from jobs.dialects.request import Request, is_nothing
from jobs.dialects.variables import Variables, collect
from jobs.spec import RegistryAuth, SecretRef


@dataclass(frozen=True, slots=True)
class Role:
    """One JobSpec, under its key of the map or as the only one, which is called Worker."""

    pointer: str
    name: str
    replicas: int
    command: str
    image: str
    amounts: Amounts
    variables: Variables
    registry: RegistryAuth | None


def is_map(value: object) -> bool:
    """Whether `jobSpec` is a map of roles: all that says something in it is an object under a role's name."""
    if not isinstance(value, dict):
        return False
    said = {key: inner for key, inner in value.items() if not is_nothing(inner)}
    return bool(said) and all(_role_name(key) and isinstance(inner, dict) for key, inner in said.items())


def _role_name(key: str) -> str:
    return next((name for name in keys.ROLES if name.lower() == key.lower()), "")


def rules(value: object) -> tuple[AnyKey, ...]:
    """The table of a body whose `jobSpec` is `value`: for a map, one JobSpec's keys under each role."""
    if not isinstance(value, dict) or not is_map(value):
        return keys.JOB
    used = [(_role_name(key), key) for key in value if _role_name(key)]
    parts = tuple(
        Group(key=name, source=keys.PAGE, path="roles", help="", keys=keys.ROLE, aliases=(key,))
        for name, key in used
    )
    whole = replace(keys.JOB_SPEC, keys=parts)
    return tuple(whole if rule is keys.JOB_SPEC else rule for rule in keys.JOB)


def read(job: Request) -> tuple[Role, ...]:
    """All roles."""
    return tuple(_read(request, name) for request, name in _requests(job))


def _requests(job: Request) -> Iterator[tuple[Request, str]]:
    value = job.value.get(keys.JOB_SPEC.key)
    where = job.at(keys.JOB_SPEC.key)
    if value is None:
        job.findings.problem("required", where, keys.PAGE, key=keys.JOB_SPEC.key)
    elif not isinstance(value, dict):
        job.findings.problem(
            "wrong_type", where, keys.PAGE, key=keys.JOB_SPEC.key, expected="object", got=kind_of(value)
        )
    elif is_map(value):
        for key, inner in value.items():
            if not is_nothing(inner):
                yield Request(inner, f"{where}/{key}", job.findings, keys.ROLE).inspect(), _role_name(key)
    else:
        yield Request(value, where, job.findings, keys.ROLE).inspect(), keys.ROLES[0]


def _read(role: Request, name: str) -> Role:
    image = role.text(keys.IMAGE)
    if not image:
        role.findings.note("no_image", role.pointer, key=keys.IMAGE.key)
    pairs = (
        (item.pointer, item.text(keys.ENV_NAME), item.value.get(keys.ENV_VALUE.key, ""))
        for item in role.requests(keys.ENVS)
    )
    return Role(
        pointer=role.pointer,
        name=name,
        replicas=role.integer(keys.REPLICAS),
        command=role.text(keys.COMMAND_INSIDE),
        image=image,
        amounts=resources.read(role),
        variables=collect(pairs, role.findings),
        registry=_registry(role.group(keys.IMAGE_CONFIG)),
    )


def _registry(config: Request) -> RegistryAuth | None:
    """The login for the image; its password has become a placeholder."""
    password = placeholders.reference(config.text(keys.PASSWORD))
    username = config.text(keys.USERNAME)
    if not (password or username):
        return None
    return RegistryAuth(username=username, password=SecretRef(name=password) if password else None)
