"""Names that the rules allow, each its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def free(name: str, taken: Collection[str]) -> str:
    """`name`, with a number behind it when it is taken."""
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def renamed(members: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    """`members` in their order, those of `names` under their new ones."""
    return {names.get(name, name): value for name, value in members.items()}
