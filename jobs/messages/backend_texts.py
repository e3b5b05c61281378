"""Sentences for the words of a backend's engine, from the backend's own module `texts`.

A backend may have one, with data alone: `pending_sentence(word)`, the sentence for the engine's reason why a
job waits; `EXPECTED_START`, which adds the engine's estimate; and `STATES`, the sentences for other words of
the engine.  It is loaded when first needed.  The engine's word is the parameter of the backend's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from jobs.messages import amounts
from jobs.messages.sentences import say


def pending_message(backend: str, params: Mapping[str, object]) -> str:
    """Return why a job waits at the engine; "" for a backend without texts.

    `params` have the engine's word, which may be one of several with details in brackets, and `start`, the
    seconds since the epoch at which the engine expects to start the job.
    """
    texts = _texts_of(backend)
    if texts is None:
        return ""
    word = str(params.get(backend) or "None").split(",")[0].strip("() ")
    why = say((texts.pending_sentence(word),), {**params, backend: word})
    start = params.get("start")
    if not isinstance(start, int):
        return why
    moment = amounts.moment(datetime.fromtimestamp(start, UTC).isoformat())
    return say((texts.EXPECTED_START,), {"why": why, "moment": moment})


def state_message(backend: str, params: Mapping[str, object]) -> str:
    """Return the sentence for the engine's word about a job that does not wait; "" for an unknown word."""
    texts = _texts_of(backend)
    sentences = texts.STATES.get(str(params.get(backend))) if texts else None
    return say(sentences, params) if sentences else ""


def backend_of(params: Mapping[str, object]) -> str:
    """Return the backend whose word is among a reason's parameters, "" if none."""
    words = (name for name in params if isinstance(params[name], str) and params[name])
    return next((name for name in words if _texts_of(name)), "")


@cache
def _texts_of(backend: str) -> ModuleType | None:
    name = f"jobs.backends.{backend}"
    package = find_spec(name) if backend.isidentifier() else None
    if package is None or not package.submodule_search_locations or find_spec(f"{name}.texts") is None:
        return None
    return import_module(f"{name}.texts")
