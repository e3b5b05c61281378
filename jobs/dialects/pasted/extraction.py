"""The job file inside of a text, in the code blocks of a Markdown page too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

from jobs.dialects import documents, source
from jobs.dialects.base import MAX_BYTES, Refused
from jobs.dialects.document import Document
from jobs.dialects.pasted import manifest, python_code, requests
from jobs.dialects.pasted.layers import Layer, Opened, dedent
from jobs.dialects.reading_cache import read_once
from jobs.dialects.yaml_text.rules import JS_YAML

_FENCE: Final = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|~{3,})[^`\r\n]*\r?\n(?P<inside>.*?)(?:^[ \t]*(?P=mark)[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MOST_BLOCKS: Final = 20
"""So many blocks are looked at."""


def _blocks(text: str) -> Iterator[Layer]:
    """Yield the blocks of code that stand between fences."""
    for number, found in enumerate(_FENCE.finditer(text)):
        if number == _MOST_BLOCKS:
            return
        yield dedent("markdown", text, *found.span("inside"))


DEEPEST: Final = 3
"""So many times something may be wrapped: a request in a fence, or a dict in a request."""

_Attempt: TypeAlias = Callable[[], Layer | None]

_FENCE_LINE: Final = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_DICT: Final = re.compile(r"\s*+(?:[A-Za-z_]\w*[ \t]*=[ \t]*)?\{")
_PYTHONIC: Final = re.compile(r"[{\[,:(]\s*'|[:,\[]\s*(?:True|False|None)\b|#|\A\s*[A-Za-z_]")
_SHELL_SCRIPT: Final = re.compile(r"\ufeff?\s*#!(?!.*python)")


@read_once
def extract(document: Document) -> Opened | None:
    """The job file inside of a text; None where the text is one itself, or holds none.  Never raises."""
    if len(document.text) > MAX_BYTES:
        return None
    layers: list[Layer] = []
    inner = document
    while len(layers) < DEEPEST and (layer := _layer(inner)):
        layers.append(layer)
        inner = Document(layer.text)
    return Opened(document.text, tuple(layers), inner) if layers and inner.text.strip() else None


def _layer(document: Document, deepest: int = DEEPEST) -> Layer | None:
    """Take one layer off a text; in it are `deepest` more at most."""
    for way in _attempts(document, deepest):
        if layer := way():
            return layer
    return None


def _attempts(document: Document, deepest: int) -> Iterator[_Attempt]:
    """Yield the ways that may fit, told by how the text looks."""
    text = document.text
    yield partial(requests.of_http, text)
    yield partial(requests.of_curl, text)
    yield partial(requests.of_docker, text)
    if manifest.SEEN.search(text):
        yield partial(manifest.of_job, document)
    if documents.is_json(text) and _is_document(document):
        return  # as most texts are: nothing more is looked for
    if _DICT.match(text) and _PYTHONIC.search(text) and not _is_document(document):
        yield partial(python_code.of_dict, text)
    has_fence = ("```" in text or "~~~" in text) and _FENCE_LINE.search(text)
    may_be_call = python_code.CALL.search(text)
    if (may_be_call or has_fence) and not _SHELL_SCRIPT.match(text) and not _is_document(document):
        if has_fence:
            yield partial(_of_fence, text, deepest)
        if may_be_call:
            yield partial(python_code.of_call, text)


def _of_fence(text: str, deepest: int) -> Layer | None:
    """Return the first block of a page that looks like a job file, or holds one."""
    for block in _blocks(text):
        inner = Document(block.text)
        if _is_document(inner) or "#SBATCH" in block.text or (deepest and _layer(inner, deepest - 1)):
            return block
    return None


def _is_document(document: Document) -> bool:
    """Return whether a text is JSON or YAML with members."""
    try:
        if documents.is_json(document.text):
            source.read(document, repeats=True)
            return True
        return isinstance(documents.read(document, JS_YAML).value, dict)
    except Refused as refused:
        return refused.problems[0].code in _DOCUMENTS


_DOCUMENTS: Final = frozenset({"yaml_documents", "duplicate_key", "too_deep", "too_many_values"})
"""What is wrong with texts that are JSON or YAML all the same."""
