"""A dialect's rules as JSON Schema 2020-12, for completion and hover in an editor.

It describes what one should write; what is merely tolerated (numbers in quotes, values that are raised)
is left to `parse`, which says so in notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from jobs.dialects.fields import (
    Amount,
    AnyKey,
    Bag,
    Choice,
    Counts,
    Flag,
    Fraction,
    Group,
    Integer,
    Key,
    Named,
    Quantity,
    Records,
    Text,
    Texts,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_AMOUNTS = {
    Quantity.MEMORY: r"^[0-9]+(\.[0-9]+)?([KMGT]i?B?)?$",
    Quantity.CPU: r"^[0-9]+(\.[0-9]+)?m?$",
    Quantity.COUNT: r"^[0-9]+$",
}


def json_schema(title: str, keys: Iterable[AnyKey]) -> dict[str, object]:
    """Return the schema of a whole text."""
    return {"$schema": DRAFT, "title": title, **_object(keys)}


def _object(keys: Iterable[AnyKey]) -> dict[str, object]:
    every = tuple(keys)
    return {
        "type": "object",
        "properties": {key.key: _property(key) for key in every},
        "required": [key.key for key in every if key.required],
    }


def _property(key: AnyKey) -> dict[str, object]:
    return {"description": key.help, "$comment": key.source} | _SCHEMAS[type(key)](key)


def _choice(key: Choice) -> dict[str, object]:
    word: dict[str, object] = {"type": "string", "examples" if key.open else "enum": list(key.meanings)}
    return word | ({"default": key.default} if key.default else {})


def _amount(key: Amount) -> dict[str, object]:
    return {"type": ["string", "number"] if key.bare else "string", "pattern": _AMOUNTS[key.quantity]}


def _fraction(key: Fraction) -> dict[str, object]:
    sides = (("minimum", key.least), ("maximum", key.most))
    return {"type": "number"} | {side: float(bound[0]) for side, bound in sides if bound}


def _named_objects(key: Named) -> dict[str, object]:
    """Return an object with names of the person's own."""
    member = _property(key.count) if isinstance(key, Counts) else _object(key.keys)
    if not key.allowed:
        return {"type": "object", "additionalProperties": member}
    names = f"^(?![0-9])[{key.allowed}]+$"
    says: dict[str, object] = {"type": "object", "patternProperties": {names: member}}
    return says | {"additionalProperties": False, **({"minProperties": 1} if key.required else {})}


def _text(key: Text) -> dict[str, object]:
    says: dict[str, object] = {"type": ["string", "number"] if key.numbers else "string"}
    if key.allowed:
        says["pattern"] = f"^[{key.allowed}]+$"
    elif not key.blank:
        says["minLength"] = 1
    if key.longest:
        says["maxLength"] = key.longest
    return says if key.required else says | {"default": key.default}


def _integer(key: Integer) -> dict[str, object]:
    says: dict[str, object] = {"type": ["integer", "null"] if key.nullable else "integer"}
    lowest = [limit.value for limit in (key.least, key.floor, key.advised) if limit]
    if lowest:
        says["minimum"] = max(lowest)
    if key.most:
        says["maximum"] = key.most.value
    return says | {"default": key.default}


def _list(key: Records) -> dict[str, object]:
    says: dict[str, object] = {"type": "array", "items": _object(key.keys), "maxItems": key.most}
    return says | ({"minItems": key.least} if key.least else {})


_SCHEMAS: Final[Mapping[type[Key], Callable[[Any], dict[str, object]]]] = {
    Text: _text,
    Integer: _integer,
    Flag: lambda key: {"type": "boolean", "default": key.default},
    Bag: lambda key: _object(key.known),
    Group: lambda key: _object(key.keys),
    Records: _list,
    Named: _named_objects,
    Counts: _named_objects,
    Texts: lambda key: {"type": ["string", "array"] if key.alone else "array", "items": {"type": key.items}},
    Choice: _choice,
    Amount: _amount,
    Fraction: _fraction,
}
