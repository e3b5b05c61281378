"""OpenPAI v2, YAML or JSON → JobSpec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobs.dialects import documents, placeholders
from jobs.dialects.base import Fix, Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.findings import Findings
from jobs.dialects.openpai_v1.keys import KEEP_FAILED_S
from jobs.dialects.openpai_v2 import extras as extras_of
from jobs.dialects.openpai_v2 import kept, keys, prerequisites, roles, secrets
from jobs.dialects.openpai_v2.names import nearest
from jobs.dialects.openpai_v2.part import Part
from jobs.dialects.openpai_v2.roles import Role
from jobs.dialects.ours import reading as ours
from jobs.dialects.ours.correcting import corrected
from jobs.dialects.ours.reading import Said
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import kind_of, short
from jobs.dialects.source import Source
from jobs.dialects.spans import split
from jobs.dialects.variables import as_text, is_usable
from jobs.dialects.yaml_text.rules import JS_YAML
from jobs.spec import JobSpec, Mount, MountPurpose, RegistryAuth, RetryPolicy, SecretRef, TaskRole

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
    held = secrets.taken(_object(source))
    for pointer, name in held.found.items():
        findings.note("secret_taken", pointer, key=split(pointer)[-1], name=name)
    job = Job(held.value, findings)
    findings.refuse_if_any(source)
    spec = job.build()
    findings.refuse_if_any(source)
    _remember(held.value, spec)
    extras: dict[str, object] = {DOCUMENT: held.value, **dict(job.kept())}
    if documents.is_json(document.text):
        extras[JSON] = True
    return Parsed(
        spec=spec,
        extras=extras,
        notes=findings.notes(source),
        secrets=held.secrets,
        text=documents.edit(document, held.edits, JS_YAML),
    )


def said_by(value: object) -> JobSpec | None:
    """What a document without secrets says; None when it can't be accepted."""
    known = _KNOWN.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    findings = Findings()
    job = Job(value, findings)
    built = None if findings.any_problem else job.build()
    spec = None if findings.any_problem else built
    _remember(value, spec)
    return spec


def said_apart(value: object) -> tuple[JobSpec | None, Said]:
    """What v2's own keys say in a document without secrets, and beside them what our own object says."""
    findings = Findings()
    job = Job(value, findings)
    return (None if findings.any_problem else job.native()), job.ours


def _remember(value: object, spec: JobSpec | None) -> None:
    """Keep what the last documents said, known by identity: whoever reads one writes it soon after."""
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[id(value)] = value, spec


def _object(source: Source) -> dict[str, object]:
    if isinstance(source.value, dict):
        return source.value
    line, column = source.position("")
    params = {"key": "", "expected": "object", "got": kind_of(source.value)}
    raise Refused((Problem("wrong_type", "", line, column, params, source=keys.OPENPAI),))


