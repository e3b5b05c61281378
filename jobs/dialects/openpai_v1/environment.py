"""`jobEnvs` → environment, secret references, and the two names that mean more than a variable."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final, Protocol

from jobs.dialects import placeholders
from jobs.dialects.openpai_v1 import keys
from jobs.dialects.record import Record, kind_of
from jobs.dialects.spans import escape
from jobs.spec import ENV_NAME, SecretRef

_USABLE: Final = re.compile(ENV_NAME)
_ACCEPTED: Final = re.compile(r"[A-Za-z0-9_]")


class Taker(Protocol):
    """Where secrets and extras go."""

    extras: dict[str, object]

    def secret(self, name: str, value: str, pointer: str, instead: str) -> None:
        """Take a secret out of the text."""


@dataclass(slots=True)
class Environment:
    """The variables, and the flags `isDebug` and `paiAzRDMA`."""

    plain: dict[str, str] = field(default_factory=dict)
    secret: dict[str, SecretRef] = field(default_factory=dict)
    is_debug: bool = False
    rdma: bool = False


def read(job: Record, taken: Taker) -> Environment:
    """Everything in `jobEnvs`.

    OpenPAI writes any value as text; here objects and lists become compact JSON.  A value that was no
    text is kept as it was in the extras, for export.
    """
    env = Environment()
    base = job.at(keys.JOB_ENVS.key)
    for name, value in job.bag(keys.JOB_ENVS).items():
        pointer = f"{base}/{escape(name)}"
        if not _ACCEPTED.search(name):
            job.findings.problem("bad_key", base, keys.OPENPAI, key=name)
        elif name == keys.IS_DEBUG.key and value is True:
            env.is_debug = True
        elif name == keys.RDMA.key and value is True:
            env.rdma = True
        elif not is_usable(name):
            taken.extras[pointer] = value
            job.findings.note("env_name_unusable", pointer, name=name)
        else:
            _variable(job, env, taken, name, value)
    return env


def _variable(job: Record, env: Environment, taken: Taker, name: str, value: object) -> None:
    """One ordinary variable."""
    pointer = f"{job.at(keys.JOB_ENVS.key)}/{name}"
    text = as_text(value)
    known = placeholders.reference(text)
    if known:
        env.secret[name] = SecretRef(name=known)
        return
    if text and placeholders.looks_secret(name):
        env.secret[name] = SecretRef(name=name)
        taken.secret(name, text, pointer, placeholders.placeholder(name))
        job.findings.note("secret_taken", pointer, key=name, name=name)
        return
    if not isinstance(value, str):
        taken.extras[pointer] = value
    if isinstance(value, (dict, list)):
        job.findings.note("env_value_converted", pointer, name=name, got=kind_of(value))
    env.plain[name] = text


def is_usable(name: str) -> bool:
    """Whether a shell can expand a variable of this name."""
    return bool(_USABLE.fullmatch(name))


def as_text(value: object) -> str:
    """A JSON value as the text that a variable can hold; null is empty."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
