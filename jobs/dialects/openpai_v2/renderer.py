"""JobSpec → the values of a v2 file: the document that was read, with what differs changed in it.

A job that came from elsewhere is written into an empty document the same way.  Counts that never decide are
written null, as protocol v1 and SCM have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobs.dialects import documents
from jobs.dialects.document import Document
from jobs.dialects.objects import as_list, as_object, free_name
from jobs.dialects.openpai_v2 import keys, roles
from jobs.dialects.openpai_v2.commands import write_scripts
from jobs.dialects.openpai_v2.extras import plugins, set_member, write_extras
from jobs.dialects.openpai_v2.parser import DOCUMENT, is_scm, parse_apart, parse_value
from jobs.dialects.openpai_v2.prerequisites import write_images, write_places
from jobs.dialects.ours import overlay
from jobs.dialects.ours.keys import ROLES
from jobs.dialects.ours.parser import ObjectContent
from jobs.dialects.spans import escape, split
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import as_text
from jobs.dialects.yaml_text.rules import JS_YAML
from jobs.dialects.yaml_text.values import copy_value
from jobs.spec import JobSpec

_PLUGIN_ROLES: Final = "taskroles"


def build_document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return the document that says `spec`, made from the one among `extras`, if there is one."""
    original = extras.get(DOCUMENT)
    there = parse_value(original) if isinstance(original, dict) else None
    if there == spec:
        return as_object(copy_value(original))
    job = as_object(copy_value(original)) if there else {}
    without, said = parse_apart(original) if there else (None, ObjectContent())
    beside = overlay.find_redundant_paths(said.patch, without, there) if without and there else []
    before, after = _with_native_names(there, spec, [role.name for role in without.roles] if without else [])
    renamed = _write_native(job, before, after)
    _write_ours(job, spec, beside, _renamed_strangers(said.strangers, renamed))
    return job


def _with_native_names(
    there: JobSpec | None, spec: JobSpec, called: Sequence[str]
) -> tuple[JobSpec | None, JobSpec]:
    """Return both with their roles `called` as in v2's own keys, where our own object renames them."""
    if there is None:
        return None, spec
    names = {role.name: name for role, name in zip(there.roles, called, strict=True)}
    taken = [names[role.name] for role in spec.roles if role.name in names]
    for role in spec.roles:
        if role.name not in names:
            names[role.name] = free_name(role.name, taken)
            taken.append(names[role.name])
    return _with_names(there, names), _with_names(spec, names)


def _write_ours(
    job: JsonObject, spec: JobSpec, beside: Sequence[overlay.Path], strangers: JsonObject
) -> None:
    """Write what v2's own keys do not say into our own object."""
    extras = dict(as_object(job.get(keys.EXTRAS.key)))
    ours = as_object(extras.pop(keys.OURS, None))
    old = {rule.key: ours[rule.key] for rule in keys.OUR_OLD_KEYS if rule.key in ours}
    without, _said = parse_apart({**job, keys.EXTRAS.key: {**extras, keys.OURS: old}})
    if without is None or len(without.roles) != len(spec.roles):
        return
    found = overlay.find_patch(without, spec, beside)
    names = [role.name for role in without.roles]
    said = overlay.add_unknown_members(old | found, strangers, names)
    set_member(extras, keys.OURS, {key: said[key] for key in dict.fromkeys((*ours, *said)) if key in said})
    if extras or keys.EXTRAS.key in job:
        job[keys.EXTRAS.key] = extras


def _renamed_strangers(strangers: JsonObject, names: Mapping[str, str]) -> JsonObject:
    """Return the unknown members of our own object, of roles by the names that they get."""
    roles = strangers.get(ROLES)
    if not isinstance(roles, dict):
        return strangers
    return {**strangers, ROLES: {names.get(name, name): value for name, value in roles.items()}}


