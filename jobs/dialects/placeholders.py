"""Secrets leave the text: a placeholder `$SECRET:name` stands where a value stood.

The same form may be written by hand to name a secret that the console already keeps.  Places are mounts
and registry files: a password inside a URI is taken out the same way, so that whoever uses such a URI
calls `fill` with the values first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

MARK: Final = "$SECRET:"

KEPT: Final = "asset."
"""So begin the names of passwords that belong to an asset, and not to the person who submits."""

_REFERENCE: Final = re.compile(r"\$SECRET:(?P<name>[A-Za-z0-9_.\-]{1,200})")
_SECRETIVE: Final = re.compile(
    r"(?:^|_)(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|PWD|SECRET|SECRET_KEY|API_?KEY|ACCESS_KEY|ACCESS_?KEY_SECRET"
    r"|PRIVATE_KEY|CREDENTIALS?)$"
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PASSWORD: Final = re.compile(
    r"(?P<before>[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@\"']*:)(?P<password>[^\s/@\"']+)(?=@)"
)
_ANYWHERE: Final = re.compile(r"(?<=[A-Za-z0-9+.\-])://[^\s/:@\"']*+:(?P<password>[^\s/@\"']++)@")
"""The same anywhere in a text, without looking at any letter twice."""


def placeholder(name: str) -> str:
    """Return the placeholder of the secret called `name`."""
    return MARK + name


def reference(value: str) -> str | None:
    """Return the name of the secret that `value` as a whole stands for."""
    match = _REFERENCE.fullmatch(value)
    return match["name"] if match else None


def list_references(text: str) -> tuple[str, ...]:
    """Return the names of all secrets that `text` refers to, each once."""
    return tuple(dict.fromkeys(match["name"] for match in _REFERENCE.finditer(text)))


def looks_secret(name: str) -> bool:
    """Return whether a variable of this name surely holds something secret (…TOKEN, …PASSWORD, apiKey …)."""
    return bool(_SECRETIVE.search(_HUMP.sub("_", name).replace("-", "_").upper()))


def split_password(uri: str, name: str) -> tuple[str, str]:
    """Return a URI with a placeholder for its password, and the password ("" when there is none to take)."""
    match = _PASSWORD.match(uri)
    if not match or reference(match["password"]):
        return uri, ""
    start, end = match.span("password")
    return uri[:start] + placeholder(name) + uri[end:], match["password"]


def holds_password(text: str) -> bool:
    """Return whether a URI with a password stands anywhere in `text`."""
    match = _ANYWHERE.search(text)
    return bool(match and "$" not in match["password"])


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with the placeholders of the secrets in `values` replaced by their values."""
    return _REFERENCE.sub(lambda match: values.get(match["name"], match[0]), text)


def fill_json(text: str, values: Mapping[str, str]) -> str:
    """Like `fill`, for the text of a JSON document."""
    written = {name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()}
    return fill(text, written)
