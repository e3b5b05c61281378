"""Names of jobs: labels of DNS that begin with a letter, since pods and services are called after them."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 63
ALLOWED: Final = r"a-z0-9\-"
_LABEL: Final = re.compile(r"[a-z](?:[a-z0-9\-]*[a-z0-9])?")


def fits(name: str) -> bool:
    """Whether the cluster takes the name (DNS label of RFC 1035, as the operator's webhook has it)."""
    return len(name) <= LONGEST and bool(_LABEL.fullmatch(name))


def proposed(name: str) -> str:
    """The nearest name that the cluster takes."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    started = plain if plain[:1].isalpha() else f"job-{plain}"
    return started[:LONGEST].strip("-") or "job"
