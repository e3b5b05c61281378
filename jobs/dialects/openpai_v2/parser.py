"""OpenPAI v2, YAML or JSON → JobSpec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from jobs.dialects import documents, placeholders
from jobs.dialects.base import Fix, Params, Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.edit import SetValue
from jobs.dialects.fields import CONSOLE, AnyKey
from jobs.dialects.findings import Findings
from jobs.dialects.objects import as_list, as_object, note_secrets, open_object, read_fields, share_variables
from jobs.dialects.openpai_v1.keys import KEEP_FAILED_S
from jobs.dialects.openpai_v2 import extras as extras_of
from jobs.dialects.openpai_v2 import keys, prerequisites, roles
from jobs.dialects.openpai_v2.extras import TEAMWISE, TENSORBOARD
from jobs.dialects.openpai_v2.part import FilePart, find_nearest
from jobs.dialects.openpai_v2.roles import V2Role
from jobs.dialects.openpai_v2.templates import TEMPLATE
from jobs.dialects.ours import parser as ours
from jobs.dialects.ours.overlay import apply_patch
from jobs.dialects.ours.parser import ObjectContent
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import short
from jobs.dialects.secret_extraction import MOST, Withheld, withhold
from jobs.dialects.spans import escape, split
from jobs.dialects.variables import Variables, as_text, is_usable
from jobs.dialects.yaml_text.rules import JS_YAML
from jobs.spec import JobSpec, Mount, MountPurpose, RegistryAuth, RetryPolicy, RoleSpec, SecretRef

DOCUMENT: Final = "document"
"""An extra: the file's value without its secrets, from which it is written again."""

JSON: Final = "json"
"""An extra: the file was JSON, as SCM writes it."""

_KNOWN: Final[dict[int, tuple[object, JobSpec | None]]] = {}
_MOST_KNOWN: Final = 4
_SWITCHES: Final = (True, "true", "True")


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = documents.read(document, JS_YAML)
    findings = Findings(document.room)
    held = _take_secrets(open_object(source, keys.OPENPAI))
    note_secrets(held, findings)
    job = JobFileReader(held.value, findings)
    findings.refuse_if_any(source)
    spec = job.build()
    findings.refuse_if_any(source)
    _remember(held.value, spec)
    extras: dict[str, object] = {DOCUMENT: held.value, **dict(job.keep_rest())}
    if documents.is_json(document.text):
        extras[JSON] = True
    return Parsed(
        spec=spec,
        extras=extras,
        notes=findings.notes(source),
        secrets=held.secrets,
        text=documents.edit(document, held.edits, JS_YAML),
    )


def parse_value(value: object) -> JobSpec | None:
    """Return what a document without secrets says; None when it can't be accepted."""
    known = _KNOWN.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    findings = Findings()
    job = JobFileReader(value, findings)
    built = None if findings.any_problem else job.build()
    spec = None if findings.any_problem else built
    _remember(value, spec)
    return spec


def parse_apart(value: object) -> tuple[JobSpec | None, ObjectContent]:
    """Return what v2's own keys say in a document without secrets, and what our own object says."""
    findings = Findings()
    job = JobFileReader(value, findings)
    return (None if findings.any_problem else job.build_native()), job.ours


def _remember(value: object, spec: JobSpec | None) -> None:
    """Keep the specs of the last documents by identity: a document that was read is written soon after."""
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[id(value)] = value, spec


