"""JobSpec → a parameter file, anew or into a text that is already there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jobs.dialects import rendering
from jobs.dialects.base import Fix, Rendered
from jobs.dialects.dlc_params import reading
from jobs.dialects.dlc_params.document import JOB_TYPE, document
from jobs.dialects.dlc_params.job_type import COMMENT, guess
from jobs.dialects.dlc_params.keys import KNOWN
from jobs.dialects.dlc_params.lines import BLANKS, Entry, Lines, read
from jobs.dialects.document import Document
from jobs.dialects.rendering import Form, JsonObject
from jobs.dialects.spans import split
from jobs.dialects.tidy import without_line_numbers
from jobs.spec import JobSpec

NAME: Final = "dlc-params"

_BREAK: Final = re.compile(r"\r\n|\r|\n")

Splice = tuple[int, int, str]


def _written(document: JsonObject) -> str:
    texts = _texts(document)
    lines = "".join(f"{key}={value}\n" for key, value in texts.items())
    job_type = str(document[JOB_TYPE])
    return lines if guess(texts, ()).name == job_type else f"{_comment(job_type)}\n{lines}"


def _patched(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    if before == after:
        return base.text
    old, new = _texts(before), _texts(after)
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    gone = [key for key in old if key not in new]
    return _with_job_type(edited(base, changed, gone), str(after[JOB_TYPE]))


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; what a parameter file can't say is noted by its JobSpec path."""
    return rendering.render(Form(NAME, reading.parse, document, _written, _patched), spec, extras, base)


def apply_fixes(document: Document, fixes: Iterable[Fix]) -> str:
    """The text with `fixes` made; raises Refused on unreadable text."""
    last = {"".join(split(fix.pointer)): fix for fix in fixes}
    names = {key: fix.key for key, fix in last.items() if fix.key is not None}
    changed = {key: str(fix.value) for key, fix in last.items() if fix.value is not None and key}
    gone = [key for key, fix in last.items() if fix.value is None and fix.key is None]
    return edited(document, changed, gone, names)


def edited(
    document: Document,
    changed: Mapping[str, str],
    gone: Iterable[str],
    names: Mapping[str, str] | None = None,
) -> str:
    """The text with other values, further keys at its end, without the keys `gone`, with keys renamed."""
    if not changed and not gone and not names:
        return document.text
    plain = without_line_numbers(document.text)
    lines = read(document if plain == document.text else Document(plain), KNOWN)
    splices = [*_values(lines, changed), *(_dropped(lines, key) for key in gone if key in lines.entries)]
    for key, name in (names or {}).items():
        if key in lines.entries and name not in lines.entries:
            start = lines.entries[key].start
            splices.append((start, start + len(key), name))
    parts, done = [], 0
    for start, stop, new in sorted(splices):
        parts += [plain[done:start], new]
        done = stop
    whole = "".join(parts) + plain[done:]
    return _with_more(
        whole, {k: v for k, v in changed.items() if k not in lines.entries}, joined=lines.joined
    )


def _values(lines: Lines, changed: Mapping[str, str]) -> Iterator[Splice]:
    for key, value in changed.items():
        entry = lines.entries.get(key)
        if entry:
            yield entry.value_start, entry.value_end, value


def _dropped(lines: Lines, key: str) -> Splice:
    """The entry with its line, or on a single line with the blanks before it."""
    entry: Entry = lines.entries[key]
    text = lines.text
    start = entry.start - len(text[: entry.start]) + len(text[: entry.start].rstrip(BLANKS))
    if lines.joined:
        return start, entry.value_end, ""
    stop = entry.value_end + len(text[entry.value_end :]) - len(text[entry.value_end :].lstrip(BLANKS))
    found = _BREAK.match(text, stop)
    return start, found.end() if found else stop, ""


def _with_more(text: str, more: Mapping[str, str], *, joined: bool) -> str:
    """Further keys behind the last line."""
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


def _with_job_type(text: str, job_type: str) -> str:
    """`text` with the comment that says its job type, where nothing else says it."""
    lines = read(Document(text), KNOWN)
    values = {key: entry.value for key, entry in lines.entries.items()}
    if guess(values, (comment for _offset, comment in lines.comments)).name == job_type:
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
