"""The token that slurmrestd is shown: of the cluster's settings, or made by a command."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from datetime import UTC, datetime
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.config import SlurmConfig

EARLY_S: Final = 30
"""A token made by a command is made anew so long before it expires."""

_made: dict[tuple[tuple[str, ...], str], str] = {}


class NoToken(Unreachable):
    """There is none that could be accepted: nothing was asked."""


def headers(config: SlurmConfig) -> dict[str, str]:
    """Who asks; nothing where the socket itself says it."""
    if not config.token and not config.token_command:
        return {}
    return {"X-SLURM-USER-NAME": config.user, "X-SLURM-USER-TOKEN": _token(config)}


def expiry(token: str) -> float | None:
    """When it expires, by what it says of itself; None when it does not say so."""
    parts = token.split(".")
    try:
        told = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(told["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _token(config: SlurmConfig) -> str:
    if config.token:
        ends = expiry(config.token)
        if ends is not None and ends <= time.time():
            raise NoToken(
                f"The token for slurmrestd expired at {datetime.fromtimestamp(ends, UTC):%F %T} UTC"
            )
        return config.token
    known = _made.get((config.token_command, config.user), "")
    if known and (expiry(known) or 0) > time.time() + EARLY_S:
        return known
    made = _make(config)
    _made[config.token_command, config.user] = made
    return made


def _make(config: SlurmConfig) -> str:
    words = [word.replace("{user}", config.user) for word in config.token_command]
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
    if config.configuration:
        environ["SLURM_CONF"] = config.configuration
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=config.timeout_s,
            env=environ,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        # Not what it printed: that may be a token.
        raise NoToken(
            f"The command that makes tokens for slurmrestd failed: {type(error).__name__}"
        ) from None
    token = done.stdout.strip().removeprefix("SLURM_JWT=")
    if token.count(".") != 2 or any(character.isspace() for character in token):
        raise NoToken("The command that makes tokens for slurmrestd printed no token")
    return token
