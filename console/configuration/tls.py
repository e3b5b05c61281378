"""The meaning of CONSOLE_TLS: where TLS ends, and with which certificate."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from console.configuration.env import EnvError

_OFF: Final = frozenset({"", "0", "false", "no", "off"})
_PROXY: Final = frozenset({"proxy", "1", "true", "yes", "on"})


class Mode(StrEnum):
    """A place where TLS ends, if any."""

    OFF = "off"
    PROXY = "proxy"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Tls:
    """The meaning of CONSOLE_TLS; files are set in mode OWN alone, and `made` if the console makes them."""

    mode: Mode
    certificate: Path = Path()
    key: Path = Path()
    made: bool = False

    @property
    def scheme(self) -> str:
        """Return the scheme under which the web server itself answers."""
        return "https" if self.mode is Mode.OWN else "http"


def read(text: str, home: Path) -> Tls:
    """Return what CONSOLE_TLS says.  Raises EnvError."""
    word = text.strip().lower()
    if word in _OFF:
        return Tls(Mode.OFF)
    if word in _PROXY:
        return Tls(Mode.PROXY)
    if word in {"auto", "self-signed"}:
        return Tls(Mode.OWN, home / "tls" / "certificate.pem", home / "tls" / "key.pem", made=True)
    certificate, comma, key = (part.strip() for part in text.partition(","))
    if not comma and os.sep not in certificate:
        raise EnvError(f"CONSOLE_TLS must be 0, auto, proxy or certificate.pem,key.pem, not {text!r}.")
    paths = [Path(each).expanduser().absolute() for each in (certificate, key or certificate)]
    for path in paths:
        if not path.is_file():
            raise EnvError(f"CONSOLE_TLS names {path}, and there is no such file.")
    return Tls(Mode.OWN, paths[0], paths[1])
