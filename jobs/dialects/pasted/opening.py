"""Finding the job file inside of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

from jobs.dialects import documents, source
from jobs.dialects.base import MAX_BYTES, Refused
from jobs.dialects.pasted import manifest, markdown, programs, python_code, requests
from jobs.dialects.pasted.layers import Layer, Opened
from jobs.dialects.yaml_text.rules import JS_YAML

DEEPEST: Final = 3
"""So many times something may be wrapped: a request in a fence, or a dict in a request."""

_Way: TypeAlias = Callable[[str], Layer | None]

_FENCE: Final = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_DICT: Final = re.compile(r"\s*(?:[A-Za-z_]\w*[ \t]*=[ \t]*)?\{")
_PYTHONIC: Final = re.compile(r"[{\[,:(]\s*'|[:,\[]\s*(?:True|False|None)\b|#|\A\s*[A-Za-z_]")
_SHELL_SCRIPT: Final = re.compile(r"\ufeff?\s*#!(?!.*python)")


def opened(text: str) -> Opened | None:
    """The job file inside of `text`; None where the text is one itself, or holds none.  Never raises."""
    if len(text) > MAX_BYTES:
        return None
    layers: list[Layer] = []
    inner = text
    while len(layers) < DEEPEST and (layer := _layer(inner)):
        layers.append(layer)
        inner = layer.text
    return Opened(text, tuple(layers)) if layers and inner.strip() else None


def _layer(text: str, deepest: int = DEEPEST) -> Layer | None:
    """What is wrapped in `text`, one layer of it taken off; in it are `deepest` more at most."""
    for way in _ways(text, deepest):
        if layer := way(text):
            return layer
    return None


def _ways(text: str, deepest: int) -> Iterator[_Way]:
    """The ways that may fit, told by how the text looks."""
    yield requests.of_http
    yield requests.of_curl
    yield programs.of_docker
    if manifest.SEEN.search(text):
        yield manifest.of_job
    if documents.is_json(text) and _is_document(text):
        return  # as most texts are: nothing more is looked for
    if _DICT.match(text) and _PYTHONIC.search(text) and not _is_document(text):
        yield python_code.of_dict
    may_be_call, has_fence = python_code.CALL.search(text), _FENCE.search(text)
    if (may_be_call or has_fence) and not _SHELL_SCRIPT.match(text) and not _is_document(text):
        if has_fence:
            yield partial(_of_fence, deepest=deepest)
        if may_be_call:
            yield python_code.of_call


def _of_fence(text: str, deepest: int) -> Layer | None:
    """The first block of a page that looks like a job file, or holds one."""
    for block in markdown.blocks(text):
        is_job_file = _is_document(block.text) or "#SBATCH" in block.text
        if is_job_file or (deepest and _layer(block.text, deepest - 1)):
            return block
    return None


def _is_document(text: str) -> bool:
    """Whether `text` is JSON or YAML with members."""
    try:
        if documents.is_json(text):
            source.read(text, repeats=True)
            return True
        return isinstance(documents.read(text, JS_YAML).value, dict)
    except Refused as refused:
        return refused.problems[0].code in _DOCUMENTS


_DOCUMENTS: Final = frozenset({"yaml_documents", "duplicate_key", "too_deep", "too_many_values"})
"""What is wrong with texts that are JSON or YAML all the same."""
