"""Secrets among a cluster's settings: stored encrypted, and never shown again.

They are recognised by their names.  A form shows a mask in place of a stored secret, and a mask that comes
back leaves the secret as it is, unless other settings would send it somewhere else: a person who may change
an address but does not know the secret must not learn it that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from quotas import encryption

NAMES: Final = frozenset({"token", "private_key", "secret_key"})
WHERE: Final = frozenset({"url", "host", "port", "host_key", "proxy", "ca"})
"""Settings that decide where a secret is sent, and how its receiver is recognised."""
STORE_KEY: Final = "secret_key"
STORE: Final = frozenset({"bucket", "endpoint", "region"})
"""Settings beside the key of an object store that decide where that key is sent."""
MARK: Final = "encrypted:"
MASK: Final = "********"


class SecretsNeeded(ValueError):
    """Masked secrets would be sent somewhere else; `names` are theirs."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def encrypt(settings: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they are stored, from what an admin wrote, who was shown those of `before`.

    Raises EnterAgain where they lead elsewhere than before, with a secret that was not entered.
    """
    masked = [path for path, value in _leaves(settings) if path.split("/")[-1] in NAMES and value == MASK]
    moved = [path for path in masked if _destinations(settings, path) != _destinations(before, path)]
    if moved:
        raise SecretsNeeded(moved)
    return _encrypt(settings, before)


def _destinations(settings: Mapping[str, Any], secret: str) -> dict[str, Any]:
    """Return the settings that decide where the secret at a path is sent, by their paths."""
    around, _, name = secret.rpartition("/")
    if name == STORE_KEY:
        beside = {f"{around}/{each}" for each in STORE}
        return {path: value for path, value in _leaves(settings) if path in beside}
    return {path: value for path, value in _leaves(settings) if path.split("/")[-1] in WHERE}


def _leaves(settings: Mapping[str, Any], below: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{below}{name}/")
        else:
            yield f"{below}{name}", value


def _encrypt(settings: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    encrypted: dict[str, Any] = {}
    for name, value in settings.items():
        old = before.get(name)
        if isinstance(value, Mapping):
            encrypted[name] = _encrypt(value, old if isinstance(old, Mapping) else {})
        elif name not in NAMES or not isinstance(value, str) or not value:
            encrypted[name] = value
        elif value != MASK:
            encrypted[name] = MARK + encryption.encrypt(value)
        elif old:
            encrypted[name] = old
    return encrypted


def mask(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as an admin sees them."""
    return _each(settings, lambda _value: MASK)


def decrypt(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a backend needs them.  Raises ValueError if a secret can no longer be read."""
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