class JobFileReader:
    """Every key of a document without secrets, read once; `build` is called when nothing was wrong."""

    def __init__(self, value: object, findings: Findings) -> None:
        root = self._root = FilePart(as_object(value), "", findings, keys.JOB)
        self._unknown = root.note_unknown()
        self._is_scm = is_scm(root.value)
        _check_version(root)
        self._fields = read_fields(root, (keys.NAME,))
        root.choice(keys.TYPE)
        for rule in (keys.VERSION, keys.CONTRIBUTOR):
            root.text(rule)
        self._fields |= read_fields(root, (keys.DESCRIPTION,))
        self._parameters = root.bag(keys.PARAMETERS)
        held_secrets = root.bag(keys.SECRETS)
        self._retry = root.integer(keys.RETRY_COUNT)
        defaults = root.part(keys.DEFAULTS)
        self._fields |= read_fields(defaults, (keys.VIRTUAL_CLUSTER,))
        found = prerequisites.read(root)
        context = {"$parameters": self._parameters, "$secrets": held_secrets}
        self._roles = roles.read(root, found, _read_deployment(root, defaults), context)
        extras = root.part(keys.EXTRAS)
        self._extras = extras_of.read(extras.value)
        self._at = extras.at(keys.OURS)
        self.ours = self._read_ours(extras.value)

    def build(self) -> JobSpec:
        """Return the JobSpec; nothing was wrong with it if there is no problem afterwards."""
        return apply_patch(self.build_native(), self.ours.patch, self._at, self._root.findings)

    def _read_ours(self, extras: Mapping[str, object]) -> ObjectContent:
        if keys.OURS not in extras:
            return ObjectContent()
        names = [role.name for role in self._roles]
        old = [rule.key for rule in keys.OUR_OLD_KEYS]
        return ours.read(extras[keys.OURS], self._at, self._root.findings, names, old)

    def build_native(self) -> JobSpec:
        """Return the JobSpec, as far as v2's own keys say it."""
        env, secret = self._read_environment()
        said = self._extras
        return JobSpec(
            **self._fields,
            roles=tuple(self._build_role(role, env) for role in self._roles),
            env=env,
            secret_env=secret,
            registry_auth=self._read_login(),
            mounts=self._collect_mounts(),
            priority=said.priority,
            retry=_retry_policy(self._retry, said.retry),
            keep_failed_s=KEEP_FAILED_S if self._is_on(keys.DEBUG_PARAMETER) else said.keep_failed_s,
            tensorboard=said.tensorboard,
        )

    def keep_rest(self) -> Iterator[tuple[str, object]]:
        """Yield what has no neutral meaning, by pointer; what one might expect to count is noted."""
        root = self._root
        for key, value in self._unknown.items():
            yield f"/{escape(key)}", value
        for rule in (keys.VERSION, keys.CONTRIBUTOR):
            if root.value.get(rule.key):
                yield root.at(rule.key), root.value[rule.key]
        yield from _rest_of_roles(root)
        yield from _rest_of_extras(root, root.part(keys.EXTRAS).value)
        _note_ignored(root)

    def _build_role(self, role: V2Role, env: Mapping[str, str]) -> RoleSpec:
        built = role.build(env, self._extras)
        if not self._is_on(keys.RDMA_PARAMETER):
            return built
        return built.model_copy(update={"resources": built.resources.model_copy(update={"rdma": True})})

    def _read_environment(self) -> tuple[dict[str, str], dict[str, SecretRef]]:
        """Return the variables that all roles have, and all secret ones."""
        scripts = [role.script for role in self._roles]
        env, _none = share_variables([Variables(script.env) for script in scripts])
        secret = {
            variable: SecretRef(name=name)
            for script in scripts
            for variable, name in {**script.used, **script.secrets}.items()
        }
        if self._is_scm:
            for name, value in self._parameters.items():
                known = placeholders.reference(as_text(value))
                if name in (keys.RDMA_PARAMETER, keys.DEBUG_PARAMETER) or not is_usable(name):
                    continue
                if known:
                    secret.setdefault(name, SecretRef(name=known))
                else:
                    env.setdefault(name, as_text(value))
        return {name: value for name, value in env.items() if name not in secret}, secret

    def _is_on(self, parameter: str) -> bool:
        return self._is_scm and self._parameters.get(parameter) in _SWITCHES

    def _collect_mounts(self) -> tuple[Mount, ...]:
        """Return every place once: data, output and code of all roles, then storages."""
        once: dict[tuple[MountPurpose, str], Mount] = {}
        for kind, purpose in prerequisites.PURPOSES.items():
            items = {item.name: item for role in self._roles if (item := role.items.get(kind))}
            for item in items.values():
                once.update({(purpose, mount.uri): mount for mount in item.mounts(purpose)})
        return (*once.values(), *self._extras.storages)

    def _read_login(self) -> RegistryAuth | None:
        """Return the login for the images that are used."""
        used = (role.items.get(prerequisites.IMAGE) for role in self._roles)
        logins = [item.auth for item in used if item and item.auth]
        if any(login != logins[0] for login in logins):
            where = self._root.at(keys.PREREQUISITES.key)
            self._root.findings.note("registries_differ", where)
        login = logins[0] if logins else None
        if not self._extras.auth_file:
            return login
        return (login or RegistryAuth()).model_copy(update={"file_uri": self._extras.auth_file})


