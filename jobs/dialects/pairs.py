"""`k=v,k=v` in one string, as vendors' command lines and consoles write maps."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping

from jobs.dialects.variables import as_text


def parse(text: str) -> dict[str, str]:
    """Read `k=v,k=v`, or a JSON object in a string.

    A pair with commas may stand in quotes, `"k=a,b"`, as in CSV; without, a part that has no `=` belongs
    to the value before it.
    """
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return {str(name): as_text(item) for name, item in value.items()}
    found: dict[str, list[str]] = {}
    last: list[str] | None = None
    for part in _split(text):
        name, equals, value = part.partition("=")
        if equals and name.strip():
            last = found[name.strip()] = [value]
        elif last is not None:
            last.append(part)
    return {name: ",".join(values) for name, values in found.items()}


def to_text(pairs: Mapping[str, str]) -> str:
    """Return `pairs` in one string; those with commas in quotes."""
    return ",".join(_quote(f"{name}={value}") for name, value in pairs.items())


def _split(text: str) -> list[str]:
    if '"' in text:
        try:
            return next(csv.reader([text]), [])
        except csv.Error:
            pass
    return text.split(",")


def _quote(pair: str) -> str:
    if "," not in pair and not pair.startswith('"'):
        return pair
    return '"' + pair.replace('"', '""') + '"'
