"""The credential server beside a replica in its machine's own network, which asks the console each time.

It is a process of the wrapper's user, so that it reaches the console's socket; the job's user alone is
admitted.  A replica with a network of its own asks at the service address of its job instead.
"""

from __future__ import annotations

import http.client
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, Self

from jobs.node.command import Command
from jobs.node.credential_server import AWS, MAX_FILE, CredentialServer
from jobs.node.network.service import ALIBABA_PATH, ATTEMPT, AWS_PATH, REPLICA, SOCKET
from jobs.node.sandbox import role_credentials
from jobs.node.wrapper.companions import Companion
from jobs.node.wrapper.launch_arguments import LaunchArguments

NAME: Final = "credentials"
MEMORY_MIB: Final = 256
_ANSWER_S: Final = 30.0


class _UnixConnection(http.client.HTTPConnection):
    """A connection to the console's socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("job-console", timeout=_ANSWER_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class _AskingServer(CredentialServer):
    """A server whose answers are the console's; `identity` are the headers that say which replica asks."""

    def __init__(
        self, provider: str, token: str, uid: int, console: Path, identity: Mapping[str, str]
    ) -> None:
        super().__init__(provider, console, token, uid)
        self._identity = identity

    def read(self) -> bytes | None:
        """Return the console's answer; None where it gives no credentials."""
        connection = _UnixConnection(self.source)
        path = AWS_PATH if self.provider == AWS else ALIBABA_PATH
        try:
            connection.request("GET", path, headers=dict(self._identity))
            answer = connection.getresponse()
            return answer.read(MAX_FILE) if answer.status == HTTPStatus.OK else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class CredentialCompanion:
    """A server that listens already; `variables` tell the replica's programs of it.

    `folder` is the descriptor of that of the console's socket, which the wrapper does not see any more once
    it has entered the replica's file system.
    """

    server: CredentialServer
    folder: int
    variables: Mapping[str, str]

    @classmethod
    def open(cls, launch: LaunchArguments) -> Self:
        """Return the server of a replica that needs one."""
        known = str(launch.secrets[role_credentials.SECRET])
        provider = str(launch.secrets[role_credentials.PROVIDER])
        identity = {
            ATTEMPT.decode(): launch.plan.key,
            REPLICA.decode(): str(launch.place.position),
            "Authorization": known,
        }
        token = known if provider == AWS else secrets.token_urlsafe(32)
        console = launch.path.parents[2] / SOCKET
        folder = os.open(console.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        path = Path(f"/proc/self/fd/{folder}", console.name)
        server = _AskingServer(provider, token, launch.owner[0], path, identity)
        variables = role_credentials.variables_beside(provider, server.url, launch.room().work)
        return cls(server, folder, variables)

    def companion(self) -> Companion:
        """Return what serves; it ends with the replica."""
        program = Command(
            (), {}, "/", instead=self.server.serve_forever, files=(self.server.fileno(), self.folder)
        )
        return Companion(NAME, program, lambda: None, memory_mib=MEMORY_MIB)

    def close(self) -> None:
        """Close what only the server's process needs."""
        self.server.server_close()
        os.close(self.folder)
