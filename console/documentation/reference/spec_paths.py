"""Every path of a JobSpec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from jobs.spec import JobSpec


def list_paths(model: type[BaseModel] = JobSpec, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield each innermost path in the order of the model, with its default (None where there is none)."""
    for name, field in model.model_fields.items():
        inner, many = _model_in(field.annotation)
        path = f"{prefix}{name}"
        if inner is None:
            yield path, None if field.is_required() else field.get_default(call_default_factory=True)
        else:
            yield from list_paths(inner, f"{path}[]." if many else f"{path}.")


def _model_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """Return the model that a field holds, if any, and whether it holds many of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (None, False) if set(annotation.model_fields) == {"name"} else (annotation, False)
    if get_origin(annotation) is dict:
        return None, False
    for argument in get_args(annotation):
        inner, many = _model_in(argument)
        if inner:
            is_list = get_origin(annotation) not in (Union, type(int | None))
            return inner, many or is_list
    return None, False
