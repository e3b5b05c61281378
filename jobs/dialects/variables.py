"""Environment variables of a job: which of them a shell can use, which are secrets, and values as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.fields import CONSOLE
from jobs.dialects.findings import Findings
from jobs.spec import ENV_NAME, SecretRef

MOST: Final = 2000
"""Variables of one job."""

_USABLE: Final = re.compile(ENV_NAME)


@dataclass(slots=True)
class Variables:
    """The variables of a job; those of secrets by reference."""

    plain: dict[str, str] = field(default_factory=dict)
    secret: dict[str, SecretRef] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return the number of variables."""
        return len(self.plain) + len(self.secret)


def collect(pairs: Iterable[tuple[str, str, object]], findings: Findings) -> Variables:
    """Return the variables given as (pointer, name, value), of equal names the last.

    Secrets have been taken out before (`withhold`): placeholders stand for them.
    """
    found = Variables()
    for count, (pointer, name, value) in enumerate(pairs):
        if count == MOST:
            findings.problem("too_many", pointer, CONSOLE, key="environment", count=count + 1, most=MOST)
            break
        if not is_usable(name):
            findings.note("env_name_unusable", pointer, name=name)
            continue
        if not isinstance(value, str):
            findings.note("env_value_converted", pointer, name=name)
        text = as_text(value)
        secret = placeholders.reference(text)
        found.plain.pop(name, None)
        found.secret.pop(name, None)
        if secret:
            found.secret[name] = SecretRef(name=secret)
        else:
            found.plain[name] = text
    return found


def is_usable(name: str) -> bool:
    """Return whether a shell can expand a variable of this name."""
    return bool(_USABLE.fullmatch(name))


def as_text(value: object) -> str:
    """Return a JSON value as the text that a variable can hold; null is empty."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
