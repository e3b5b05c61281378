"""Masking of secrets in texts that leave the console: known values, and what looks like a secret."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from django.conf import settings

from console.configuration.config import env
from console.configuration.logging import without_secrets
from console.management.reencryption import COLUMNS, decrypt_values
from jobs.models import Draft, DraftVersion
from quotas.audit import MASK, SECRET_NAME, mask_text

SHORTEST: Final = 6
"""Characters.  A shorter value stands in any text by chance."""

SHORTEST_LINE: Final = 16
"""Likewise of one line of a value of several."""

_DRAFTS: Final = (Draft, DraftVersion)

MOST_ROWS: Final = 1000
"""So many of the newest rows of each encrypted column are read."""

_PEM: Final = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(-----END \1-----|\Z)", re.DOTALL)
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}")
_ASSIGNED: Final = re.compile(
    rf"(?i)([\w-]*(?:{SECRET_NAME.pattern})[\w-]*[\"']?\s*[:=]\s*)(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;&}}\]\"']+)"
)


class SecretMasker:
    """Masks every known secret, in whatever way it is quoted, and what is named like one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret) if len(form) >= SHORTEST}
        self._forms = sorted(forms, key=len, reverse=True)

    def mask(self, text: str) -> str:
        """Return the text without secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        text = _PEM.sub(MASK, mask_text(without_secrets(text)))
        return _ASSIGNED.sub(rf"\1{MASK}", _BEARER.sub(rf"\1 {MASK}", text))

    def mask_leaves(self, value: Any) -> Any:
        """Return a JSON value with every text in it masked."""
        if isinstance(value, dict):
            return {self.mask(name): self.mask_leaves(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.mask_leaves(each) for each in value]
        return self.mask(value) if isinstance(value, str) else value


def _forms(secret: str) -> Iterator[str]:
    secret = secret.strip()
    yield from (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe=""))
    if "\n" in secret:
        yield from (line.strip() for line in secret.splitlines() if len(line) >= SHORTEST_LINE)


def find_secrets() -> set[str]:
    """Return the secrets that this console knows: of its environment, its keys and its database."""
    return {*_environment(), *_keys(), *_database()}


def _environment() -> Iterator[str]:
    """Variables that are secrets by their kind, or by their name whosever they are."""
    for name, value in os.environ.items():
        variable = env.variables.get(name)
        if (variable and variable.kind.startswith("secret")) or SECRET_NAME.search(name):
            yield from _parts(value)
    for name in env.variables:
        path = os.environ.get(f"{name}_FILE")
        if path:
            yield from _parts(_read(Path(path).expanduser()))
    database = settings.DATABASES["default"]
    yield from _parts(str(database.get("PASSWORD", "")))
    yield from _parts(settings.REDIS_URL)


def _parts(value: str) -> Iterator[str]:
    """Yield a secret, and what is secret in it if it is a URL or JSON."""
    yield value
    with suppress(ValueError):
        yield urlsplit(value).password or ""
    with suppress(ValueError):
        yield from _leaves(json.loads(value))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str):
        yield value


def _keys() -> Iterator[str]:
    """Lines of the key files, but not the installation's name, which is part of jobs' names."""
    for path in Path(settings.CONSOLE_HOME, "keys").glob("[!.]*"):
        if path.is_file() and path.name != "installation":
            text = _read(path)
            yield text
            yield from text.splitlines()


def _database() -> Iterator[str]:
    for column in COLUMNS:
        for _pk, stored in column.stored_values().order_by("-pk")[:MOST_ROWS]:
            for secret in decrypt_values(stored):
                # Parts of a draft are words that stand in any log; the whole of it is nobody else's.
                yield from (secret,) if column.model in _DRAFTS else _parts(secret)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
