"""One request to slurmrestd, by TCP or a UNIX socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from jobs.backends.base import Unreachable
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.rest import tokens

UNIX: Final = "unix:"
_NO_TOKEN: Final = 401


UNSPECIFIED: Final = ("unspecified error", "zero bytes were transmitted")
"""What v0.0.38 says where slurmctld did not answer, or did not accept the token."""


class NotConnected(Unreachable):
    """Nothing was sent."""


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
        return self.status == httpx.codes.OK and not self.errors

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

    def ask(self, method: str, path: str, json: Mapping[str, Any] | None = None) -> Answer:
        """Ask it; raises NotConnected, or Unreachable when it may have been understood."""
        headers = tokens.headers(self._config, self._user)
        url, transport = self._config.url, None
        if url.startswith(UNIX):
            url, transport = "http://localhost", httpx.HTTPTransport(uds=url.removeprefix(UNIX))
        try:
            with httpx.Client(
                base_url=url, transport=transport, timeout=self._config.timeout_s, trust_env=False
            ) as client:
                answer = client.request(method, path, json=json, headers=headers)
                return self._read(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NotConnected(f"slurmrestd at {self.address}: {error}") from error
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise Unreachable(f"slurmrestd at {self.address} gave no answer: {why}") from error

    def _read(self, answer: httpx.Response) -> Answer:
        if answer.status_code == _NO_TOKEN:
            tokens.forget(self._config, self._user)
            raise NotConnected(f"slurmrestd at {self.address} does not accept the token (HTTP 401)")
        try:
            body = answer.json()
        except ValueError:
            body = {"errors": [{"error": answer.text[:200]}]} if not answer.is_success else {}
        found = Answer(answer.status_code, body if isinstance(body, dict) else {})
        if found.says(*UNSPECIFIED):
            tokens.forget(self._config, self._user)
        return found
