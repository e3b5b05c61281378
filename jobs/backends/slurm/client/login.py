"""Programs on a login node, by SSH.

A program and its arguments are sent as one line for the user's shell, each word quoted, and a script by
stdin. The node is identified by its host key; this machine's own SSH settings are not used.
"""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field

_HOST: Final = r"^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$"
_USER: Final = r"^[a-z_][a-z0-9_.-]*$"
_HIDDEN: Final = ("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY")
"""Variables that sbatch would pass to the job: they tell where the login came from."""


class NoLogin(OSError):
    """The login failed, so nothing was run."""


class ConnectionLost(Exception):
    """The connection ended while a program ran."""


@dataclass(frozen=True, slots=True)
class Login:
    """A login node, and the user and key of the login."""

    host: Annotated[str, Field(pattern=_HOST)]
    user: Annotated[str, Field(pattern=_USER)]
    private_key: str = field(repr=False)
    host_key: str
    port: Annotated[int, Field(strict=True, ge=1, le=65535)] = 22

    def keys(self) -> tuple[Any, Any]:
        """Return the console's private key, and the node's public one."""
        import asyncssh  # noqa: PLC0415  # only with a login node

        try:
            return asyncssh.import_private_key(self.private_key), asyncssh.import_public_key(self.host_key)
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
            raise ValueError(
                "login: private_key and host_key are OpenSSH keys, without a passphrase"
            ) from None

    @property
    def address(self) -> str:
        """Return `user@host:port`."""
        return f"{self.user}@{self.host}:{self.port}"


def run(
    login: Login, words: Sequence[str], environment: Mapping[str, str], stdin: str, timeout_s: float
) -> tuple[int, bytes, bytes]:
    """Run a program; return its exit code, stdout and stderr.

    Raises NoLogin, ConnectionLost or TimeoutExpired.
    """
    return asyncio.run(_run(login, build_command(words, environment), stdin, timeout_s))


def build_command(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the command line for the shell there."""
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
            raise ConnectionLost(str(error)) from error
    if done.exit_status is None or done.exit_status < 0:
        raise ConnectionLost(f"the SSH connection to {login.address} ended")
    return done.exit_status, _bytes(done.stdout), _bytes(done.stderr)


def _bytes(told: object) -> bytes:
    return told if isinstance(told, bytes) else b""
