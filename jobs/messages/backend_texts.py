"""Finds the texts of a backend: sentences for the words of its engine.

A backend may have a module `texts` with `pending_message(params)`, the sentence for the engine's reason why a
job waits, and `state_message(word, params)`, that for another word of the engine, None for one that it does
not know.  It is loaded when first needed, and reads the engine's word from the parameter of the backend's
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


@cache
def texts_of(backend: str) -> ModuleType | None:
    """Return the texts of a backend, None if it has none."""
    name = f"jobs.backends.{backend}"
    package = find_spec(name) if backend.isidentifier() else None
    if package is None or not package.submodule_search_locations or find_spec(f"{name}.texts") is None:
        return None
    return import_module(f"{name}.texts")


def texts_for(params: Mapping[str, object]) -> tuple[ModuleType, str] | None:
    """Return the texts of the backend whose word is among a reason's parameters, and that word."""
    words = ((name, params[name]) for name in params if isinstance(params[name], str) and params[name])
    return next(((found, str(word)) for name, word in words if (found := texts_of(name))), None)
