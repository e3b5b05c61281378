"""JobSpec → an sbatch script, anew or into one that is already there.

Both go by way of three members: `interpreter`, `components` (for each, option → value, "" for one that has
none) and `body`, the text behind the options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from jobs.dialects import placeholders, text_renderer
from jobs.dialects.base import Fix, Rendered
from jobs.dialects.document import Document
from jobs.dialects.sbatch import amounts, hosts, launcher, sizes, times, values
from jobs.dialects.sbatch import script as scripts
from jobs.dialects.sbatch.header import (
    INTERPRETER,
    LINE_ENDS,
    MARK,
    SCRIPT,
    SPACES,
    OptionSpan,
    Script,
    parse_pointer,
    quote,
    read,
)
from jobs.dialects.sbatch.launcher import Started
from jobs.dialects.sbatch.option_values import DEFAULT_NAME, read_option, value_or_stored
from jobs.dialects.sbatch.options import OPTIONS, Takes
from jobs.dialects.sbatch.parser import IMAGE_OPTION, MOUNTS_OPTION, SPELLING
from jobs.dialects.sbatch.script import BASH, ScriptBody
from jobs.dialects.sbatch.values import Export
from jobs.dialects.spans import Splice, splice
from jobs.dialects.text_renderer import Form, JsonObject
from jobs.spec import CompletionPolicy, Framework, JobSpec, Mount, RetryPolicy, RoleSpec

NAME: Final = "sbatch"

_REST: Final = re.compile(r"[ \t]*(?:#[^\n]*)?")

Changes = Mapping[int, Mapping[str, str | None]]
"""Component → option → its value, None for one that goes."""


def _write(document: JsonObject) -> str:
    return header(document) + str(document[BODY])


def _patch(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    if before == after:
        return base.text
    old, new = _read_components(before), _read_components(after)
    if len(old) != len(new):
        return None
    changes = {index: _list_changes(*pair) for index, pair in enumerate(zip(old, new, strict=True))}
    text = edit_options(base, changes)
    if before[BODY] != after[BODY] or before[INTERPRETER] != after[INTERPRETER]:
        text = _replace_body(Document(text), str(after[INTERPRETER]), str(after[BODY]))
    return text


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; what a script can't say is noted by its JobSpec path."""
    return text_renderer.render(Form(NAME, document, _write, _patch), spec, extras, base)


def header(document: JsonObject) -> str:
    """Return the lines of a script that say with which options it is submitted."""
    lines = [f"#!{document[INTERPRETER]}"]
    for index, options in enumerate(_read_components(document)):
        lines += [f"{MARK} hetjob"] if index else []
        lines += [f"{MARK} {_write_option(name, value)}" for name, value in options.items()]
    return "\n".join(lines) + "\n"


def apply_fixes(document: Document, fixes: Iterable[Fix]) -> str:
    """Return the text with `fixes` made; raises Refused on text whose lines can't be read."""
    every = list(fixes)
    names = {parse_pointer(fix.pointer): fix.key for fix in every if fix.key is not None}
    last = {fix.pointer: fix.value for fix in every if fix.key is None}
    text = document.text
    if f"/{LINE_ENDS}" in last:
        text = text.replace("\r\n", "\n")
    interpreter = last.get(f"/{INTERPRETER}")
    if interpreter is not None:
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        text = f"{mark}#!{interpreter}\n{text.removeprefix(mark)}"
    changes: dict[int, dict[str, str | None]] = {}
    for pointer, value in last.items():
        component, name = parse_pointer(pointer)
        if name and name not in (INTERPRETER, SCRIPT, LINE_ENDS):
            changes.setdefault(component, {})[name] = None if value is None else str(value)
    document = document if text == document.text else Document(text)
    text = _rename_options(edit_options(document, changes), names)
    if f"/{SCRIPT}" in last:
        text = _replace_command(Document(text), str(last[f"/{SCRIPT}"]))
    return text


def _rename_options(text: str, names: Mapping[tuple[int, str], str]) -> str:
    """Return `text` with the options `names` (by component and name) called otherwise."""
    if not names:
        return text
    script = read(Document(text))
    plain = script.text
    for each in sorted(script.arguments, key=lambda one: -one.start):
        name = names.get((each.component, each.name))
        if name:
            start = each.start + len("--")
            plain = plain[:start] + name + plain[start + len(each.name) :]
    return plain


def edit_options(document: Document, changes: Changes) -> str:
    """The text with other options: only the lines concerned change, further ones go behind the others."""
    if not any(changes.values()):
        return document.text
    script = read(document)
    splices: list[Splice] = []
    for component, options in changes.items():
        if component < script.components:
            splices += _list_edits(script, component, options)
    return splice(script.text, sorted(splices, key=lambda splice: splice[:2]))


