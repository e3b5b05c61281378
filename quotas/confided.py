"""Secrets among a cluster's settings: encrypted where they are kept, and never shown again.

They are told by their names.  What stands in the form for one that is kept is a mask, and the mask that comes
back leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from quotas import encryption

NAMES: Final = frozenset({"token", "private_key"})
MARK: Final = "encrypted:"
MASK: Final = "********"


def keep(settings: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are kept, from what an admin wrote, who was shown those of `before`."""
    kept: dict[str, Any] = {}
    for name, value in settings.items():
        old = before.get(name)
        if isinstance(value, Mapping):
            kept[name] = keep(value, old if isinstance(old, Mapping) else {})
        elif name not in NAMES or not isinstance(value, str) or not value:
            kept[name] = value
        elif value != MASK:
            kept[name] = MARK + encryption.encrypt(value)
        elif old:
            kept[name] = old
    return kept


def shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as an admin sees them."""
    return _each(settings, lambda _value: MASK)


def opened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a backend needs them.  Raises ValueError when a secret can no longer be read."""
    return _each(settings, _open)


def _each(settings: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    return {
        name: _each(value, change)
        if isinstance(value, Mapping)
        else change(value)
        if name in NAMES and isinstance(value, str) and value
        else value
        for name, value in settings.items()
    }


def _open(value: str) -> str:
    if not value.startswith(MARK):
        return value
    try:
        return encryption.decrypt(value.removeprefix(MARK))
    except encryption.Unreadable:
        raise ValueError("a secret among them can no longer be read: enter it again") from None
