"""A Kubeflow manifest, in YAML or JSON → JobSpec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from jobs.dialects import documents
from jobs.dialects.base import Fix, Note, Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.extras import find_extras
from jobs.dialects.fields import CONSOLE, Group
from jobs.dialects.findings import Findings
from jobs.dialects.key_spellings import KEPT, keep_written, spellings
from jobs.dialects.kubeflow import keys, kinds, roles, volumes
from jobs.dialects.kubeflow.kinds import BY_NAME, MPI_OPERATOR, OPERATOR, V1, V2BETA1, JobKind
from jobs.dialects.kubeflow.renderer import ABSENT, API, BACKOFF, ROLES, VOLUMES, render_spec
from jobs.dialects.kubeflow.roles import ManifestObject
from jobs.dialects.objects import (
    as_object,
    check_replicas,
    open_object,
    read_field,
    share_variables,
    without_empty,
)
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import kind_of, nearest_key, short
from jobs.dialects.secret_extraction import withhold
from jobs.dialects.spans import split
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import as_text
from jobs.dialects.yaml_text.rules import KUBERNETES
from jobs.spec import JobSpec, Mount, RestartPolicy, RetryPolicy, RoleSpec

GROUP: Final = "kubeflow.org/"

NOTED: Final = frozenset({keys.CONTAINERS.key, keys.ENV.key})
"""Lists of which an element that is kept has a note of its own."""


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = documents.read(document, KUBERNETES, pick)
    findings = Findings(document.room)
    held = withhold(open_object(source, keys.KUBERNETES), (), ())
    for pointer, name in held.found.items():
        findings.note("secret_taken", pointer, key=name, name=name)
    value = as_object(held.value)
    kind, api = _read_kind(value, findings), str(value.get("apiVersion"))
    if kind is None:
        findings.refuse_if_any(source)
    assert kind is not None
    job = ManifestReader(value, kind, api, findings)
    findings.refuse_if_any(source)
    spec = job.build()
    extras = job.extras(spec)
    more = (Note("other_documents"),) if source.documents > 1 else ()
    return Parsed(
        spec,
        extras,
        (*findings.notes(source), *more),
        held.secrets,
        documents.edit(document, held.edits, KUBERNETES, pick),
    )


def pick(found: Sequence[object]) -> int:
    """Return the index of the one job among several documents; raises Refused unless there is one."""
    ours = [index for index, value in enumerate(found) if is_job(value)]
    if len(ours) != 1:
        raise Refused((Problem("yaml_documents", "", 1, 1, {"count": len(found)}, source=CONSOLE),))
    return ours[0]


def is_job(value: object) -> bool:
    """Tell whether a document is a job, by its kind."""
    return isinstance(value, dict) and value.get("kind") in BY_NAME


def _read_kind(value: JsonObject, findings: Findings) -> JobKind | None:
    """Return the kind of job; what is wrong with kind and apiVersion is a problem."""
    said = value.get("kind")
    kind = BY_NAME.get(said) if isinstance(said, str) else None
    if kind is None:
        known = list(BY_NAME)
        near = nearest_key(str(said), known) if said else None
        fix = Fix("/kind", near) if near else None
        code, choices = "not_a_choice" if said else "required", ", ".join(known)
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


def _volume_forms(role: roles.KubeflowRole, mounts: Sequence[Mount]) -> dict[str, object]:
    """Return the extras for places of the job that a role does not mount, and for names of its volumes."""
    own = {mount.path for mount in role.volumes.mounts}
    shared = [volumes.shared_folder(path) for path in role.shared_paths]
    there = [*shared, *(mount for mount in mounts if mount.path in own)]
    _volumes, written = volumes.write(there, role.resources.shm_mib, {})
    usual = {str(mount["mountPath"]): str(mount["name"]) for mount in written}
    names = role.volumes.names
    return without_empty(
        {
            ABSENT: [mount.path for mount in mounts if mount.path not in own],
            VOLUMES: names if names != usual else {},
        }
    )


class ManifestReader:
    """Every key of a manifest without secrets, read once; `build` is called when nothing was wrong."""

    def __init__(self, value: JsonObject, kind: JobKind, api: str, findings: Findings) -> None:
        self._value, self._kind, self._api, self._findings = value, kind, api, findings
        self._there = roles.spell(kind, as_object(value.get("spec")).get(kind.specs))
        self._rules = keys.job(kind, self._there)
        job = ManifestObject(value, "", findings, self._rules).inspect()
        metadata = job.group(keys.METADATA)
        self._fields: dict[str, Any] = {
            "name": self._read_name(metadata),
            "tags": {name: as_text(each) for name, each in metadata.bag(keys.LABELS).items()},
        }
        annotation = metadata.bag(keys.ANNOTATIONS).get(keys.DESCRIPTION_KEY)
        self._fields["description"] = annotation if isinstance(annotation, str) else ""
        whole = next(rule for rule in self._rules if isinstance(rule, Group) and rule.key == "spec")
        spec = job.group(whole)
        if not spec.raw:
            findings.problem("required", "/spec", OPERATOR, key="spec")
        policy = spec.group(keys.RUN_POLICY)
        self._fields["time_limit_s"] = read_field(policy, keys.TIME_LIMIT)
        self._backoff = policy.optional_integer(keys.BACKOFF)
        self._fields["hold"] = policy.flag(keys.SUSPEND)
        self._fields["quota"] = policy.group(keys.SCHEDULING).text(keys.QUEUE)
        self._success = spec.choice(keys.SUCCESS_POLICY)
        self._dynamic = spec.flag(keys.DYNAMIC)
        elastic = spec.group(keys.ELASTIC_POLICY)
        self._least = elastic.optional_integer(keys.MIN_REPLICAS)
        self._restarts = elastic.optional_integer(keys.MAX_RESTARTS)
        specs = next(rule for rule in whole.keys if isinstance(rule, Group) and rule.key == kind.specs)
        self._roles = tuple(self._read_roles(spec, specs)) if spec.raw else ()

    def _read_roles(self, spec: ManifestObject, specs: Group) -> Iterator[roles.KubeflowRole]:
        """Read the replica specs, and what concerns several of them."""
        at, value = spec.at(specs.key), spec.value.get(specs.key)
        if specs.key not in spec.value:
            spec.findings.problem("required", at, OPERATOR, key=specs.key)
        elif not isinstance(value, dict):
            got = kind_of(value)
            spec.findings.problem("wrong_type", at, OPERATOR, key=specs.key, expected="object", got=got)
        else:
            group = ManifestObject(value, at, spec.findings, specs.keys)
            found = tuple(roles.read(group, self._kind, self._api, self._there))
            self._check(at, found)
            yield from found

    def _read_name(self, metadata: ManifestObject) -> str:
        name = metadata.text(keys.NAME)
        if not name:
            begun = metadata.value.get("generateName")
            if isinstance(begun, str) and begun.strip("-"):
                return begun.strip("-")
            metadata.findings.problem("required", metadata.at("name"), keys.KUBERNETES, key="name")
            return "job"
        if not keys.fits_name(name):
            fix = Fix(metadata.at("name"), keys.propose_name(name))
            source, allowed = f"{keys.KUBERNETES}, {OPERATOR}", keys.NAME_CHARACTERS
            metadata.findings.problem(
                "bad_label", metadata.at("name"), source, fix, key="name", value=short(name), allowed=allowed
            )
        return name

    def _check(self, at: str, found: Sequence[roles.KubeflowRole]) -> None:
        """Tell what is wrong or worth noting about several roles together."""
        check_replicas((role.replicas for role in found), at, self._findings)
        needed = self._kind.needed
        if needed and needed not in self._there and self._there:
            source = MPI_OPERATOR if self._kind.name == "MPIJob" else OPERATOR
            self._findings.note("condition_unmet", at, key=self._kind.name, lacking=needed, source=source)
        if any(role.volumes.mounts != found[0].volumes.mounts for role in found):
            self._findings.note("mounts_shared", at)

    def build(self) -> JobSpec:
        """Return the JobSpec; the rule that decides its success is noted."""
        shared, secret = share_variables([role.variables for role in self._roles])
        counts = {role.name: role.replicas for role in self._roles}
        policies = kinds.completions(self._kind, counts, self._success, dynamic=self._dynamic)
        for role in self._roles:
            decides = policies[role.name].min_succeeded
            if decides:
                at = f"/spec/{self._kind.specs}/{self._there[role.name]}"
                self._findings.note(
                    "completion_applied", at, role=role.name, count=decides, job_type=self._kind.name
                )
        if "Worker" in policies:
            elastic = kinds.with_minimum(self._kind, policies["Worker"], counts["Worker"], self._least)
            policies = {**policies, "Worker": elastic}
        restarts = {role.name: role.restart or self._kind.restart for role in self._roles}
        mounts: dict[str, Mount] = {}
        for mount in (each for role in self._roles for each in role.volumes.mounts):
            mounts.setdefault(mount.path, mount)
        return JobSpec(
            **self._fields,
            framework=self._kind.framework,
            roles=tuple(
                RoleSpec(
                    name=role.name,
                    replicas=role.replicas,
                    command=role.command,
                    image=role.image,
                    resources=role.resources,
                    ports=role.ports,
                    completion=policies[role.name],
                    restart=RestartPolicy(
                        condition=kinds.condition_for(restarts[role.name], restarts.values()),
                        limit=self._restarts if kinds.is_elastic(self._kind, role.name) else None,
                    ),
                    env={name: each for name, each in role.variables.plain.items() if name not in shared},
                    nodes=role.nodes,
                    init_containers=role.others.init_containers,
                    sidecars=role.others.sidecars,
                    shared_paths=role.shared_paths,
                )
                for role in self._roles
            ),
            env=shared,
            secret_env=secret,
            mounts=tuple(mounts.values()),
            retry=RetryPolicy(
                limit=kinds.retry_limit(restarts.values(), self._backoff),
                on_success=all(each == kinds.ALWAYS for each in restarts.values()),
            ),
            grace_s=next((role.grace_s for role in self._roles if role.grace_s is not None), 30),
        )

    def extras(self, spec: JobSpec) -> dict[str, object]:
        """Return what the manifest says beyond `spec`; what is kept for the cluster alone is noted."""
        forms = {role.name: {**role.forms, **_volume_forms(role, spec.mounts)} for role in self._roles}
        extras: dict[str, object] = {
            **without_empty({API: self._api if self._api != V1 else "", ROLES: without_empty(forms)}),
            **({BACKOFF: self._backoff} if self._backoff is not None and spec.retry.limit == 0 else {}),
        }
        said = render_spec(spec, extras)
        spelling = keep_written(spellings(self._value, self._rules), said)
        if spelling:
            extras[KEPT] = spelling
        for left in find_extras(self._value, said, self._rules, keys.NAMES):
            extras[left.name] = left.value
            last = [token for token in split(left.pointer) if not token.isdigit()][-1]
            is_noted = last in NOTED and left.pointer.rpartition("/")[2].isdigit()
            if left.known and left.value and not is_noted:
                self._findings.note("kept_unused", left.pointer, key=last)
        return extras
