"""The token that slurmrestd is shown.

The console's own is of the cluster's settings, or made like those of the users as whom jobs run (`jwt`): by a
command, or with slurmctld's key.  None is made for root, for Slurm's own user or for one of the system, and
what a command prints has to be for whom it was asked for.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import jwt

from jobs.backends.base import Person, Refused, Unreachable
from jobs.backends.slurm import whom
from jobs.backends.slurm.config import JWT, SlurmConfig
from jobs.backends.slurm.rest import minting

EARLY_S: Final = 30
"""A token that was made is made anew so long before it expires."""

USER: Final = "{user}"
"""Stands in the command for whom the token is."""

T = TypeVar("T")

_made: dict[tuple[object, ...], str] = {}


class NoToken(Unreachable):
    """There is none that could be accepted: nothing was asked."""


def headers(config: SlurmConfig, user: str = "") -> dict[str, str]:
    """Who asks, the console or one of the users as whom jobs run; nothing where the socket itself says it."""
    if user:
        return _shown(user, _of_person(config, user))
    if not (config.token or config.jwt_key or config.token_command):
        return {}
    return _shown(config.user, _own(config))


def forget(config: SlurmConfig, user: str = "") -> None:
    """Make another one next time: this one was not accepted."""
    _made.pop(_name(config, user or config.user), None)


def expiry(token: str) -> float | None:
    """When it expires, by what it says of itself; None when it does not say so."""
    ends = _claims(token).get("exp")
    return float(ends) if isinstance(ends, int | float) else None


def check(config: SlurmConfig) -> None:
    """Raise NoToken where no tokens of the users as whom jobs run can be made."""
    if not (config.jwt_key or config.token_command):
        raise NoToken(
            "There is nothing that makes tokens: with identity jwt the console is started with "
            "CONSOLE_SLURM_JWT_KEY or CONSOLE_SLURM_TOKEN_COMMAND (docs/slurm.md)."
        )
    if config.jwt_key:
        _with_key(config, minting.key)
    elif not any(USER in word for word in config.token_command):
        raise NoToken(f"CONSOLE_SLURM_TOKEN_COMMAND has no {USER} in it: whose token is it to make?")


def _shown(user: str, token: str) -> dict[str, str]:
    return {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token}


def _of_person(config: SlurmConfig, user: str) -> str:
    """For a user as whom jobs run."""
    check(config)
    try:
        whom.account(Person("", 0, user), whom.slurm_user(config))
    except Refused as refused:
        raise NoToken(f"No token is made for {user}: {refused.reason.params['why']}") from refused
    return _lasting(config, user)


def _own(config: SlurmConfig) -> str:
    """For the console itself."""
    if config.token:
        ends = expiry(config.token)
        if ends is not None and ends <= time.time():
            raise NoToken(
                f"The token for slurmrestd expired at {datetime.fromtimestamp(ends, UTC):%F %T} UTC"
            )
        return config.token
    is_itself = config.user == pwd.getpwuid(os.geteuid()).pw_name
    if config.jwt_key and (not is_itself or _is_mighty(config)):
        raise NoToken(
            f"No token is made for {config.user} with the key, which is for the console's own user and for "
            "people, and never for root or Slurm's user: give the cluster a `token`."
        )
    if not is_itself and _is_mighty(config):
        raise NoToken(f"No token is made for {config.user}, who may do anything at Slurm.")
    return _lasting(config, config.user)


def _is_mighty(config: SlurmConfig) -> bool:
    """Whether it is asked as one who may be anybody at Slurm, which takes a number for a name too."""
    mighty = {"root", *([whom.slurm_user(config)] if config.identity == JWT else [])}
    return config.user in mighty or config.user.isdigit() or whom.number(config.user) == 0


def _lasting(config: SlurmConfig, user: str) -> str:
    """One that still holds for a while."""
    known = _made.get(_name(config, user), "")
    if known and (expiry(known) or 0) > time.time() + EARLY_S:
        return known
    if config.jwt_key:
        made = _with_key(config, lambda path: minting.minted(path, user))
    else:
        made = _printed(config, user)
    _made[_name(config, user)] = made
    return made


def _name(config: SlurmConfig, user: str) -> tuple[object, ...]:
    return config.jwt_key, config.token_command, config.configuration, user


def _with_key(config: SlurmConfig, do: Callable[[Path], T]) -> T:
    try:
        return do(Path(config.jwt_key))
    except minting.NoKey as error:
        raise NoToken(str(error)) from error


def _printed(config: SlurmConfig, user: str) -> str:
    """By the command, which is given the name as a word, and no shell."""
    words = [word.replace(USER, user) for word in config.token_command]
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
    if (expiry(token) or time.time()) < time.time():
        raise NoToken(f"The command that makes tokens for slurmrestd printed one for {user} that has expired")
    if config.identity == JWT and _claims(token).get("sun") != user:
        raise NoToken(f"The command that makes tokens for slurmrestd printed none for {user}")
    return token


def _claims(token: str) -> dict[str, Any]:
    """What it says of itself; that it is true is Slurm's to find out."""
    try:
        return dict(jwt.decode(token, options={"verify_signature": False}))
    except jwt.InvalidTokenError:
        return {}
