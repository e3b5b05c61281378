"""Tokens for slurmrestd.

A command from the console's configuration prints them: the console's own, and with identity `jwt` one for
each user as whom jobs run.  None is requested for root, Slurm's own user or one of the system, and a printed
token has to be for the requested user.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from functools import lru_cache
from typing import Any, Final

import jwt

from jobs.backends.base import Person, Refused, Unreachable
from jobs.backends.slurm.config import JWT, SlurmConfig
from jobs.backends.slurm.identity import unix_users

EARLY_S: Final = 30
"""A token is replaced so long before it expires."""

USER: Final = "{user}"
"""Placeholder of the token's user in the command."""

URL: Final = "{url}"
"""Placeholder of slurmrestd's address in the command, where clusters have keys of their own."""

_tokens: dict[tuple[object, ...], str] = {}


class NoToken(Unreachable):
    """There is no valid token; no request was sent."""


def make_headers(config: SlurmConfig, user: str = "") -> dict[str, str]:
    """Return the headers for the console or one of its users, {} where a UNIX socket tells the user."""
    if user:
        return _headers(user, _token_of_user(config, user))
    return _headers(config.user, _own_token(config)) if config.token_command else {}


def forget(config: SlurmConfig, user: str = "") -> None:
    """Drop a token that was not accepted."""
    _tokens.pop(_cache_key(config, user or config.user), None)


@lru_cache(maxsize=128)  # each request asks
def expiry(token: str) -> float | None:
    """Return when a token expires, None if it does not tell."""
    ends = _claims(token).get("exp")
    return float(ends) if isinstance(ends, int | float) else None


def check(config: SlurmConfig) -> None:
    """Raise NoToken where there can be no tokens for users."""
    if not config.token_command:
        raise NoToken(
            "There is nothing that makes tokens: with identity jwt the console is started with "
            "CONSOLE_SLURM_TOKEN_COMMAND (docs/slurm.md)."
        )
    if not any(USER in word for word in config.token_command):
        raise NoToken(f"CONSOLE_SLURM_TOKEN_COMMAND has no {USER} in it: whose token is it to make?")


def _headers(user: str, token: str) -> dict[str, str]:
    return {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token}


def _token_of_user(config: SlurmConfig, user: str) -> str:
    """Return a token for a user as whom jobs run."""
    check(config)
    try:
        unix_users.resolve_account(Person("", 0, user), unix_users.slurm_user(config))
    except Refused as refused:
        raise NoToken(f"No token is made for {user}: {refused.reason.params['why']}") from refused
    return _valid_token(config, user)


def _own_token(config: SlurmConfig) -> str:
    """Return the console's own token."""
    if config.user != pwd.getpwuid(os.geteuid()).pw_name and _is_privileged(config):
        raise NoToken(f"No token is made for {config.user}, who may do anything at Slurm.")
    return _valid_token(config, config.user)


def _is_privileged(config: SlurmConfig) -> bool:
    """Return whether the console's user may act as any user at Slurm, which accepts a number as a name."""
    privileged = {"root", *([unix_users.slurm_user(config)] if config.identity == JWT else [])}
    return config.user in privileged or config.user.isdigit() or unix_users.find_uid(config.user) == 0


def _valid_token(config: SlurmConfig, user: str) -> str:
    """Return a token that is valid for a while."""
    known = _tokens.get(_cache_key(config, user), "")
    if known and (expiry(known) or 0) > time.time() + EARLY_S:
        return known
    made = _tokens[_cache_key(config, user)] = _run_command(config, user)
    return made


def _cache_key(config: SlurmConfig, user: str) -> tuple[object, ...]:
    return config.token_command, config.url, config.configuration, user


def _run_command(config: SlurmConfig, user: str) -> str:
    """Return the command's token.  It is run without a shell."""
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
        # without its output, which may have a token
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
    """Return the claims of a token, which Slurm verifies."""
    try:
        return dict(jwt.decode(token, options={"verify_signature": False}))
    except jwt.InvalidTokenError:
        return {}
