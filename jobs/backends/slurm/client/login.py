"""Slurm's programs on a login node, by SSH.

A program and its arguments go as one line that the user's shell there takes apart, each word quoted; a script
goes by stdin.  The node is known by its host key, and nothing of this machine's own SSH settings counts.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?")
_USER: Final = re.compile(r"[a-z_][a-z0-9_.-]*")
_HIDDEN: Final = ("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY")
"""sbatch hands on what it finds; from where somebody signed in is no job's business."""


class NoLogin(OSError):
    """Nobody was signed in, so nothing was run."""


class Lost(Exception):
    """The connection ended while a program ran."""


@dataclass(frozen=True, slots=True)
class Login:
    """A login node, and as whom to sign in there."""

    host: str
    user: str
    private_key: str = field(repr=False)
    host_key: str
    port: int = 22

    @classmethod
    def from_settings(cls, settings: Any) -> Login | None:
        """From a cluster's settings, None for none.  TypeError or ValueError for what makes no sense."""
        if not settings:
            return None
        if not isinstance(settings, Mapping):
            raise TypeError("login is an object with host, user, private_key and host_key")
        port: object = settings.get("port", 22)
        if not isinstance(port, int) or not 1 <= port <= 65535:
            raise ValueError("login: port is a number from 1 to 65535")
        made = cls(**settings)
        if not _HOST.fullmatch(made.host) or not _USER.fullmatch(made.user):
            raise ValueError("login: host and user are plain names")
        made.keys()
        return made

    def keys(self) -> tuple[Any, Any]:
        """Our private key, and the node's public one."""
        import asyncssh  # noqa: PLC0415  # only where somebody signs in

        try:
            return asyncssh.import_private_key(self.private_key), asyncssh.import_public_key(self.host_key)
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
            raise ValueError(
                "login: private_key and host_key are OpenSSH keys, without a passphrase"
            ) from None

    @property
    def address(self) -> str:
        """As people write it."""
        return f"{self.user}@{self.host}:{self.port}"


def run(
    login: Login, words: Sequence[str], environment: Mapping[str, str], stdin: str, timeout_s: float
) -> tuple[int, bytes, bytes]:
    """Run a program there: its exit code, and what it wrote.  Raises NoLogin, Lost or TimeoutExpired."""
    return asyncio.run(_run(login, line(words, environment), stdin, timeout_s))


def line(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """What the shell there is given."""
    hidden = [part for name in _HIDDEN for part in ("-u", name)]
    variables = [f"{name}={value}" for name, value in environment.items()]
    return shlex.join(["env", *hidden, *variables, *words])


async def _run(login: Login, told: str, stdin: str, timeout_s: float) -> tuple[int, bytes, bytes]:
    import asyncssh  # noqa: PLC0415

    ours, theirs = login.keys()
    try:
        connection = await asyncio.wait_for(
            asyncssh.connect(
                login.host,
                login.port,
                username=login.user,
                client_keys=[ours],
                known_hosts=([theirs], [], []),
                config=None,
                agent_path=None,
                preferred_auth="publickey",
                x509_trusted_certs=None,
                x509_trusted_cert_paths=[],
            ),
            timeout_s,
        )
    except (OSError, asyncssh.Error, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise NoLogin(f"no SSH connection to {login.address}: {why}") from error
    async with connection:
        try:
            done = await asyncio.wait_for(
                connection.run(told, input=stdin.encode(), encoding=None, check=False), timeout_s
            )
        except TimeoutError:
            connection.abort()
            raise subprocess.TimeoutExpired(told, timeout_s) from None
        except (OSError, asyncssh.Error) as error:
            raise Lost(str(error)) from error
    if done.exit_status is None or done.exit_status < 0:
        raise Lost(f"the SSH connection to {login.address} ended")
    return done.exit_status, _bytes(done.stdout), _bytes(done.stderr)


def _bytes(told: object) -> bytes:
    return told if isinstance(told, bytes) else b""