def _write_native(job: JsonObject, there: JobSpec | None, spec: JobSpec) -> Mapping[str, str]:
    """Make `job`, which says `there`, say `spec` as far as v2's own keys can; how its roles were renamed."""
    job.setdefault(keys.PROTOCOL_VERSION.key, 2)
    if there is None or spec.name != there.name:
        job[keys.NAME.key] = spec.name if keys.NAME.fits(spec.name) else keys.NAME.propose(spec.name)
    job.setdefault(keys.TYPE.key, "job")
    set_member(job, keys.DESCRIPTION.key, spec.description)
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
    there_roles = as_object(job.get(keys.TASK_ROLES.key))
    before = {role.name: role for role in there.roles} if there else {}
    job[keys.TASK_ROLES.key] = {
        names[role.name]: roles.write(
            as_object(there_roles.get(names[role.name])), before.get(role.name), role
        )
        for role in spec.roles
    }
    scm = is_scm(job)
    if scm:
        _write_parameters(job, there, spec)
    write_scripts(job, there, spec, names, in_parameters=scm)
    if there is None or spec.quota != there.quota:
        defaults = dict(as_object(job.get(keys.DEFAULTS.key)))
        set_member(defaults, keys.VIRTUAL_CLUSTER.key, spec.quota)
        set_member(job, keys.DEFAULTS.key, defaults)
    write_extras(job, there, spec, names)
    return renamed


def _old_roles(job: JsonObject, there: JobSpec | None, spec: JobSpec) -> dict[str, str]:
    """Return for each role wanted the name that it has in the document; "" for a new one."""
    old = [role.name for role in there.roles] if there else []
    wanted = [role.name for role in spec.roles]
    found = {name: name if name in old else "" for name in wanted}
    if len(old) == len(wanted):  # of as many roles, the one in its place was renamed
        for before, after in zip(old, wanted, strict=True):
            if not found[after] and before not in wanted:
                found[after] = before
    return found


def _names(spec: JobSpec) -> dict[str, str]:
    """Return every role's name as v2 allows it, each its own."""
    names: dict[str, str] = {}
    for role in spec.roles:
        name = role.name if keys.TASK_ROLES.fits(role.name) else keys.TASK_ROLES.propose(role.name)
        names[role.name] = free_name(name, names.values())
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
    """Return the spec with the roles that stay, by the names that they get."""
    roles = tuple(
        role.model_copy(update={"name": names[role.name]}) for role in there.roles if role.name in names
    )
    return there.model_copy(update={"roles": roles})


def _write_parameters(job: JsonObject, there: JobSpec | None, spec: JobSpec) -> None:
    """Write SCM's environment variables."""
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


# --- the text --------------------------------------------------------------------------------------------


def write(job: JsonObject, *, as_json: bool) -> str:
    """Return the text of a document, its keys in the order of the samples."""
    order = [rule.key for rule in keys.JOB]
    places = {key: index for index, key in enumerate(order)}
    sorted_ = dict(sorted(job.items(), key=lambda member: places.get(member[0], len(order))))
    return documents.write(sorted_, as_json=as_json)


def patch(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    """Return the text of `base`, which says `before`, made to say `after`."""
    names = _find_renamed(before, after)
    if names:
        base = Document(documents.rename(base, dict(_pointers(before, names)), JS_YAML))
        before = as_object(copy_value(before))
        rename_roles(before, {**{name: name for name in _roles(before)}, **names})
    return documents.patch(base, before, after, {}, JS_YAML)


def _roles(job: JsonObject) -> dict[str, object]:
    return as_object(job.get(keys.TASK_ROLES.key))


def _find_renamed(before: JsonObject, after: JsonObject) -> dict[str, str]:
    """Return the roles that are called otherwise: of as many, those in the same place."""
    old, new = list(_roles(before)), list(_roles(after))
    if len(old) != len(new):
        return {}
    pairs = zip(old, new, strict=True)
    return {one: other for one, other in pairs if one not in new and other not in old}


def _pointers(job: JsonObject, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield every place where a role is named by a key, and its new name."""
    key, extras = keys.TASK_ROLES.key, f"/{keys.EXTRAS.key}"
    count = len(as_list(job.get(keys.DEPLOYMENTS.key)))
    places = ["", f"{extras}/{keys.HIVED.key}", f"{extras}/{keys.OURS}"]
    places += [f"/{keys.DEPLOYMENTS.key}/{index}" for index in range(count)]
    for place in places:
        held: object = job
        for token in split(f"{place}/{key}"):
            held = held[int(token)] if isinstance(held, list) else as_object(held).get(token)
        for old, new in names.items():
            if old in as_object(held):
                yield f"{place}/{key}/{escape(old)}", new
