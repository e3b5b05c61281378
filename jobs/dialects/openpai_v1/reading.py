"""OpenPAI v1 JSON → JobSpec: the whole file, its environment and its places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.dialects import edit, placeholders
from jobs.dialects.base import Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.fields import Text
from jobs.dialects.findings import Findings
from jobs.dialects.openpai_v1 import environment, keys, roles
from jobs.dialects.openpai_v1.document import plain
from jobs.dialects.ours import kept
from jobs.dialects.ours import reading as ours
from jobs.dialects.ours.correcting import corrected
from jobs.dialects.ours.reading import Said
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import Record, kind_of
from jobs.dialects.source import Source, read
from jobs.dialects.spans import split
from jobs.dialects.withhold import withhold
from jobs.spec import JobSpec, Mount, MountPurpose, RegistryAuth, RetryPolicy

KNOWN = frozenset({key.key for key in keys.JOB} | {keys.SNAPSHOT})


@dataclass(slots=True)
class Taken:
    """What leaves the neutral part of the text: secrets by name, what replaces them, and extras."""

    secrets: dict[str, str] = field(default_factory=dict)
    edits: list[edit.Put | edit.Drop] = field(default_factory=list)
    extras: dict[str, object] = field(default_factory=dict)

    def secret(self, name: str, value: str, pointer: str, instead: str) -> None:
        """The secret `value` goes out of the text, and `instead` stands at `pointer`."""
        self.secrets[name] = value
        self.edits.append(edit.Put(pointer, instead))


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = read(document, repeats=True)
    if not isinstance(source.value, dict):
        raise Refused((_not_an_object(source),))
    findings, taken = Findings(document.room), Taken()
    job = Record(source.value, "", findings)
    job_read = _Job(job, taken)
    findings.refuse_if_any(source)
    without = job_read.build()
    spec, said = _with_ours(job, taken, without)
    findings.refuse_if_any(source)
    taken.extras |= _ours_kept(said, without, spec)
    return Parsed(
        spec=spec,
        extras=taken.extras,
        notes=findings.notes(source),
        secrets=taken.secrets,
        text=edit.edit(document, taken.edits),
    )


def _with_ours(job: Record, taken: Taken, without: JobSpec) -> tuple[JobSpec, Said]:
    """The job with what our own object says, and that."""
    more = job.bag(keys.EXTRAS)
    if keys.OURS not in more:
        return without, Said()
    where = job.at(keys.EXTRAS.key)
    held = withhold({keys.OURS: more[keys.OURS]}, (), ())
    for pointer, name in held.found.items():
        job.findings.note("secret_taken", f"{where}{pointer}", key=split(pointer)[-1], name=name)
    taken.secrets |= held.secrets
    taken.edits += [edit.Put(f"{where}{each.pointer}", each.value) for each in held.edits]
    value = held.value[keys.OURS] if isinstance(held.value, dict) else None
    at = f"{where}/{keys.OURS}"
    said = ours.read(value, at, job.findings, [role.name for role in without.roles])
    return corrected(without, said.patch, at, job.findings), said


def _ours_kept(said: Said, there: JobSpec, spec: JobSpec) -> dict[str, object]:
    """What is remembered of our own object, and of the names under which the roles stand."""
    if not (said.patch or said.strangers):
        return {}
    pairs = zip(spec.roles, there.roles, strict=True)
    named = {role.name: own.name for role, own in pairs if role.name != own.name}
    usual = native(plain(spec, kept.remembered(Said(), there, spec, named)))
    return kept.remembered(said, usual or there, spec, named)


def native(document: Mapping[str, object]) -> JobSpec | None:
    """What OpenPAI's own keys say; None when they can't be accepted."""
    findings = Findings()
    job = _Job(Record(document, "", findings), Taken())
    return None if findings.any_problem else job.build()


def _not_an_object(source: Source) -> Problem:
    line, column = source.position("")
    params = {"key": "", "expected": "object", "got": kind_of(source.value)}
    return Problem("wrong_type", "", line, column, params, source=keys.OPENPAI)


class _Job:
    """Every key of the file, read once; `build` is called when nothing was wrong."""

    def __init__(self, job: Record, taken: Taken) -> None:
        self._name = job.text(keys.JOB_NAME)
        self._image = job.text(keys.IMAGE)
        if not self._image:
            job.findings.note("no_image", job.at(keys.IMAGE.key), key=keys.IMAGE.key)
        self._places = _places(job, taken)
        self._auth_file = _uri(job, keys.AUTH_FILE, taken)
        self._quota = job.text(keys.VIRTUAL_CLUSTER)
        self._gpu_type = job.text(keys.GPU_TYPE)
        self._retry = _retry(job)
        self._environment = environment.read(job, taken)
        self._roles = roles.read(job, taken.extras)
        _kept(job, taken.extras)
        _remarks(job)

    def build(self) -> JobSpec:
        """The JobSpec."""
        env = self._environment
        common = roles.Common(self._image, self._gpu_type, env.rdma)
        return JobSpec(
            name=self._name,
            roles=tuple(role.build(common) for role in self._roles),
            env=env.plain,
            secret_env=env.secret,
            registry_auth=RegistryAuth(file_uri=self._auth_file) if self._auth_file else None,
            mounts=self._places,
            quota=self._quota,
            retry=self._retry,
            keep_failed_s=keys.KEEP_FAILED_S if env.is_debug else 0,
        )


def _places(job: Record, taken: Taken) -> tuple[Mount, ...]:
    """The directories, with OpenPAI's default for output."""
    mounts = []
    for rule, purpose in keys.DIRECTORIES:
        uri = _uri(job, rule, taken)
        if not uri and purpose is MountPurpose.OUTPUT:
            uri = keys.DEFAULT_OUTPUT
        if uri:
            mounts.append(Mount(purpose=purpose, uri=uri, read_only=purpose is MountPurpose.CODE))
    return tuple(mounts)


