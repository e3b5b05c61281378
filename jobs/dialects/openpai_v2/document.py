"""JobSpec → the values of a v2 file: the document that was read, with what differs changed in it.

A job that came from elsewhere is written into an empty document the same way.  Counts that never decide are
written null, as protocol v1 and SCM have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jobs.dialects.openpai_v2 import keys, role_document
from jobs.dialects.openpai_v2.extras import as_list, as_object, plugins
from jobs.dialects.openpai_v2.extras_document import write_extras
from jobs.dialects.openpai_v2.names import free
from jobs.dialects.openpai_v2.prerequisites_document import write_images, write_places
from jobs.dialects.openpai_v2.reading import DOCUMENT, is_scm, said_apart, said_by
from jobs.dialects.openpai_v2.scripts import write_scripts
from jobs.dialects.ours import correcting
from jobs.dialects.ours.keys import ROLES
from jobs.dialects.ours.reading import Said
from jobs.dialects.rendering import JsonObject
from jobs.dialects.variables import as_text
from jobs.dialects.yaml_text.values import copied
from jobs.spec import JobSpec

_PLUGIN_ROLES: Final = "taskroles"


def document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """The document that says `spec`, made from the one among `extras`, if there is one."""
    original = extras.get(DOCUMENT)
    there = said_by(original) if isinstance(original, dict) else None
    if there == spec:
        return as_object(copied(original))
    job = as_object(copied(original)) if there else {}
    without, said = said_apart(original) if there else (None, Said())
    beside = correcting.beside(said.patch, without, there) if without and there else []
    before, after = _as_called(there, spec, [role.name for role in without.roles] if without else [])
    renamed = _written(job, before, after)
    _write_ours(job, spec, beside, _renamed_strangers(said.strangers, renamed))
    return job


def _as_called(there: JobSpec | None, spec: JobSpec, called: Sequence[str]) -> tuple[JobSpec | None, JobSpec]:
    """Both with their roles `called` as v2's own keys have it, where our own object calls them otherwise."""
    if there is None:
        return None, spec
    names = {role.name: name for role, name in zip(there.roles, called, strict=True)}
    taken = [names[role.name] for role in spec.roles if role.name in names]
    for role in spec.roles:
        if role.name not in names:
            names[role.name] = free(role.name, taken)
            taken.append(names[role.name])
    return _with_names(there, names), _with_names(spec, names)


def _write_ours(
    job: JsonObject, spec: JobSpec, beside: Sequence[correcting.Path], strangers: JsonObject
) -> None:
    """What v2's own keys do not say, in our own object."""
    extras = dict(as_object(job.get(keys.EXTRAS.key)))
    ours = as_object(extras.pop(keys.OURS, None))
    old = {rule.key: ours[rule.key] for rule in keys.OUR_OLD_KEYS if rule.key in ours}
    without, _said = said_apart({**job, keys.EXTRAS.key: {**extras, keys.OURS: old}})
    if without is None or len(without.roles) != len(spec.roles):
        return
    found = correcting.corrections(without, spec, beside)
    names = [role.name for role in without.roles]
    said = correcting.with_strangers(old | found, strangers, names)
    put(extras, keys.OURS, {key: said[key] for key in dict.fromkeys((*ours, *said)) if key in said})
    if extras or keys.EXTRAS.key in job:
        job[keys.EXTRAS.key] = extras


def _renamed_strangers(strangers: JsonObject, names: Mapping[str, str]) -> JsonObject:
    """What nobody knows in our own object, of roles by the names that they get."""
    roles = strangers.get(ROLES)
    if not isinstance(roles, dict):
        return strangers
    return {**strangers, ROLES: {names.get(name, name): value for name, value in roles.items()}}


