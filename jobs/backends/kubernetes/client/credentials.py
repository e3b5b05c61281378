"""Credentials of the console at an apiserver: a token, its file, a certificate, or a program's output."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from jobs.backends.base import Unreachable

EARLY_S: Final = 30.0
"""Credentials of a program are replaced so long before they expire."""

VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class NoCredentials(Unreachable):
    """There are no valid credentials; no request was sent."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client's certificate and its key, PEM."""

    pem: str
    key: str = field(repr=False)


class Credentials(Protocol):
    """Credentials of one kind.  They are hashable: connections are shared by those who have the same."""

    def headers(self, timeout_s: float) -> dict[str, str]:
        """Return the headers of a request.  Raises NoCredentials."""

    def certificate(self, timeout_s: float) -> Certificate | None:
        """Return the certificate of a connection.  Raises NoCredentials."""

    def forget(self) -> None:
        """Drop what was not accepted."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token; without a text, nobody."""

    text: str = field(default="", repr=False)

    def headers(self, timeout_s: float) -> dict[str, str]:
        return _bearer(self.text) if self.text else {}

    def certificate(self, timeout_s: float) -> None:
        return None

    def forget(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with a bearer token, read for each request: kubelets replace it every hour."""

    path: Path

    def headers(self, timeout_s: float) -> dict[str, str]:
        try:
            return _bearer(self.path.read_text().strip())
        except (OSError, UnicodeDecodeError) as error:
            raise NoCredentials(f"The token in {self.path} can't be read: {type(error).__name__}") from None

    def certificate(self, timeout_s: float) -> None:
        return None

    def forget(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate."""

    shown: Certificate

    def headers(self, timeout_s: float) -> dict[str, str]:
        return {}

    def certificate(self, timeout_s: float) -> Certificate:
        return self.shown

    def forget(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class _Printed:
    """Credentials that a program printed, until a time in seconds since the epoch."""

    headers: dict[str, str]
    certificate: Certificate | None
    until: float


_printed: dict[ExecPlugin, _Printed] = {}
"""By the process: such programs take a second, and ask a cloud."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials (an `ExecCredential` of client-go), run without a shell."""

    command: tuple[str, ...]
    version: str
    environ: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def headers(self, timeout_s: float) -> dict[str, str]:
        return self._credentials(timeout_s).headers

    def certificate(self, timeout_s: float) -> Certificate | None:
        return self._credentials(timeout_s).certificate

    def forget(self) -> None:
        _printed.pop(self, None)

    def _credentials(self, timeout_s: float) -> _Printed:
        known = _printed.get(self)
        if known is None or known.until < time.time() + EARLY_S:
            known = _printed[self] = self._run(timeout_s)
        return known

    def _run(self, timeout_s: float) -> _Printed:
        """Return what the program prints.  No message has its output, which may hold a token."""
        name = Path(self.command[0]).name
        if self.version not in VERSIONS:
            raise NoCredentials(f"{name}: apiVersion “{self.version}” is not supported")
        info = {"apiVersion": self.version, "kind": "ExecCredential", "spec": {"interactive": False}}
        try:
            done = subprocess.run(
                self.command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                env={**_environment(), **dict(self.environ), "KUBERNETES_EXEC_INFO": json.dumps(info)},
                check=True,
            )
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
            raise NoCredentials(
                f"{name}, which prints the console's credentials, failed: {type(error).__name__}"
            ) from None
        try:
            return _parse(json.loads(done.stdout)["status"])
        except (ValueError, KeyError, TypeError):
            raise NoCredentials(f"{name} printed no credentials") from None


def _environment() -> dict[str, str]:
    """Return the variables that a program has: none of the console's secrets."""
    return {name: os.environ[name] for name in ("HOME", "LANG", "PATH", "USER") if name in os.environ}


def _parse(status: dict[str, Any]) -> _Printed:
    """Return the credentials in a status.  Raises ValueError, KeyError or TypeError."""
    token = status.get("token")
    pem, key = status.get("clientCertificateData"), status.get("clientKeyData")
    if not token and not pem:
        raise ValueError
    expires = status.get("expirationTimestamp")
    return _Printed(
        _bearer(str(token)) if token else {},
        Certificate(str(pem), str(key)) if pem and key else None,
        datetime.fromisoformat(expires).timestamp() if expires else float("inf"),
    )


def _bearer(token: str) -> dict[str, str]:
    if not token.isascii() or any(character.isspace() for character in token):
        raise NoCredentials("The token for the apiserver is none: it has spaces or other characters")
    return {"Authorization": f"Bearer {token}"}