class Job:
    """Every key of a document without secrets, read once; `build` is called when nothing was wrong."""

    def __init__(self, value: object, findings: Findings) -> None:
        root = self._root = Part(extras_of.as_object(value), "", findings, keys.JOB)
        self._unknown = root.note_unknown()
        self._is_scm = is_scm(root.value)
        _check_version(root)
        self._name = root.text(keys.NAME)
        root.choice(keys.TYPE)
        for rule in (keys.VERSION, keys.CONTRIBUTOR):
            root.text(rule)
        self._description = root.text(keys.DESCRIPTION)
        self._parameters = root.bag(keys.PARAMETERS)
        held_secrets = root.bag(keys.SECRETS)
        self._retry = root.integer(keys.RETRY_COUNT)
        self._defaults = root.part(keys.DEFAULTS)
        self._quota = self._defaults.text(keys.VIRTUAL_CLUSTER)
        self._prerequisites = prerequisites.read(root)
        context = {"$parameters": self._parameters, "$secrets": held_secrets}
        self._roles = roles.read(root, self._prerequisites, _deployment(root, self._defaults), context)
        extras = root.part(keys.EXTRAS)
        self._extras = extras_of.read(extras.value)
        self._at = extras.at(keys.OURS)
        self.ours = self._read_ours(extras.value)

    def build(self) -> JobSpec:
        """The JobSpec; nothing was wrong with it if there is no problem afterwards."""
        return corrected(self.native(), self.ours.patch, self._at, self._root.findings)

    def _read_ours(self, extras: Mapping[str, object]) -> Said:
        if keys.OURS not in extras:
            return Said()
        names = [role.name for role in self._roles]
        old = [rule.key for rule in keys.OUR_OLD_KEYS]
        return ours.read(extras[keys.OURS], self._at, self._root.findings, names, old)

    def native(self) -> JobSpec:
        """What v2's own keys say."""
        env, secret = self._environment()
        said = self._extras
        return JobSpec(
            name=self._name,
            description=self._description,
            roles=tuple(self._role(role, env) for role in self._roles),
            env=env,
            secret_env=secret,
            registry_auth=self._registry(),
            mounts=self._mounts(),
            quota=self._quota,
            priority=said.priority,
            retry=_retry(self._retry, said.retry),
            keep_failed_s=KEEP_FAILED_S if self._switch(keys.DEBUG_PARAMETER) else said.keep_failed_s,
            tensorboard=said.tensorboard,
        )

    def kept(self) -> Iterator[tuple[str, object]]:
        """What has no neutral meaning, by pointer."""
        return kept.of(self._root, self._unknown)

    def _role(self, role: Role, env: Mapping[str, str]) -> TaskRole:
        built = role.build(env, self._extras)
        if not self._switch(keys.RDMA_PARAMETER):
            return built
        return built.model_copy(update={"resources": built.resources.model_copy(update={"rdma": True})})

    def _environment(self) -> tuple[dict[str, str], dict[str, SecretRef]]:
        """The variables that all roles have, and all secret ones."""
        first = self._roles[0].script.env
        scripts = [role.script for role in self._roles]
        env = {
            name: value
            for name, value in first.items()
            if all(script.env.get(name) == value for script in scripts)
        }
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

    def _switch(self, parameter: str) -> bool:
        return self._is_scm and self._parameters.get(parameter) in _SWITCHES

    def _mounts(self) -> tuple[Mount, ...]:
        """Every place once: data, output and code of all roles, then storages."""
        once: dict[tuple[MountPurpose, str], Mount] = {}
        for kind, purpose in prerequisites.PURPOSES.items():
            items = {item.name: item for role in self._roles if (item := role.items.get(kind))}
            for item in items.values():
                once.update({(purpose, mount.uri): mount for mount in item.mounts(purpose)})
        return (*once.values(), *self._extras.storages)

    def _registry(self) -> RegistryAuth | None:
        """The login for the images that are used."""
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
    """Whether the document is in SCM's form: it has keys that only SCM knows."""
    for role in extras_of.as_object(document.get(keys.TASK_ROLES.key)).values():
        held = extras_of.as_object(role)
        given = extras_of.as_object(held.get(keys.RESOURCES.key))
        if roles.is_scm_shm(held) or keys.STORAGE_GB.key in given:
            return True
    return False


def _check_version(root: Part) -> None:
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


def _deployment(root: Part, defaults: Part) -> dict[str, Part]:
    """What the chosen deployment adds to each role."""
    found: dict[str, dict[str, Part]] = {}
    for part in root.parts(keys.DEPLOYMENTS):
        part.note_unknown()
        name = part.text(keys.DEPLOYMENT_NAME)
        part.text(keys.VERSION)
        if name in found:
            part.findings.problem("duplicate_deployment", part.pointer, keys.OPENPAI, value=short(name))
        found[name] = dict(part.named(keys.DEPLOYMENT_ROLES))
    chosen = defaults.text(keys.DEPLOYMENT)
    if chosen and chosen not in found:
        where = defaults.at(keys.DEPLOYMENT.key)
        near = nearest(chosen, found)
        fix = Fix(where, near) if near else None
        defaults.findings.problem("no_deployment", where, keys.OPENPAI, fix, value=short(chosen))
    return found.get(chosen, {})


def _retry(count: int, ours: int) -> RetryPolicy:
    """jobRetryCount, or what protocol v1 said below 0."""
    if ours < 0:
        return RetryPolicy(limit=None, on_success=ours == -2, fancy=ours != -2)
    return RetryPolicy(limit=max(count, 0))