def is_scm(document: Mapping[str, object]) -> bool:
    """Tell whether the document is in SCM's form: it has keys that only SCM knows."""
    for role in as_object(document.get(keys.TASK_ROLES.key)).values():
        held = as_object(role)
        given = as_object(held.get(keys.RESOURCES.key))
        if roles.is_scm_shm(held) or keys.STORAGE_GB.key in given:
            return True
    return False


def _check_version(root: FilePart) -> None:
    version = root.text(keys.PROTOCOL_VERSION)
    if version not in ("", "2"):
        where = root.at(keys.PROTOCOL_VERSION.key)
        root.findings.problem(
            "not_a_choice",
            where,
            keys.OPENPAI,
            Fix(where, 2),
            key="protocolVersion",
            value=short(version),
            choices="2",
        )


def _read_deployment(root: FilePart, defaults: FilePart) -> dict[str, FilePart]:
    """Return what the chosen deployment adds to each role."""
    found: dict[str, dict[str, FilePart]] = {}
    for part in root.parts(keys.DEPLOYMENTS):
        part.note_unknown()
        name = part.text(keys.DEPLOYMENT_NAME)
        part.text(keys.VERSION)
        if name in found:
            part.findings.problem("duplicate_deployment", part.pointer, keys.OPENPAI, value=short(name))
        found[name] = dict(part.read_named(keys.DEPLOYMENT_ROLES))
    chosen = defaults.text(keys.DEPLOYMENT)
    if chosen and chosen not in found:
        where = defaults.at(keys.DEPLOYMENT.key)
        near = find_nearest(chosen, found)
        fix = Fix(where, near) if near else None
        defaults.findings.problem("no_deployment", where, keys.OPENPAI, fix, value=short(chosen))
    return found.get(chosen, {})


def _retry_policy(count: int, ours: int) -> RetryPolicy:
    """Return jobRetryCount, or what protocol v1 said below 0."""
    if ours < 0:
        return RetryPolicy(limit=None, on_success=ours == -2, fancy=ours != -2)
    return RetryPolicy(limit=max(count, 0))


# --- what is kept ----------------------------------------------------------------------------------------


_UNDERSTOOD: Final = frozenset({keys.STORAGES.key, keys.OURS})
_UNDERSTOOD_PLUGINS: Final = frozenset({TENSORBOARD, TEAMWISE})
_STRUCTURE: Final = frozenset({keys.PROTOCOL_VERSION.key, keys.TYPE.key, keys.NAME.key})
"""Keys that say what their object is."""

_IGNORED_OF_PLUGINS: Final = frozenset({"taskroles", "failurePolicy"})
_SKU_NUMBER: Final = "skuNum"
_OF_HIVED: Final = frozenset({_SKU_NUMBER, keys.SKU_TYPE.key, *keys.SKU_TYPE.aliases})


def _rest_of_roles(root: FilePart) -> Iterator[tuple[str, object]]:
    for _name, part in root.read_named(keys.TASK_ROLES):
        for key, value in part.value.items():
            if key not in part.table.by_name:
                yield part.at(key), value
        given = part.part(keys.RESOURCES)
        for key, value in given.value.items():
            if key not in given.table.by_name:
                yield given.at(key), value


