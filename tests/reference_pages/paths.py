"""Every path of a JobSpec, and what stands there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from jobs.spec import JobSpec


def paths(model: type[BaseModel] = JobSpec, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Each innermost path in the order of the model, with its default (None where there is none)."""
    for name, field in model.model_fields.items():
        inner, many = _model_in(field.annotation)
        path = f"{prefix}{name}"
        if inner is None:
            yield path, None if field.is_required() else field.get_default(call_default_factory=True)
        else:
            yield from paths(inner, f"{path}[]." if many else f"{path}.")


def _model_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The model that a field holds, if any, and whether it holds many of them."""
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


def values_at(spec: JobSpec, path: str) -> list[object]:
    """All values at `path`, one for each element of the lists on the way; none where a part is missing."""
    found: list[object] = [spec.model_dump(mode="json")]
    for name in path.split("."):
        key = name.removesuffix("[]")
        found = [value[key] for value in found if isinstance(value, dict)]
        if name.endswith("[]"):
            found = [element for value in found if isinstance(value, list) for element in value]
    return found


def holds(said: list[object], wanted: list[object]) -> bool:
    """Whether everything wanted is among what is said; of maps, each member."""
    rest = list(said)
    for value in wanted:
        place = next((index for index, other in enumerate(rest) if _holds(other, value)), None)
        if place is None:
            return False
        del rest[place]
    return True


def _holds(said: object, wanted: object) -> bool:
    if isinstance(said, dict) and isinstance(wanted, dict):
        return wanted.items() <= said.items()
    return said == wanted
