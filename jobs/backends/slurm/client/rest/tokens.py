"""The token that slurmrestd is shown.

A command of whoever runs the console prints it: the console's own, and one for each user as whom jobs run
(`jwt`).  None is asked for on behalf of root, of Slurm's own user or of one of the system, and what the
command prints has to be for whom it was asked for.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from typing import Any, Final

import jwt

from jobs.backends.base import Person, Refused, Unreachable
from jobs.backends.slurm.config import JWT, SlurmConfig
from jobs.backends.slurm.identity import whom

EARLY_S: Final = 30
"""A token that was made is made anew so long before it expires."""

USER: Final = "{user}"
"""Stands in the command for whom the token is."""

URL: Final = "{url}"
"""Stands in the command for where slurmrestd listens, where clusters have keys of their own."""

_made: dict[tuple[object, ...], str] = {}


class NoToken(Unreachable):
    """There is none that could be accepted: nothing was asked."""


def headers(config: SlurmConfig, user: str = "") -> dict[str, str]:
    """Who asks, the console or one of the users as whom jobs run; nothing where the socket itself says it."""
    if user:
        return _shown(user, _of_person(config, user))
    return _shown(config.user, _own(config)) if config.token_command else {}


def forget(config: SlurmConfig, user: str = "") -> None:
    """Make another one next time: this one was not accepted."""
    _made.pop(_name(config, user or config.user), None)


def expiry(token: str) -> float | None:
    """When it expires, by what it says of itself; None when it does not say so."""
    ends = _claims(token).get("exp")
    return float(ends) if isinstance(ends, int | float) else None


def check(config: SlurmConfig) -> None:
    """Raise NoToken where no tokens of the users as whom jobs run can be made."""
    if not config.token_command:
        raise NoToken(
            "There is nothing that makes tokens: with identity jwt the console is started with "
            "CONSOLE_SLURM_TOKEN_COMMAND (docs/slurm.md)."
        )
    if not any(USER in word for word in config.token_command):
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
    if config.user != pwd.getpwuid(os.geteuid()).pw_name and _is_mighty(config):
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
    made = _made[_name(config, user)] = _printed(config, user)
    return made


def _name(config: SlurmConfig, user: str) -> tuple[object, ...]:
    return config.token_command, config.url, config.configuration, user


def _printed(config: SlurmConfig, user: str) -> str:
    """By the command, whose words are given no shell."""
    words = [word.replace(USER, user).replace(URL, config.url) for word in config.token_command]
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
