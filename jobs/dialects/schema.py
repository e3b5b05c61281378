"""A dialect's rules as JSON Schema 2020-12, for completion and hover in an editor.

It describes what one should write; what is merely tolerated (numbers in quotes, values that are raised)
is left to `parse`, which says so in notes.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    """The schema of a whole text."""
    return {"$schema": DRAFT, "title": title, **_object(keys)}


def _object(keys: Iterable[AnyKey]) -> dict[str, object]:
    every = tuple(keys)
    return {
        "type": "object",
        "properties": {key.key: _property(key) for key in every},
        "required": [key.key for key in every if key.required],
    }


def _property(key: AnyKey) -> dict[str, object]:
    about: dict[str, object] = {"description": key.help, "$comment": key.source}
    if isinstance(key, Text):
        return about | _text(key)
    if isinstance(key, Integer):
        return about | _integer(key)
    if isinstance(key, Flag):
        return about | {"type": "boolean", "default": key.default}
    if isinstance(key, (Bag, Group)):
        return about | _object(key.known if isinstance(key, Bag) else key.keys)
    if isinstance(key, Records):
        return about | _list(key)
    if isinstance(key, Named):
        return about | _named(key)
    return about | _word(key)


def _word(key: Choice | Amount | Fraction | Texts) -> dict[str, object]:
    """What is written as one word or number, or as a list of words."""
    if isinstance(key, Texts):
        return {"type": ["string", "array"] if key.alone else "array", "items": {"type": key.items}}
    if isinstance(key, Choice):
        word: dict[str, object] = {"type": "string", "examples" if key.open else "enum": list(key.meanings)}
        return word | ({"default": key.default} if key.default else {})
    if isinstance(key, Amount):
        kinds: object = ["string", "number"] if key.bare else "string"
        return {"type": kinds, "pattern": _AMOUNTS[key.quantity]}
    says: dict[str, object] = {"type": "number"}
    for side, bound in (("minimum", key.least), ("maximum", key.most)):
        if bound:
            says[side] = float(bound[0])
    return says


def _named(key: Named) -> dict[str, object]:
    """An object with names of the person's own."""
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
