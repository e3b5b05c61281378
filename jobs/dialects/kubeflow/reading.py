"""A Kubeflow manifest, in YAML or JSON → JobSpec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jobs.dialects import documents
from jobs.dialects.base import Fix, Note, Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.fields import CONSOLE, MOST_REPLICAS, Group
from jobs.dialects.findings import Findings
from jobs.dialects.kubeflow import keys, kinds, names, roles, volumes
from jobs.dialects.kubeflow.document import ABSENT, API, BACKOFF, ROLES, VOLUMES, plain
from jobs.dialects.kubeflow.kinds import BY_NAME, MPI_OPERATOR, OPERATOR, V1, V2BETA1, Kind
from jobs.dialects.kubeflow.objects import Object
from jobs.dialects.leftovers import leftovers
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import kind_of, nearest_key, short
from jobs.dialects.source import Source
from jobs.dialects.spans import split
from jobs.dialects.spelling import KEPT, of_what_is_said, spellings
from jobs.dialects.variables import as_text
from jobs.dialects.withhold import withhold
from jobs.dialects.yaml_text.rules import KUBERNETES
from jobs.spec import JobSpec, Mount, RetryPolicy, SecretRef, TaskRole

GROUP: Final = "kubeflow.org/"

TOLD: Final = frozenset({keys.CONTAINERS.key, keys.ENV.key})
"""Lists of which an element that is kept has a note of its own."""


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = documents.read(document, KUBERNETES, pick)
    findings = Findings(document.room)
    held = withhold(_object(source), (), ())
    for pointer, name in held.found.items():
        findings.note("secret_taken", pointer, key=name, name=name)
    value = held.value
    assert isinstance(value, dict)
    kind, api = _kind(value, findings), str(value.get("apiVersion"))
    if kind is None:
        findings.refuse_if_any(source)
        raise AssertionError("an unknown kind is a problem")
    job = Job(value, kind, api, findings)
    findings.refuse_if_any(source)
    spec = job.build()
    extras = job.extras(spec)
    notes = findings.notes(source)
    several = Note("other_documents") if source.documents > 1 or source.value is None else None
    return Parsed(
        spec,
        extras,
        (*notes, *([several] if several else [])),
        held.secrets,
        documents.edit(document, held.edits, KUBERNETES, pick),
    )


def pick(found: Sequence[object]) -> int:
    """The one job among several documents; raises Refused when there is none, or more than one."""
    ours = [index for index, value in enumerate(found) if is_job(value)]
    if len(ours) != 1:
        raise Refused((Problem("yaml_documents", "", 1, 1, {"count": len(found)}, source=CONSOLE),))
    return ours[0]


def is_job(value: object) -> bool:
    """Whether a document says that it is one of the jobs."""
    return isinstance(value, dict) and value.get("kind") in BY_NAME


def _object(source: Source) -> dict[str, object]:
    if isinstance(source.value, dict):
        return source.value
    line, column = source.position("")
    params = {"key": "", "expected": "object", "got": kind_of(source.value)}
    raise Refused((Problem("wrong_type", "", line, column, params, source=keys.KUBERNETES),))


def _kind(value: Mapping[str, object], findings: Findings) -> Kind | None:
    """The kind of job; what is wrong with kind and apiVersion is told."""
    said = value.get("kind")
    kind = BY_NAME.get(said) if isinstance(said, str) else None
    if kind is None:
        known = list(BY_NAME)
        near = nearest_key(str(said), known) if said else None
        fix = Fix("/kind", near) if near else None
        code = "not_a_choice" if said else "required"
        choices = ", ".join(known)
        findings.problem(code, "/kind", OPERATOR, fix, key="kind", value=short(str(said)), choices=choices)
        return None
    versions = (V1, V2BETA1) if kind.name == "MPIJob" else (V1,)
    api = value.get("apiVersion")
    if api not in versions:
        source = MPI_OPERATOR if kind.name == "MPIJob" else OPERATOR
        code = "not_a_choice" if api else "required"
        fix, choices = Fix("/apiVersion", V1), ", ".join(versions)
        findings.problem(
            code, "/apiVersion", source, fix, key="apiVersion", value=short(str(api)), choices=choices
        )
    return kind


def _places(role: roles.Role, mounts: Sequence[Mount]) -> dict[str, object]:
    """Which of the job's places a role does not mount, and what its volumes are called."""
    own = {mount.path for mount in role.places.mounts}
    absent = [mount.path for mount in mounts if mount.path not in own]
    there = [mount for mount in mounts if mount.path in own]
    written = volumes.document(there, role.resources.shm_mib, {}).mounts
    usual = {str(mount["mountPath"]): str(mount["name"]) for mount in written}
    names_of = role.places.names
    return {
        **({ABSENT: absent} if absent else {}),
        **({VOLUMES: names_of} if names_of and names_of != usual else {}),
    }