def _rest_of_extras(root: FilePart, extras: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in extras.items():
        pointer = f"/{keys.EXTRAS.key}/{escape(key)}"
        if key == keys.PLUGINS.key and isinstance(value, list):
            for index, plugin in enumerate(value):
                if as_object(plugin).get(keys.PLUGIN.key) not in _UNDERSTOOD_PLUGINS:
                    yield _note_unused(root, f"{pointer}/{index}", plugin)
        elif key == keys.HIVED.key and isinstance(value, dict):
            for inner, held in _rest_of_hived(value):
                yield _note_unused(root, f"{pointer}{inner}", held)
        elif key not in _UNDERSTOOD:
            yield _note_unused(root, pointer, value)


def _note_ignored(root: FilePart) -> None:
    """Note each key that is read, is set and has no effect."""
    for pointer, value, ignored in _list_objects(root.value):
        for key in as_object(value):
            if key in ignored and as_object(value)[key]:
                root.findings.note("kept_unused", f"{pointer}/{key}", key=key)


def _list_objects(job: Mapping[str, object]) -> Iterator[tuple[str, object, frozenset[str]]]:
    """Yield the objects of a file, each with its pointer and the keys that have no effect in it."""
    yield "", job, _list_ignored(keys.JOB)
    for rule in (keys.PREREQUISITES, keys.DEPLOYMENTS):
        for index, each in enumerate(as_list(job.get(rule.key))):
            yield f"/{rule.key}/{index}", each, _list_ignored(rule.keys)
    for name, each in as_object(job.get(keys.TASK_ROLES.key)).items():
        yield f"/{keys.TASK_ROLES.key}/{escape(name)}", each, _list_ignored(keys.TASK_ROLES.keys)
    extras, at = as_object(job.get(keys.EXTRAS.key)), f"/{keys.EXTRAS.key}"
    for index, plugin in enumerate(as_list(extras.get(keys.PLUGINS.key))):
        if as_object(plugin).get(keys.PLUGIN.key) in _UNDERSTOOD_PLUGINS:
            yield f"{at}/{escape(keys.PLUGINS.key)}/{index}", plugin, _IGNORED_OF_PLUGINS
    hived = as_object(extras.get(keys.HIVED.key))
    for role, each in as_object(hived.get(keys.HIVED_ROLES.key)).items():
        yield f"{at}/{keys.HIVED.key}/{keys.HIVED_ROLES.key}/{escape(role)}", each, frozenset({_SKU_NUMBER})


def _list_ignored(rules: tuple[AnyKey, ...]) -> frozenset[str]:
    """Return the keys that fill nothing of a JobSpec and do not say what their object is."""
    return frozenset(rule.key for rule in rules if not rule.path) - _STRUCTURE


def _rest_of_hived(hived: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the options of HiveD beside priority and types of GPUs."""
    for key, value in hived.items():
        if key == keys.HIVED_ROLES.key and isinstance(value, dict):
            for role, said in value.items():
                for name, inner in as_object(said).items():
                    if name not in _OF_HIVED and inner:
                        yield f"/{key}/{escape(role)}/{escape(name)}", inner
        elif key != keys.PRIORITY_CLASS.key:
            yield f"/{escape(key)}", value


def _note_unused(root: FilePart, pointer: str, value: object) -> tuple[str, object]:
    """Note what is kept by a plugin's name, else by its key."""
    name = as_object(value).get(keys.PLUGIN.key)
    shown = name if isinstance(name, str) else split(pointer)[-1]
    root.findings.note("kept_unused", pointer, key=shown)
    return pointer, value


# --- secrets ---------------------------------------------------------------------------------------------


_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.\-]+")
_PLAIN: Final = re.compile(rf"{TEMPLATE.pattern.replace('?P<path>', '')}|\$SECRET:|^\s*$")


def _take_secrets(value: dict[str, object]) -> Withheld:
    """Take the secrets out of the file's value."""
    section = keys.SECRETS.key
    rest = {key: inner for key, inner in value.items() if key != section}
    held = withhold(rest, (), (keys.PARAMETERS.key,), _PLAIN)
    if section not in value:
        return held
    found = value[section]
    without = _without(found, f"/{section}", held) if isinstance(found, dict) else found
    others = as_object(held.value)
    held.value = {key: without if key == section else others[key] for key in value}
    return held


def _without(value: object, pointer: str, held: Withheld) -> object:
    """Return `value` with placeholders for every text and number in it."""
    if isinstance(value, dict):
        return {key: _without(inner, f"{pointer}/{escape(key)}", held) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, f"{pointer}/{index}", held) for index, inner in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    secret = as_text(value)
    if placeholders.reference(secret) or _PLAIN.fullmatch(secret):
        return value
    if len(held.secrets) >= MOST:
        params: Params = {"key": keys.SECRETS.key, "count": MOST + 1, "most": MOST}
        raise Refused((Problem("too_many", "", 1, 1, params, source=CONSOLE),))
    name = _name(pointer, secret, held)
    held.secrets[name] = secret
    held.found[pointer] = name
    held.edits.append(SetValue(pointer, placeholders.placeholder(name)))
    return placeholders.placeholder(name)


def _name(pointer: str, secret: str, held: Withheld) -> str:
    """Return the name of the secret: as in the file, unless another one already has it."""
    _, _, *tokens = pointer.split("/")
    name = _NOT_IN_NAMES.sub("-", ".".join(tokens))[:150]
    if held.secrets.get(name, secret) == secret:
        return name
    return f"secrets.{name}"