def _list_edits(script: Script, component: int, options: Mapping[str, str | None]) -> Iterator[Splice]:
    ours = [each for each in script.arguments if each.component == component]
    gone = {each.start for each in ours if options.get(each.name, "") is None}
    yield from _list_removals(script, [each for each in script.arguments if each.start in gone])
    added = []
    for name, value in options.items():
        there = [each for each in ours if each.name == name]
        if value is not None and there:
            yield _replace_value(there[-1], value)
        elif value is not None:
            added.append(f"{MARK} {_write_option(name, value)}\n")
    if added:
        end = script.ends[component]
        gap = "" if script.text[:end].endswith("\n") else "\n"
        yield end, end, gap + "".join(added)


def _replace_value(argument: OptionSpan, value: str) -> Splice:
    """Return the option with another value."""
    option = OPTIONS.get(argument.name)
    takes = option.takes if option else Takes.MAYBE
    if takes is Takes.VALUE:
        bare = quote(value) or '""'
        return argument.value_start, argument.value_end, bare if value else ""
    if argument.joined:
        return argument.value_start, argument.value_end, quote(value)
    return argument.start, argument.end, _write_option(argument.name, value)


def _list_removals(script: Script, gone: list[OptionSpan]) -> Iterator[Splice]:
    """Without the options of `gone`, and without the lines that held nothing else."""
    by_line: dict[int, list[OptionSpan]] = {}
    for each in gone:
        by_line.setdefault(script.text.rfind("\n", 0, each.start) + 1, []).append(each)
    for start, inside in by_line.items():
        end = script.text.find("\n", start)
        end = len(script.text) if end < 0 else end
        left = script.text[start:end]
        for each in sorted(inside, key=lambda one: -one.start):
            left = left[: each.start - start] + left[each.end - start :]
        behind = left.removeprefix(MARK)
        if _REST.fullmatch(behind.strip(SPACES)) and behind != left:
            yield start, min(end + 1, len(script.text)), ""
        else:
            for each in inside:
                before = script.text[: each.start]
                first = each.start if each.joined else len(before.rstrip(" \t"))
                yield first, each.end, ""


def _replace_body(document: Document, interpreter: str, body: str) -> str:
    """Return the text with another interpreter and other commands."""
    script = read(document)
    first = "\ufeff" if document.text.startswith("\ufeff") else ""
    rest = script.text[script.shebang_end : script.body]
    line = script.text[len(first) : script.shebang_end]
    same = script.interpreter == interpreter
    head = line if same and line.endswith("\n") else f"#!{interpreter}\n"
    gap = "" if not rest or rest.endswith("\n") else "\n"
    return first + head + rest + gap + body


def _replace_command(document: Document, command: str) -> str:
    """Return the text with another command, and its variables."""
    script = read(document)
    body = scripts.read(script.interpreter, script.commands)
    interpreter, behind = scripts.write(ScriptBody(body.interpreter, command, body.env))
    return _replace_body(document, interpreter, behind)


def _list_changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {
        name: value for name, value in after.items() if before.get(name) != value or name not in before
    }
    return changed | dict.fromkeys((name for name in before if name not in after), None)


def _write_option(name: str, value: str) -> str:
    """One option as it is written."""
    option = OPTIONS.get(name)
    takes = option.takes if option else Takes.MAYBE
    return f"--{name}={quote(value)}" if value or takes is Takes.VALUE else f"--{name}"


def _read_components(document: JsonObject) -> list[dict[str, str]]:
    components = document[COMPONENTS]
    assert isinstance(components, list)
    return components


NEVER_AGAIN: Final = RetryPolicy(limit=0, fancy=False)
"""What --no-requeue says; other policies are the console's own to carry out."""

COMPONENTS: Final = "components"
BODY: Final = "body"
_ORDER: Final = {name: place for place, name in enumerate(OPTIONS)}


def document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return the members of a script for `spec`, with `extras` put back."""
    plain = is_plain(spec)
    spelling = _list_known_options(extras, len(spec.roles))
    export = _export(spec, spelling[0] or {})
    components = []
    for index, role in enumerate(spec.roles):
        said = spelling[index]
        options = _of_role(role, said, plain=plain)
        if index == 0:
            options |= _of_job(spec, said or {}, export, plain=plain)
        components.append(_order_options(options, extras, index))
    command = (
        spec.roles[0].command
        if plain
        else launcher.write([_describe_srun(role, spec.mounts) for role in spec.roles])
    )
    given = {name: value for name, value in _variables(spec).items() if export.variables.get(name) != value}
    shell = extras.get(INTERPRETER)
    interpreter = shell if plain and isinstance(shell, str) and shell in scripts.PLAIN else BASH
    interpreter, body = scripts.write(ScriptBody(interpreter, command, given))
    return {INTERPRETER: interpreter, COMPONENTS: components, BODY: body}


def is_plain(spec: JobSpec) -> bool:
    """Return whether the command is the script: for one process, and for a job that Slurm itself spreads.

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