class Job:
    """Every key of a manifest without secrets, read once; `build` is called when nothing was wrong."""

    def __init__(self, value: dict[str, object], kind: Kind, api: str, findings: Findings) -> None:
        self._value, self._kind, self._api, self._findings = value, kind, api, findings
        spec = value.get("spec")
        self._there = roles.spelled(kind, spec.get(kind.specs) if isinstance(spec, dict) else None)
        self._rules = keys.job(kind, self._there)
        job = Object(value, "", findings, self._rules).inspect()
        metadata = job.group(keys.METADATA)
        self._name = self._read_name(metadata)
        self._tags = {name: as_text(each) for name, each in metadata.bag(keys.LABELS).items()}
        annotation = metadata.bag(keys.ANNOTATIONS).get(keys.DESCRIPTION_KEY)
        self._description = annotation if isinstance(annotation, str) else ""
        self._read_spec(job)

    def _read_spec(self, job: Object) -> None:
        """What stands under `spec`."""
        whole = next(rule for rule in self._rules if rule.key == "spec")
        assert isinstance(whole, Group)
        spec = job.group(whole)
        if not spec.raw:
            job.findings.problem("required", "/spec", OPERATOR, key="spec")
        policy = spec.group(keys.RUN_POLICY)
        self._limit = policy.optional_integer(keys.TIME_LIMIT)
        self._backoff = policy.optional_integer(keys.BACKOFF)
        self._hold = policy.flag(keys.SUSPEND)
        self._queue = policy.group(keys.SCHEDULING).text(keys.QUEUE)
        self._success = spec.choice(keys.SUCCESS_POLICY)
        self._dynamic = spec.flag(keys.DYNAMIC)
        specs = next(rule for rule in whole.keys if rule.key == self._kind.specs)
        assert isinstance(specs, Group)
        if spec.raw and self._kind.specs not in spec.value:
            spec.findings.problem("required", spec.at(specs.key), OPERATOR, key=specs.key)
            self._roles: tuple[roles.Role, ...] = ()
            return
        value = spec.value.get(specs.key)
        if not isinstance(value, dict):
            if spec.raw:
                got = kind_of(value)
                spec.findings.problem(
                    "wrong_type", spec.at(specs.key), OPERATOR, key=specs.key, expected="object", got=got
                )
            self._roles = ()
            return
        group = Object(value, spec.at(specs.key), spec.findings, specs.keys)
        self._roles = tuple(roles.read(group, self._kind, self._api, self._there))
        self._check(spec.at(specs.key))

    def _read_name(self, metadata: Object) -> str:
        name = metadata.text(keys.NAME)
        if not name:
            begun = metadata.value.get("generateName")
            if isinstance(begun, str) and begun.strip("-"):
                return begun.strip("-")
            metadata.findings.problem("required", metadata.at("name"), keys.KUBERNETES, key="name")
            return "job"
        if not names.fits(name):
            fix = Fix(metadata.at("name"), names.proposed(name))
            source, allowed = f"{keys.KUBERNETES}, {OPERATOR}", names.ALLOWED
            metadata.findings.problem(
                "bad_label", metadata.at("name"), source, fix, key="name", value=short(name), allowed=allowed
            )
        return name

    def _check(self, at: str) -> None:
        """What concerns several roles."""
        total = sum(role.replicas for role in self._roles)
        if total > MOST_REPLICAS:
            self._findings.problem("too_many_replicas", at, CONSOLE, count=total, most=MOST_REPLICAS)
        needed = self._kind.needed
        if needed and needed not in self._there and self._there:
            source = MPI_OPERATOR if self._kind.name == "MPIJob" else OPERATOR
            self._findings.note("condition_unmet", at, key=self._kind.name, lacking=needed, source=source)
        if any(role.places.mounts != self._roles[0].places.mounts for role in self._roles):
            self._findings.note("mounts_shared", at)

    def build(self) -> JobSpec:
        """The JobSpec."""
        shared, secret = self._shared_variables()
        counts = {role.name: role.replicas for role in self._roles}
        policies = kinds.completions(self._kind, counts, self._success, dynamic=self._dynamic)
        for role in self._roles:
            decides = policies[role.name].min_succeeded
            if decides:
                at = f"/spec/{self._kind.specs}/{self._there[role.name]}"
                self._findings.note(
                    "completion_applied", at, role=role.name, count=decides, job_type=self._kind.name
                )
        graces = [role.grace_s for role in self._roles if role.grace_s is not None]
        return JobSpec(
            name=self._name,
            description=self._description,
            tags=self._tags,
            framework=self._kind.framework,
            roles=tuple(
                TaskRole(
                    name=role.name,
                    replicas=role.replicas,
                    command=role.command,
                    image=role.image,
                    resources=role.resources,
                    ports=role.ports,
                    completion=policies[role.name],
                    env={name: each for name, each in role.variables.plain.items() if name not in shared},
                    nodes=role.nodes,
                )
                for role in self._roles
            ),
            env=shared,
            secret_env=secret,
            mounts=self._mounts(),
            quota=self._queue,
            retry=self._retry(),
            time_limit_s=self._limit,
            grace_s=graces[0] if graces else 30,
            hold=self._hold,
        )

    def _retry(self) -> RetryPolicy:
        policies = [role.restart or self._kind.restart for role in self._roles]
        limit = kinds.retry_limit(policies, self._backoff)
        return RetryPolicy(limit=limit, on_success=all(each == kinds.ALWAYS for each in policies))

    def _mounts(self) -> tuple[Mount, ...]:
        """The places of all roles, of one path the first."""
        found: dict[str, Mount] = {}
        for role in self._roles:
            for mount in role.places.mounts:
                found.setdefault(mount.path, mount)
        return tuple(found.values())

    def _shared_variables(self) -> tuple[dict[str, str], dict[str, SecretRef]]:
        """Variables that all roles have alike are the job's; secrets always are."""
        first, *others = (role.variables.plain for role in self._roles)
        shared = {
            name: value for name, value in first.items() if all(other.get(name) == value for other in others)
        }
        secret: dict[str, SecretRef] = {}
        for role in self._roles:
            secret |= role.variables.secret
        return shared, secret

    def extras(self, spec: JobSpec) -> dict[str, object]:
        """What the manifest says beyond `spec`; what is kept for the cluster alone is noted."""
        every = {role.name: {**role.spelled, **_places(role, spec.mounts)} for role in self._roles}
        said_by_roles = {name: spelled for name, spelled in every.items() if spelled}
        extras: dict[str, object] = {
            **({API: self._api} if self._api != V1 else {}),
            **({ROLES: said_by_roles} if said_by_roles else {}),
            **({BACKOFF: self._backoff} if self._backoff is not None and spec.retry.limit == 0 else {}),
        }
        said = plain(spec, extras)
        spelling = of_what_is_said(spellings(self._value, self._rules), said)
        if spelling:
            extras[KEPT] = spelling
        for left in leftovers(self._value, said, self._rules, keys.NAMES):
            extras[left.name] = left.value
            last = [token for token in split(left.pointer) if not token.isdigit()][-1]
            is_told = last in TOLD and left.pointer.rpartition("/")[2].isdigit()
            if left.known and left.value and not is_told:
                self._findings.note("kept_unused", left.pointer, key=last)
        return extras
