"""JobSpec → the keys and values of a parameter file, by way of the `CreateJob` request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jobs.dialects.base import Fix
from jobs.dialects.dlc.job_types import OTHER_NAMES
from jobs.dialects.dlc.renderer import render_spec
from jobs.dialects.dlc_params import shapes
from jobs.dialects.dlc_params.job_type import COMMENT, guess_job_type
from jobs.dialects.dlc_params.keys import COMMON, KNOWN, PARAMS, ROLES
from jobs.dialects.dlc_params.lines import Lines, Splice, read, splice
from jobs.dialects.dlc_params.shapes import BLANKS
from jobs.dialects.document import Document
from jobs.dialects.json_cleanup import without_line_numbers
from jobs.dialects.objects import as_list, as_object
from jobs.dialects.spans import split
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec

_BREAK: Final = re.compile(r"\r\n|\r|\n")


JOB_TYPE: Final = "job_type"
"""The job type: an extra, and no key of the file but of its document."""


def build_document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return the job type, and the file's keys with their values in the order of the page's sample."""
    kept = {f"/{key}": value for key, value in (("JobType", extras.get(JOB_TYPE)),) if value}
    request = render_spec(spec, kept)
    flat = flatten(request)
    roles = _roles(request)
    ordered = {**{key: flat[key] for key in ("name",) if key in flat}, **roles, **flat}
    for pointer, value in extras.items():
        key = "".join(split(pointer)) if pointer.startswith("/") else ""
        if key and isinstance(value, str):
            ordered.setdefault(key, value)
    return {JOB_TYPE: str(request["JobType"]), **ordered}


def flatten(request: JsonObject) -> dict[str, str]:
    """Return the part of `request` that is not about roles, by the file's keys."""
    settings = as_object(request.get("Settings"))
    off = set() if settings.get("EnableErrorMonitoringInAIMaster") else {shapes.AIMASTER}
    texts = {
        param.key: param.shape.write(_at(request, split(param.to)))
        for param in COMMON
        if param.to and param.shape not in off
    }
    return {key: text for key, text in texts.items() if text}


def _at(value: object, tokens: list[str]) -> object:
    for token in tokens:
        value = as_object(value).get(token)
    return value


def _roles(request: JsonObject) -> dict[str, str]:
    """Return the keys of each role; a type that the file has no keys for gets the first that are free."""
    flat: dict[str, str] = {}
    taken: set[str] = set()
    roles = as_list(request["JobSpecs"])
    own = {kind for kind in map(_known_type, roles) if kind}
    for role in roles:
        kind = _known_type(role)
        if kind is None or kind in taken:
            kind = next((free for free, _count in ROLES.values() if free not in taken | own), None)
        if kind is None:
            break
        taken.add(kind)
        flat |= dict(_role(kind, role))
    return flat


def _known_type(role: Mapping[str, object]) -> str | None:
    name = str(role["Type"])
    name = OTHER_NAMES.get(name.lower(), name)
    return next((kind for kind, _count in ROLES.values() if kind.lower() == name.lower()), None)


def _role(kind: str, role: JsonObject) -> Iterator[tuple[str, str]]:
    for param in PARAMS:
        tokens = split(param.to)
        if tokens[:2] != ["JobSpecs", kind]:
            continue
        text = param.shape.write(_at(role, tokens[2:]))
        if text:
            yield param.key, text


# --- the text --------------------------------------------------------------------------------------------


def write(document: JsonObject) -> str:
    """Return the text of a document, with a comment where nothing else tells its job type."""
    texts = _texts(document)
    lines = "".join(f"{key}={value}\n" for key, value in texts.items())
    job_type = str(document[JOB_TYPE])
    return lines if guess_job_type(texts, ())[0] == job_type else f"{_comment(job_type)}\n{lines}"


def patch(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    """Return the text of `base`, which says `before`, made to say `after`."""
    if before == after:
        return base.text
    old, new = _texts(before), _texts(after)
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    gone = [key for key in old if key not in new]
    return _set_job_type(edit(base, changed, gone), str(after[JOB_TYPE]))


def apply_fixes(document: Document, fixes: Iterable[Fix]) -> str:
    """Return the text with `fixes` made; raises Refused on unreadable text."""
    last = {"".join(split(fix.pointer)): fix for fix in fixes}
    names = {key: fix.key for key, fix in last.items() if fix.key is not None}
    changed = {key: str(fix.value) for key, fix in last.items() if fix.value is not None and key}
    gone = [key for key, fix in last.items() if fix.value is None and fix.key is None]
    return edit(document, changed, gone, names)


def edit(
    document: Document,
    changed: Mapping[str, str],
    gone: Iterable[str],
    names: Mapping[str, str] | None = None,
) -> str:
    """Return the text with `changed` values, further keys at its end, without `gone` keys, with new names."""
    if not changed and not gone and not names:
        return document.text
    plain = without_line_numbers(document.text)
    lines = read(document if plain == document.text else Document(plain), KNOWN)
    splices = lines.set_values(changed) + [_drop(lines, key) for key in gone if key in lines.entries]
    for key, name in (names or {}).items():
        if key in lines.entries and name not in lines.entries:
            start = lines.entries[key].start
            splices.append((start, start + len(key), name))
    more = {key: value for key, value in changed.items() if key not in lines.entries}
    return _append(splice(plain, splices), more, joined=lines.joined)


def _drop(lines: Lines, key: str) -> Splice:
    """Return the splice that removes an entry and its line, or on a single line with the blanks before it."""
    entry, text = lines.entries[key], lines.text
    start = entry.start - len(text[: entry.start]) + len(text[: entry.start].rstrip(BLANKS))
    if lines.joined:
        return start, entry.value_end, ""
    stop = entry.value_end + len(text[entry.value_end :]) - len(text[entry.value_end :].lstrip(BLANKS))
    found = _BREAK.match(text, stop)
    return start, found.end() if found else stop, ""


def _append(text: str, more: Mapping[str, str], *, joined: bool) -> str:
    """Return `text` with further keys behind the last line."""
    if not more:
        return text
    found = _BREAK.search(text)
    written = [f"{key}={value}" for key, value in more.items()]
    if joined:
        body = text.rstrip("\r\n" + BLANKS)
        return " ".join([body, *written]) + text[len(body) :]
    newline = found[0] if found else "\n"
    gap = "" if not text or text.endswith(("\n", "\r")) else newline
    return text + gap + newline.join(written) + (newline if not gap else "")


def _set_job_type(text: str, job_type: str) -> str:
    """Return `text` with a comment that tells its job type, where nothing else does."""
    lines = read(Document(text), KNOWN)
    if guess_job_type(lines.values, (comment for _offset, comment in lines.comments))[0] == job_type:
        return text
    for offset, comment in lines.comments:
        match = COMMENT.search(comment)
        if match:
            start = offset + match.start("name")
            return text[:start] + job_type.lower() + text[offset + match.end("name") :]
    found = _BREAK.search(text)
    return f"{_comment(job_type)}{found[0] if found else chr(10)}{text}"


def _comment(job_type: str) -> str:
    return f"# dlc submit {job_type.lower()} --job_file <this file>"


def _texts(document: JsonObject) -> dict[str, str]:
    return {key: str(value) for key, value in document.items() if key != JOB_TYPE}
