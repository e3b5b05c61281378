"""A person's own secrets, saved once in Settings and named in the job files they write.

`$SECRET:NAME` in a job file stands for a value that the file does not have: one that came with the job it
was made from, or else the secret NAME of whoever submits.  The latter is looked up each time the job is
handed to its engine, and goes the way of every other secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from django.db import transaction
from django.utils import timezone

from jobs.dialects import placeholders
from jobs.dialects.base import Parsed, Problem
from jobs.dialects.document import Document
from jobs.dialects.positions import FieldPositions
from jobs.models import Job, JobSecret, PersonalSecret
from jobs.spec import ENV_NAME, JobSpec, PodContainer
from quotas.models import User

NAME: Final = re.compile(ENV_NAME)
MOST: Final = 100
LONGEST: Final = 64 * 1024
"""Bytes; an environment takes a value of 128 KiB."""


class TooMany(Exception):
    """The person has `MOST` of them."""


def keep(user: User, name: str, value: str) -> bool:
    """Save `value` as the person's secret `name`, in place of an earlier one; whether it is new.

    Raises TooMany.
    """
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        row = PersonalSecret.objects.filter(owner=user, name=name).first()
        if row is None and PersonalSecret.objects.filter(owner=user).count() >= MOST:
            raise TooMany
        secret = row or PersonalSecret(owner=user, name=name)
        secret.encrypt(value)
        secret.created_at = timezone.now()
        secret.save()
    return row is None


def remove(user: User, pk: int) -> bool:
    """Delete one of the person's secrets; tell whether it existed.  Jobs that name it are refused then."""
    return PersonalSecret.objects.filter(owner=user, pk=pk).delete()[0] > 0


def find_names(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Every secret that the job names: where in the spec (a pointer), and its name."""
    for variable, reference in spec.secret_env.items():
        yield f"/env/{variable}", reference.name
    login = spec.registry_auth
    if login is not None and login.password is not None:
        yield "/registry_auth/password", login.password.name
    for position, mount in enumerate(spec.mounts):
        for name in placeholders.list_references(mount.uri):
            yield f"/mounts/{position}/uri", name
    for ordinal, role in enumerate(spec.roles):
        yield from _find_container_names(f"/roles/{ordinal}/init_containers", role.init_containers)
        yield from _find_container_names(f"/roles/{ordinal}/sidecars", role.sidecars)
    if spec.code is not None:
        for name in placeholders.list_references(spec.code.uri):
            yield "/code/uri", name


def _find_container_names(pointer: str, containers: Sequence[PodContainer]) -> Iterator[tuple[str, str]]:
    for position, container in enumerate(containers):
        for variable, value in container.env.items():
            for name in placeholders.list_references(value):
                yield f"{pointer}/{position}/env/{variable}", name


def inherit_values(user: User, parsed: Parsed, origin: Job | None) -> dict[str, str]:
    """Values that the file lacks and the job that it was made from has, which is the person's own."""
    if origin is None or origin.owner_id != user.pk:
        return {}
    missing = {name for _where, name in find_names(parsed.spec)} - set(parsed.secrets)
    rows = JobSecret.objects.filter(job=origin, name__in=missing) if missing else ()
    return {row.name: row.reveal() for row in rows}


def problems(user: User, document: Document, origin: Job | None = None) -> tuple[Problem, ...]:
    """The secrets that the job names and nobody has, each with its place."""
    parsed = document.parsed
    missing = [(where, name) for where, name in find_names(parsed.spec) if name not in parsed.secrets]
    if not missing:
        return ()
    known = set(PersonalSecret.objects.filter(owner=user).values_list("name", flat=True))
    known |= set(inherit_values(user, parsed, origin))
    places = document.places
    return tuple(_problem(where, name, places) for where, name in missing if name not in known)


def _problem(where: str, name: str, places: FieldPositions) -> Problem:
    line, column = places.of_field(where) or (None, None)
    return Problem("no_own_secret", pointer=where, line=line, column=column, params={"name": name})


def values_of(user: User, spec: JobSpec) -> dict[str, str]:
    """The person's own secrets that the job names, as they are now; one that is gone has none."""
    names = {name for _where, name in find_names(spec)}
    rows = PersonalSecret.objects.filter(owner=user, name__in=names) if names else ()
    return {row.name: row.reveal() for row in rows}
