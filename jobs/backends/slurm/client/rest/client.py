"""One request to slurmrestd, by TCP or a UNIX socket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.rest import connections, tokens
from jobs.backends.slurm.config import SlurmConfig

UNSPECIFIED: Final = ("unspecified error", "zero bytes were transmitted")
"""Errors of v0.0.38 where slurmctld did not answer, or did not accept the token."""

SUPPORTED: Final = (38, 40, 41, 42, 43, 44, 45)
"""The versions of the API.  Slurm 23.02, whose own is 39, supports 38 too."""

WITH_PARSERS: Final = 40
"""From this version on, Slurm's data_parser names the fields; v0.0.38 has sbatch's options."""

_PATH: Final = re.compile(r"/slurm/v0\.0\.(\d+)/jobs/?")

_versions: dict[str, int] = {}


class NotConnected(Unreachable):
    """No request was sent."""


class StaleConnection(Unreachable):
    """An idle connection was closed while it was used: a request that only reads may be repeated."""


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """A response of slurmrestd."""

    status: int
    body: Mapping[str, Any]

    @property
    def errors(self) -> list[str]:
        """Return its error messages; a held job is none."""
        found = self.body.get("errors") or []
        said = [str(each.get("description") or each.get("error") or "") for each in found]
        more = [str(each.get("error") or "") for each in found]
        return [text for text in dict.fromkeys([*more, *said]) if text and "held state" not in text]

    @property
    def complaint(self) -> str:
        """Return them as one line."""
        return "; ".join(self.errors)[:500] or f"HTTP {self.status}"

    @property
    def is_good(self) -> bool:
        """Return whether the request succeeded."""
        return self.status == HTTPStatus.OK and not self.errors

    def says(self, *phrases: str) -> bool:
        """Return whether its errors contain one of these phrases."""
        said = " ".join(self.errors).lower()
        return any(phrase in said for phrase in phrases)


class RestClient:
    """The slurmrestd of one cluster, asked as the console or as `user`."""

    def __init__(self, config: SlurmConfig, user: str = "") -> None:
        self._config = config
        self._user = user
        self.address = config.url

    def version(self) -> int:
        """Return the newest version that both support, asked once for each address.  Raises Unreachable."""
        if self.address not in _versions:
            answer = self.ask("GET", "/openapi/v3")
            paths = answer.body.get("paths")
            at = f"slurmrestd at {self.address}"
            if not isinstance(paths, dict):
                raise Unreachable(f"{at} does not describe itself: {answer.complaint}")
            if (version := newest_common(paths)) is None:
                speaks = ", ".join(f"v0.0.{each}" for each in SUPPORTED)
                raise Unreachable(f"{at} offers no version that the console speaks ({speaks})")
            _versions[self.address] = version
        return _versions[self.address]

    def forget_version(self) -> None:
        """Ask for the version again: the server was replaced."""
        _versions.pop(self.address, None)

    def ask(self, method: str, path: str, sent: Mapping[str, Any] | None = None) -> RestAnswer:
        """Send a request.  Raises NotConnected, or Unreachable when it may have been received."""
        headers = {"Content-Type": "application/json", **tokens.make_headers(self._config, self._user)}
        body = None if sent is None else json.dumps(sent)
        try:
            return self._read(*self._answer(method, path, body, headers))
        except StaleConnection as error:
            if method != "GET":
                raise Unreachable(str(error)) from error
        return self._read(*self._answer(method, path, body, headers, use_idle=False))

    def _answer(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str], *, use_idle: bool = True
    ) -> tuple[int, bytes]:
        to = connections.Destination(self._config.url, self._user)
        connection = connections.take_idle(to, self._config.timeout_s) if use_idle else None
        was_idle = connection is not None
        try:
            connection = connection or connections.connect(to, self._config.timeout_s)
        except OSError as error:
            raise NotConnected(f"slurmrestd at {self.address}: {error}") from error
        try:
            connection.request(method, to.path + path, body, headers)
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            message = f"slurmrestd at {self.address} gave no answer: {str(error) or type(error).__name__}"
            raise (StaleConnection if was_idle and isinstance(error, ConnectionError) else Unreachable)(
                message
            ) from error
        connections.give_back(to, connection)
        return answer.status, said

    def _read(self, status: int, said: bytes) -> RestAnswer:
        if status == HTTPStatus.UNAUTHORIZED:
            tokens.forget(self._config, self._user)
            raise NotConnected(f"slurmrestd at {self.address} does not accept the token (HTTP 401)")
        try:
            body = json.loads(said)
        except ValueError:
            wrong = {"errors": [{"error": said[:200].decode(errors="replace")}]}
            body = {} if status // 100 == 2 else wrong
        found = RestAnswer(status, body if isinstance(body, dict) else {})
        if found.says(*UNSPECIFIED):
            tokens.forget(self._config, self._user)
        return found


def newest_common(paths: Iterable[str]) -> int | None:
    """Return the newest supported version among a description's paths."""
    offered = {int(match[1]) for path in paths if (match := _PATH.fullmatch(path))}
    return max(offered & set(SUPPORTED), default=None)
