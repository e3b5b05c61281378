"""JobSpec → the options and the text of a script, by which it is written or changed.

Three members: `interpreter`, `components` (for each, option → value, "" for one that has none) and
`body`, the text behind the options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.rendering import JsonObject
from jobs.dialects.sbatch import amounts, hosts, launcher, sizes, times, values
from jobs.dialects.sbatch import script as scripts
from jobs.dialects.sbatch.launcher import Started
from jobs.dialects.sbatch.lines import parse_pointer
from jobs.dialects.sbatch.meaning import DEFAULT_NAME, kept_or, meaning
from jobs.dialects.sbatch.options import OPTIONS
from jobs.dialects.sbatch.reading import IMAGE_OPTION, INTERPRETER, MOUNTS_OPTION, SPELLING
from jobs.dialects.sbatch.script import BASH, Body
from jobs.dialects.sbatch.values import Export
from jobs.spec import CompletionPolicy, Framework, JobSpec, Mount, RetryPolicy, TaskRole

NEVER_AGAIN: Final = RetryPolicy(limit=0, fancy=False)
"""What --no-requeue says; other policies are the console's own to carry out."""

COMPONENTS: Final = "components"
BODY: Final = "body"
_ORDER: Final = {name: place for place, name in enumerate(OPTIONS)}


def document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """What a script says of `spec`, with `extras` put back."""
    plain = is_plain(spec)
    spelling = _spelling(extras, len(spec.roles))
    export = _export(spec, spelling[0] or {})
    components = []
    for index, role in enumerate(spec.roles):
        said = spelling[index]
        options = _of_role(role, said, plain=plain)
        if index == 0:
            options |= _of_job(spec, said or {}, export, plain=plain)
        components.append(_ordered(options, extras, index))
    command = spec.roles[0].command if plain else _launched(spec)
    given = {name: value for name, value in _variables(spec).items() if export.variables.get(name) != value}
    shell = extras.get(INTERPRETER)
    interpreter = shell if plain and isinstance(shell, str) and shell in scripts.PLAIN else BASH
    interpreter, body = scripts.written(Body(interpreter, command, given))
    return {INTERPRETER: interpreter, COMPONENTS: components, BODY: body}


def is_plain(spec: JobSpec) -> bool:
    """Whether the command is the script: for one process, and for a job that Slurm itself spreads.

    A script of one process ends as that does, whatever its completion policy says.
    """
    first = spec.roles[0]
    alike = all(
        role.command == first.command and not role.env and role.completion == CompletionPolicy()
        for role in spec.roles
    )
    if spec.framework is Framework.SLURM and alike:
        return True
    return spec.replicas == 1 and not first.env


def _spelling(extras: Mapping[str, object], count: int) -> list[dict[str, str] | None]:
    """How the options of each component were written; None for those that no script has had so far."""
    kept = extras.get(SPELLING)
    known = [each for each in kept if isinstance(each, dict)] if isinstance(kept, list) else []
    written: list[dict[str, str] | None] = [{str(k): str(v) for k, v in each.items()} for each in known]
    return [*written, *([None] * count)][:count]


def _ordered(options: Mapping[str, str], extras: Mapping[str, object], index: int) -> dict[str, str]:
    """The options with those that mean nothing here, in one order."""
    kept = {}
    for pointer, value in extras.items():
        component, name = parse_pointer(pointer) if pointer.startswith("/") else (-1, "")
        if component == index and name and isinstance(value, str):
            kept[name] = value
    every = {**kept, **options}
    return dict(sorted(every.items(), key=lambda item: _ORDER.get(item[0], len(_ORDER))))


def _of_job(spec: JobSpec, said: Mapping[str, str], export: Export, *, plain: bool) -> dict[str, str]:
    """What the first component says of the whole job."""
    found: dict[str, str] = {}
    if spec.name != DEFAULT_NAME or "job-name" in said:
        found["job-name"] = spec.name
    found |= kept_or(said, "comment", spec.description or None, spec.description)
    found |= kept_or(said, "partition", spec.quota or None, spec.quota)
    limit = spec.time_limit_s
    found |= kept_or(said, "time", limit or 0, times.length(limit) if limit else "")
    end = spec.end_signal
    found |= kept_or(said, "signal", end, values.written_signal(end, to_shell=plain) if end else "")
    found |= kept_or(said, "begin", spec.not_before or None, times.epoch(spec.not_before) or "")
    found |= kept_or(said, "dependency", spec.after or None, values.written_dependency(spec.after))
    found |= {"hold": ""} if spec.hold else {}
    found |= {"no-requeue": ""} if spec.retry == NEVER_AGAIN else {}
    found |= {"requeue": ""} if "requeue" in said and spec.retry.fancy else {}
    never = spec.roles[0].nodes.never
    found |= kept_or(said, "exclude", never or None, hosts.written(never))
    if plain:
        written = values.written_mounts(spec.mounts)
        found |= kept_or(said, "container-mounts", spec.mounts or None, written)
    written = export.written
    return found | kept_or(said, "export", export, written if export.names or export.variables else "")


def _of_role(role: TaskRole, written: Mapping[str, str] | None, *, plain: bool) -> dict[str, str]:
    """What a component says of its role.

    Where it was not `written` so far, the size is told even if it is the console's own default:
    Slurm's would be another.
    """
    has, said = role.resources, written or {}
    size = sizes.Size(
        role.replicas,
        has.cpu_milli,
        has.memory_mib,
        has.disk_mib,
        has.gpus,
        has.gpu_type if has.gpus and amounts.is_type(has.gpu_type) else "",
    )
    nodes = role.nodes
    only = nodes.only if len(nodes.only) <= role.replicas or meaning(said, "nodelist") == nodes.only else ()
    found = kept_or(said, "nodelist", nodes.only or None, hosts.written(only))
    found |= kept_or(said, "constraint", nodes.labels or None, values.written_features(nodes.labels))
    of_size = {name: value for name, value in said.items() if name in sizes.OPTIONS}
    by_task = not plain
    found |= (
        sizes.anew(size, by_task=by_task)
        if written is None
        else sizes.write(size, {**of_size, **found}, by_task=by_task)
    )
    if plain and role.image:
        known = said.get("container-image", "")
        same = known and values.image(known) == role.image
        found["container-image"] = known if same else values.written_image(role.image)
    return found


def _launched(spec: JobSpec) -> str:
    return launcher.written([_started(role, spec.mounts) for role in spec.roles])


def _started(role: TaskRole, places: Sequence[Mount]) -> Started:
    """The role as an srun of its own starts it."""
    completion = role.completion
    image = [f"{IMAGE_OPTION}{values.written_image(role.image)}"] if role.image else []
    mounts = values.written_mounts(places)
    return Started(
        name=role.name,
        command=role.command,
        fails=completion.min_failed is not None,
        ends=completion.min_succeeded == role.replicas,
        options=(*image, *([f"{MOUNTS_OPTION}{mounts}"] if mounts else [])),
        env=dict(role.env),
    )


def _variables(spec: JobSpec) -> dict[str, str]:
    """The job's variables, with placeholders for secrets."""
    secret = {name: placeholders.placeholder(each.name) for name, each in spec.secret_env.items()}
    return {**spec.env, **secret}


def _export(spec: JobSpec, said: Mapping[str, str]) -> Export:
    """The --export that was said, without what the job no longer says."""
    found = meaning(said, "export")
    if found is None:
        return Export()
    wanted = _variables(spec)
    left = {name: value for name, value in found.variables.items() if wanted.get(name) == value}
    return Export(found.names, left)