def _written(job: JsonObject, there: JobSpec | None, spec: JobSpec) -> Mapping[str, str]:
    """Make `job`, which says `there`, say `spec` as far as v2's own keys can; how its roles were renamed."""
    job.setdefault(keys.PROTOCOL_VERSION.key, 2)
    if there is None or spec.name != there.name:
        job[keys.NAME.key] = spec.name if keys.NAME.fits(spec.name) else keys.NAME.propose(spec.name)
    job.setdefault(keys.TYPE.key, "job")
    put(job, keys.DESCRIPTION.key, spec.description, there and there.description)
    if there is None or spec.retry != there.retry:
        job[keys.RETRY_COUNT.key] = spec.retry.limit or 0
    old = _old_roles(job, there, spec)
    names = _names(spec)
    renamed = {before: names[after] for after, before in old.items() if before}
    rename_roles(job, renamed)
    if there is not None:  # from here on it is spoken of by the new names
        there = _with_names(there, {before: after for after, before in old.items() if before})
    write_images(job, there, spec, names)
    write_places(job, there, spec, names)
    roles = as_object(job.get(keys.TASK_ROLES.key))
    before = {role.name: role for role in there.roles} if there else {}
    job[keys.TASK_ROLES.key] = {
        names[role.name]: role_document.written(
            as_object(roles.get(names[role.name])), before.get(role.name), role
        )
        for role in spec.roles
    }
    scm = is_scm(job)
    if scm:
        _write_parameters(job, there, spec)
    write_scripts(job, there, spec, names, in_parameters=scm)
    if there is None or spec.quota != there.quota:
        defaults = dict(as_object(job.get(keys.DEFAULTS.key)))
        put(defaults, keys.VIRTUAL_CLUSTER.key, spec.quota)
        put(job, keys.DEFAULTS.key, defaults)
    write_extras(job, there, spec, names)
    return renamed


def put(where: JsonObject, key: str, value: object, before: object = None) -> None:
    """Set the member, or remove it when there is nothing to say; leave it when nothing has changed."""
    if value and value == before and key in where:
        return
    if value:
        where[key] = value
    else:
        where.pop(key, None)


def _old_roles(job: JsonObject, there: JobSpec | None, spec: JobSpec) -> dict[str, str]:
    """For each role wanted the name that it has in the document; "" for a new one."""
    old = [role.name for role in there.roles] if there else []
    wanted = [role.name for role in spec.roles]
    found = {name: name if name in old else "" for name in wanted}
    if len(old) == len(wanted):  # of as many roles, the one in its place was renamed
        for before, after in zip(old, wanted, strict=True):
            if not found[after] and before not in wanted:
                found[after] = before
    return found


def _names(spec: JobSpec) -> dict[str, str]:
    """Every role's name as v2 allows it, each its own."""
    names: dict[str, str] = {}
    for role in spec.roles:
        name = role.name if keys.TASK_ROLES.fits(role.name) else keys.TASK_ROLES.propose(role.name)
        names[role.name] = free(name, names.values())
    return names


def rename_roles(job: JsonObject, names: Mapping[str, str]) -> None:
    """Give roles their new names wherever they are named, and forget those that are gone."""
    extras = as_object(job.get(keys.EXTRAS.key))
    places = [job, as_object(extras.get(keys.HIVED.key)), as_object(extras.get(keys.OURS))]
    places += [as_object(item) for item in as_list(job.get(keys.DEPLOYMENTS.key))]
    for place in places:
        held = place.get(keys.TASK_ROLES.key)
        if isinstance(held, dict):
            place[keys.TASK_ROLES.key] = {names[name]: value for name, value in held.items() if name in names}
    for plugin in plugins(extras):
        listed = plugin.get(_PLUGIN_ROLES)
        if isinstance(listed, list):
            plugin[_PLUGIN_ROLES] = [names.get(str(name), name) for name in listed]


def _with_names(there: JobSpec, names: Mapping[str, str]) -> JobSpec:
    """What the document says, of the roles that stay and by the names that they get."""
    roles = tuple(
        role.model_copy(update={"name": names[role.name]}) for role in there.roles if role.name in names
    )
    return there.model_copy(update={"roles": roles})


def _write_parameters(job: JsonObject, there: JobSpec | None, spec: JobSpec) -> None:
    """SCM's environment variables."""
    if there is None or spec.env == there.env:
        return
    held = dict(as_object(job.get(keys.PARAMETERS.key)))
    for name in there.env:
        if name not in spec.env:
            held.pop(name, None)
    for name, value in spec.env.items():
        if as_text(held.get(name)) != value or name not in held:
            held[name] = value
    job[keys.PARAMETERS.key] = held
