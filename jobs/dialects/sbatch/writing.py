"""JobSpec → an sbatch script, anew or into one that is already there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jobs.dialects import rendering
from jobs.dialects.base import Fix, Rendered
from jobs.dialects.document import Document
from jobs.dialects.rendering import Form, JsonObject
from jobs.dialects.sbatch import reading
from jobs.dialects.sbatch import script as scripts
from jobs.dialects.sbatch.document import BODY, COMPONENTS, document
from jobs.dialects.sbatch.header import read
from jobs.dialects.sbatch.lines import INTERPRETER, LINE_ENDS, MARK, SCRIPT, Argument, Script, parse_pointer
from jobs.dialects.sbatch.options import OPTIONS, Takes
from jobs.dialects.sbatch.script import Body
from jobs.dialects.sbatch.words import SPACES, written
from jobs.spec import JobSpec

NAME: Final = "sbatch"

_REST: Final = re.compile(r"[ \t]*(?:#[^\n]*)?")

Splice = tuple[int, int, str]
Changes = Mapping[int, Mapping[str, str | None]]
"""Component → option → its value, None for one that goes."""


def _written(document: JsonObject) -> str:
    return header(document) + str(document[BODY])


def _patched(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    if before == after:
        return base.text
    old, new = _components(before), _components(after)
    if len(old) != len(new):
        return None
    changes = {index: _changes(*pair) for index, pair in enumerate(zip(old, new, strict=True))}
    text = edited(base, changes)
    if before[BODY] != after[BODY] or before[INTERPRETER] != after[INTERPRETER]:
        text = _with_body(Document(text), str(after[INTERPRETER]), str(after[BODY]))
    return text


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; what a script can't say is noted by its JobSpec path."""
    return rendering.render(Form(NAME, reading.parse, document, _written, _patched), spec, extras, base)


def header(document: JsonObject) -> str:
    """The lines of a script that say with which options it is submitted."""
    lines = [f"#!{document[INTERPRETER]}"]
    for index, options in enumerate(_components(document)):
        lines += [f"{MARK} hetjob"] if index else []
        lines += [f"{MARK} {_option(name, value)}" for name, value in options.items()]
    return "\n".join(lines) + "\n"


def apply_fixes(document: Document, fixes: Iterable[Fix]) -> str:
    """The text with `fixes` made; raises Refused on text whose lines can't be read."""
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
    text = _renamed(edited(document, changes), names)
    if f"/{SCRIPT}" in last:
        text = _with_command(Document(text), str(last[f"/{SCRIPT}"]))
    return text


def _renamed(text: str, names: Mapping[tuple[int, str], str]) -> str:
    """`text` with the options `names` (by component and name) called otherwise."""
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


def edited(document: Document, changes: Changes) -> str:
    """The text with other options: only the lines concerned change, further ones go behind the others."""
    if not any(changes.values()):
        return document.text
    script = read(document)
    splices: list[Splice] = []
    for component, options in changes.items():
        if component < script.components:
            splices += _edits(script, component, options)
    parts, done = [], 0
    for start, stop, new in sorted(splices, key=lambda splice: splice[:2]):
        if start >= done:
            parts += [script.text[done:start], new]
            done = stop
    return "".join(parts) + script.text[done:]


def _edits(script: Script, component: int, options: Mapping[str, str | None]) -> Iterator[Splice]:
    ours = [each for each in script.arguments if each.component == component]
    gone = {each.start for each in ours if options.get(each.name, "") is None}
    yield from _removals(script, [each for each in script.arguments if each.start in gone])
    added = []
    for name, value in options.items():
        there = [each for each in ours if each.name == name]
        if value is not None and there:
            yield _value(there[-1], value)
        elif value is not None:
            added.append(f"{MARK} {_option(name, value)}\n")
    if added:
        end = script.ends[component]
        gap = "" if script.text[:end].endswith("\n") else "\n"
        yield end, end, gap + "".join(added)


def _value(argument: Argument, value: str) -> Splice:
    """The option with another value."""
    option = OPTIONS.get(argument.name)
    takes = option.takes if option else Takes.MAYBE
    if takes is Takes.VALUE:
        bare = written(value) or '""'
        return argument.value_start, argument.value_end, bare if value else ""
    if argument.joined:
        return argument.value_start, argument.value_end, written(value)
    return argument.start, argument.end, _option(argument.name, value)


def _removals(script: Script, gone: list[Argument]) -> Iterator[Splice]:
    """Without the options of `gone`, and without the lines that held nothing else."""
    by_line: dict[int, list[Argument]] = {}
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


def _with_body(document: Document, interpreter: str, body: str) -> str:
    """The text with another interpreter and other commands."""
    script = read(document)
    first = "\ufeff" if document.text.startswith("\ufeff") else ""
    rest = script.text[script.shebang_end : script.body]
    line = script.text[len(first) : script.shebang_end]
    same = script.interpreter == interpreter
    head = line if same and line.endswith("\n") else f"#!{interpreter}\n"
    gap = "" if not rest or rest.endswith("\n") else "\n"
    return first + head + rest + gap + body


def _with_command(document: Document, command: str) -> str:
    """The text with another command, and its variables."""
    script = read(document)
    body = scripts.read(script.interpreter, script.commands)
    interpreter, behind = scripts.written(Body(body.interpreter, command, body.env))
    return _with_body(document, interpreter, behind)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {
        name: value for name, value in after.items() if before.get(name) != value or name not in before
    }
    return changed | dict.fromkeys((name for name in before if name not in after), None)


def _option(name: str, value: str) -> str:
    """One option as it is written."""
    option = OPTIONS.get(name)
    takes = option.takes if option else Takes.MAYBE
    return f"--{name}={written(value)}" if value or takes is Takes.VALUE else f"--{name}"


def _components(document: JsonObject) -> list[dict[str, str]]:
    components = document[COMPONENTS]
    assert isinstance(components, list)
    return components