def _list_known_options(extras: Mapping[str, object], count: int) -> list[dict[str, str] | None]:
    """Return the written options of each component; None for those that no script has had so far."""
    kept = extras.get(SPELLING)
    known = [each for each in kept if isinstance(each, dict)] if isinstance(kept, list) else []
    written: list[dict[str, str] | None] = [{str(k): str(v) for k, v in each.items()} for each in known]
    return [*written, *([None] * count)][:count]


def _order_options(options: Mapping[str, str], extras: Mapping[str, object], index: int) -> dict[str, str]:
    """Return the options with those that mean nothing here, in one order."""
    kept = {}
    for pointer, value in extras.items():
        component, name = parse_pointer(pointer) if pointer.startswith("/") else (-1, "")
        if component == index and name and isinstance(value, str):
            kept[name] = value
    every = {**kept, **options}
    return dict(sorted(every.items(), key=lambda item: _ORDER.get(item[0], len(_ORDER))))


def _of_job(spec: JobSpec, said: Mapping[str, str], export: Export, *, plain: bool) -> dict[str, str]:
    """Return the first component's options for the whole job."""
    found: dict[str, str] = {}
    if spec.name != DEFAULT_NAME or "job-name" in said:
        found["job-name"] = spec.name
    found |= value_or_stored(said, "comment", spec.description or None, spec.description)
    found |= value_or_stored(said, "partition", spec.quota or None, spec.quota)
    limit = spec.time_limit_s
    found |= value_or_stored(said, "time", limit or 0, times.length(limit) if limit else "")
    end = spec.end_signal
    found |= value_or_stored(said, "signal", end, values.signal_to_text(end, to_shell=plain) if end else "")
    found |= value_or_stored(said, "begin", spec.not_before or None, times.epoch(spec.not_before) or "")
    found |= value_or_stored(said, "dependency", spec.after or None, values.dependency_to_text(spec.after))
    found |= {"hold": ""} if spec.hold else {}
    found |= {"no-requeue": ""} if spec.retry == NEVER_AGAIN else {}
    found |= {"requeue": ""} if "requeue" in said and spec.retry.fancy else {}
    never = spec.roles[0].nodes.never
    found |= value_or_stored(said, "exclude", never or None, hosts.to_text(never))
    if plain:
        written = values.mounts_to_text(spec.mounts)
        found |= value_or_stored(said, "container-mounts", spec.mounts or None, written)
    written = export.written
    return found | value_or_stored(
        said, "export", export, written if export.names or export.variables else ""
    )


def _of_role(role: RoleSpec, written: Mapping[str, str] | None, *, plain: bool) -> dict[str, str]:
    """Return a component's options for its role.

    Where it was not `written` so far, the size is told even if it is the console's own default:
    Slurm's would be another.
    """
    has, said = role.resources, written or {}
    size = sizes.Size(
        role.replicas,
        has.cpu_milli,
        has.memory_mib,
        has.gpus,
        has.gpu_type if has.gpus and amounts.is_type(has.gpu_type) else "",
    )
    nodes = role.nodes
    only = (
        nodes.only if len(nodes.only) <= role.replicas or read_option(said, "nodelist") == nodes.only else ()
    )
    found = value_or_stored(said, "nodelist", nodes.only or None, hosts.to_text(only))
    found |= value_or_stored(said, "constraint", nodes.labels or None, values.features_to_text(nodes.labels))
    of_size = {name: value for name, value in said.items() if name in sizes.OPTIONS}
    by_task = not plain
    found |= (
        sizes.write_anew(size, by_task=by_task)
        if written is None
        else sizes.write(size, {**of_size, **found}, by_task=by_task)
    )
    if plain and role.image:
        known = said.get("container-image", "")
        same = known and values.image(known) == role.image
        found["container-image"] = known if same else values.image_to_text(role.image)
    return found


def _describe_srun(role: RoleSpec, places: Sequence[Mount]) -> Started:
    """Return the role as an srun of its own starts it."""
    completion = role.completion
    image = [f"{IMAGE_OPTION}{values.image_to_text(role.image)}"] if role.image else []
    mounts = values.mounts_to_text(places)
    return Started(
        name=role.name,
        command=role.command,
        fails=completion.min_failed is not None,
        ends=completion.min_succeeded == role.replicas,
        options=(*image, *([f"{MOUNTS_OPTION}{mounts}"] if mounts else [])),
        env=dict(role.env),
    )


def _variables(spec: JobSpec) -> dict[str, str]:
    """Return the job's variables, with placeholders for secrets."""
    secret = {name: placeholders.placeholder(each.name) for name, each in spec.secret_env.items()}
    return {**spec.env, **secret}


def _export(spec: JobSpec, said: Mapping[str, str]) -> Export:
    """Return the --export that was said, without what the job no longer says."""
    found = read_option(said, "export")
    if found is None:
        return Export()
    wanted = _variables(spec)
    left = {name: value for name, value in found.variables.items() if wanted.get(name) == value}
    return Export(found.names, left)
