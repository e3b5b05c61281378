"""Secrets among a cluster's settings: encrypted where they are kept, and never shown again.

They are told by their names.  What stands in the form for one that is kept is a mask, and the mask that comes
back leaves it as it is, unless what stands beside it would send it somewhere else: whoever may change an
address but was never told the secret is not to learn it that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from quotas import encryption

NAMES: Final = frozenset({"token", "private_key"})
WHERE: Final = frozenset({"url", "host", "port", "host_key", "proxy"})
"""Where a secret is sent, and by what its receiver is known."""
MARK: Final = "encrypted:"
MASK: Final = "********"


class EnterAgain(ValueError):
    """Secrets that only a mask stands for would be sent somewhere else; `names` says which they are."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def keep(settings: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are kept, from what an admin wrote, who was shown those of `before`.

    Raises EnterAgain where they lead elsewhere than before, with a secret that was not entered.
    """
    masked = [path for path, value in _leaves(settings) if path.split("/")[-1] in NAMES and value == MASK]
    if masked and _leads(settings) != _leads(before):
        raise EnterAgain(masked)
    return _kept(settings, before)


def _leads(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in _leaves(settings) if path.split("/")[-1] in WHERE}


def _leaves(settings: Mapping[str, Any], below: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{below}{name}/")
        else:
            yield f"{below}{name}", value


def _kept(settings: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in settings.items():
        old = before.get(name)
        if isinstance(value, Mapping):
            kept[name] = _kept(value, old if isinstance(old, Mapping) else {})
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
