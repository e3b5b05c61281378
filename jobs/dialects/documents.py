"""A job's document in the syntax it came in, JSON or YAML: a dialect need not care which.

A text that begins with a bracket is JSON as people leave it, or, where that fails, YAML with brackets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jobs.dialects import edit as json_edit
from jobs.dialects import placeholders, source, text_renderer
from jobs.dialects.base import Fix, Refused
from jobs.dialects.document import Document
from jobs.dialects.edit import Change, RenameKey, SetValue, changes_of, difference
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.reading_cache import read_once
from jobs.dialects.source import Source
from jobs.dialects.spans import escape
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.yaml_text import editor, emitter
from jobs.dialects.yaml_text import source as yaml_source
from jobs.dialects.yaml_text.rules import YamlRules
from jobs.dialects.yaml_text.source import Pick, YamlSource

_JSON: Final = compile_pattern(
    r"[\ufeff\s]*+(?:(?://[^\r\n]*+|/\*(?s:.*?)\*/|\d{1,6}(?=\s*[{\[]))\s*+)*+[{\[]"
)


def is_json(text: str) -> bool:
    """Return whether `text` is meant to be JSON."""
    return bool(_JSON.match(text))


@read_once
def read(document: Document, rules: YamlRules, pick: Pick | None = None) -> Source:
    """Read `document`, YAML by `rules`; raises Refused when it can't be read, or when it is hostile.

    `pick` chooses among several YAML documents; without it they are refused.
    """
    text = document.text
    if not is_json(text):
        return yaml_source.read(text, rules, pick)
    try:
        return source.read(document)
    except Refused as refused:
        if refused.problems[0].code not in _NOT_JSON:
            raise
        try:
            return yaml_source.read(text, rules, pick)
        except Refused:
            raise refused from None


_NOT_JSON: Final = frozenset(
    {"single_quotes", "unquoted_key", "unquoted_text", "hash_comment", "wrong_literal", "bad_number"}
)
"""What stops a JSON reader in YAML with brackets."""


def edit(document: Document, edits: Iterable[Change], rules: YamlRules, pick: Pick | None = None) -> str:
    """Return the text with `edits` made and every other character kept; raises Refused on unreadable text."""
    wanted = list(edits)
    if not wanted:
        return document.text
    there = read(document, rules, pick)
    if isinstance(there, YamlSource):
        return editor.edit(there, wanted, pick)
    return json_edit.edit(document, wanted)


def apply_fixes(document: Document, fixes: Iterable[Fix], rules: YamlRules, pick: Pick | None = None) -> str:
    """The text with `fixes` made; of two at one place the last counts.  Raises Refused on unreadable text."""
    return edit(document, changes_of(fixes), rules, pick)


def patch(
    base: Document,
    before: JsonObject,
    after: JsonObject,
    identities: Mapping[str, str],
    rules: YamlRules,
    pick: Pick | None = None,
    there: object = None,
) -> str | None:
    """`Form.patched` for both syntaxes; see `rendering.patch_json`."""
    held = read(base, rules, pick).value if there is None else there
    edits = difference(before, after, held, identities)
    return None if edits is None else edit(base, edits, rules, pick)


def rename(document: Document, names: Mapping[str, str], rules: YamlRules, pick: Pick | None = None) -> str:
    """The text with other names for the keys of the members at the pointers `names`; others are left out."""
    return edit(document, [RenameKey(pointer, name) for pointer, name in names.items()], rules, pick)


def write(whole: JsonObject, *, as_json: bool = False) -> str:
    """Return the JSON values as text."""
    return text_renderer.write_json(whole) if as_json else emitter.write(whole)


def fill(document: Document, values: Mapping[str, str], rules: YamlRules, pick: Pick | None = None) -> str:
    """The text with the placeholders of the secrets in `values` replaced; unreadable text stays as it is."""
    if is_json(document.text):
        return placeholders.fill_json(document.text, values)
    try:
        held = read(document, rules, pick).value
    except Refused:
        return document.text
    edits = [
        SetValue(pointer, filled)
        for pointer, said in strings(held)
        if (filled := placeholders.fill(said, values)) != said
    ]
    return edit(document, edits, rules, pick)


def strings(value: object, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text inside of `value` with its pointer."""
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner, f"{pointer}/{escape(key)}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from strings(inner, f"{pointer}/{index}")
