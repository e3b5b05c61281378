"""One request to slurmrestd, by TCP or a UNIX socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.rest import connections, tokens
from jobs.backends.slurm.config import SlurmConfig

UNSPECIFIED: Final = ("unspecified error", "zero bytes were transmitted")
"""What v0.0.38 says where slurmctld did not answer, or did not accept the token."""


class NotConnected(Unreachable):
    """Nothing was sent."""


class Stale(Unreachable):
    """A kept connection was closed while it was written to: what only reads may be asked once more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What slurmrestd said."""

    status: int
    body: Mapping[str, Any]

    @property
    def errors(self) -> list[str]:
        """What went wrong, in its words; a held job is none."""
        told = self.body.get("errors") or []
        said = [str(each.get("description") or each.get("error") or "") for each in told]
        more = [str(each.get("error") or "") for each in told]
        return [text for text in dict.fromkeys([*more, *said]) if text and "held state" not in text]

    @property
    def complaint(self) -> str:
        """All of it, as one line."""
        return "; ".join(self.errors)[:500] or f"HTTP {self.status}"

    @property
    def is_good(self) -> bool:
        """Whether it did what it was asked for."""
        return self.status == HTTPStatus.OK and not self.errors

    def says(self, *phrases: str) -> bool:
        """Whether it complained about one of these."""
        said = " ".join(self.errors).lower()
        return any(phrase in said for phrase in phrases)


class Client:
    """The slurmrestd of one cluster, asked by the console, or as `user`."""

    def __init__(self, config: SlurmConfig, user: str = "") -> None:
        self._config = config
        self._user = user

    @property
    def address(self) -> str:
        """Where it is reached."""
        return self._config.url

    def ask(self, method: str, path: str, told: Mapping[str, Any] | None = None) -> Answer:
        """Ask it; raises NotConnected, or Unreachable when it may have been understood."""
        headers = {"Content-Type": "application/json", **tokens.headers(self._config, self._user)}
        body = None if told is None else json.dumps(told)
        try:
            return self._read(*self._answer(method, path, body, headers))
        except Stale as error:
            if method != "GET":
                raise Unreachable(str(error)) from error
        return self._read(*self._answer(method, path, body, headers, kept=False))

    def _answer(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str], *, kept: bool = True
    ) -> tuple[int, bytes]:
        to = connections.To(self._config.url, self._user)
        connection = connections.kept(to, self._config.timeout_s) if kept else None
        was_kept = connection is not None
        try:
            connection = connection or connections.made(to, self._config.timeout_s)
        except OSError as error:
            raise NotConnected(f"slurmrestd at {self.address}: {error}") from error
        try:
            connection.request(method, to.path + path, body, headers)
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            told = f"slurmrestd at {self.address} gave no answer: {str(error) or type(error).__name__}"
            raise (Stale if was_kept and isinstance(error, ConnectionError) else Unreachable)(told) from error
        connections.keep(to, connection)
        return answer.status, said

    def _read(self, status: int, said: bytes) -> Answer:
        if status == HTTPStatus.UNAUTHORIZED:
            tokens.forget(self._config, self._user)
            raise NotConnected(f"slurmrestd at {self.address} does not accept the token (HTTP 401)")
        try:
            body = json.loads(said)
        except ValueError:
            wrong = {"errors": [{"error": said[:200].decode(errors="replace")}]}
            body = {} if status // 100 == 2 else wrong
        found = Answer(status, body if isinstance(body, dict) else {})
        if found.says(*UNSPECIFIED):
            tokens.forget(self._config, self._user)
        return found