def _uri(job: Record, rule: Text, taken: Taken) -> str:
    """A URI without the password that it may hold."""
    uri, password = placeholders.split_password(job.text(rule), rule.key)
    if password:
        taken.secret(rule.key, password, job.at(rule.key), uri)
        job.findings.note("secret_taken", job.at(rule.key), key=rule.key, name=rule.key)
    return uri


def _retry(job: Record) -> RetryPolicy:
    """OpenPAI's retryCount: -1 retries failures without end, -2 restarts whatever happens."""
    count = job.integer(keys.RETRY_COUNT)
    if count < 0:
        job.findings.note(
            "looser_rule",
            job.at(keys.RETRY_COUNT.key),
            key=keys.RETRY_COUNT.key,
            value=count,
            applied=keys.OPENPAI,
            stricter=keys.SCM,
        )
        return RetryPolicy(limit=None, on_success=count == -2, fancy=count != -2)
    return RetryPolicy(limit=count)


def _kept(job: Record, extras: dict[str, object]) -> None:
    """What means nothing here is kept for export, and told."""
    kill_all = job.optional_integer(keys.KILL_ALL)
    if kill_all is not None:
        extras[job.at(keys.KILL_ALL.key)] = kill_all
        job.findings.note("obsolete_key", job.at(keys.KILL_ALL.key), key=keys.KILL_ALL.key)
    more = job.bag(keys.EXTRAS)
    for key in more:
        if not any(character in "._" or (character.isascii() and character.isalnum()) for character in key):
            job.findings.problem("bad_key", f"{job.at(keys.EXTRAS.key)}", keys.OPENPAI, key=key)
    others = {key: value for key, value in more.items() if key != keys.OURS}
    if others:
        extras[job.at(keys.EXTRAS.key)] = others
        job.findings.note("kept_unused", job.at(keys.EXTRAS.key), key=keys.EXTRAS.key)
    if keys.SNAPSHOT in job.value:
        extras[job.at(keys.SNAPSHOT)] = job.value[keys.SNAPSHOT]
        job.findings.note("form_snapshot", job.at(keys.SNAPSHOT), key=keys.SNAPSHOT)
    for key, value in job.unknown(KNOWN).items():
        extras[job.at(key)] = value


def _remarks(job: Record) -> None:
    """What is accepted, and still worth a word."""
    name: Mapping[str, object] = job.value
    if "~" in str(name.get(keys.JOB_NAME.key, "")):
        job.findings.note(
            "looser_rule",
            job.at(keys.JOB_NAME.key),
            key=keys.JOB_NAME.key,
            value="~",
            applied=keys.SCM,
            stricter=keys.OPENPAI,
        )
    image = name.get(keys.IMAGE.key)
    if isinstance(image, str) and any(character.isspace() for character in image):
        job.findings.note("image_with_blanks", job.at(keys.IMAGE.key))
