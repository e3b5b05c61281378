"""The configuration of `dlc`: an access key and where requests go, in `~/.dlc/config`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from configparser import Error as ParsingError
from configparser import RawConfigParser
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Final

from jobs.client.dlc.failure import USAGE
from jobs.client.failure import CommandFailure
from jobs.client.files import replace_file

_SECTION: Final = "default"
_VARIABLES: Final = {
    "access_id": "ALIBABA_CLOUD_ACCESS_KEY_ID",
    "access_key": "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
}
"""The SDK's variables, which count where neither a flag nor the file has a value."""

PROTOCOLS: Final = ("https", "http")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Values of the flags of the same names; "" for none."""

    access_id: str = ""
    access_key: str = field(default="", repr=False)
    endpoint: str = ""
    protocol: str = ""
    region: str = ""

    @property
    def url(self) -> str:
        """Return the address that requests begin with.  Raises CommandFailure if there is none.

        An endpoint may begin with its protocol; without one the region says which it is.
        """
        protocol, host = self.protocol or "https", self.endpoint.rstrip("/")
        if "://" in host:
            protocol, _separator, host = host.partition("://")
        if not host and self.region:
            host = f"pai-dlc.{self.region}.aliyuncs.com"
        if not host or protocol not in PROTOCOLS or "/" in host:
            raise CommandFailure("No endpoint. Use: dlc config --endpoint HOST --protocol https", USAGE)
        return f"{protocol}://{host}"


NAMES: Final = tuple(each.name for each in fields(Configuration))


def default_path() -> Path:
    """Return the file of the configuration."""
    return Path.home() / ".dlc" / "config"


def read(path: Path) -> Configuration:
    """Return what the file says; nothing if there is no file.  Raises CommandFailure for another format."""
    parser = RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Configuration()
    except (ParsingError, UnicodeDecodeError) as error:
        raise CommandFailure(
            f"{path} is not a configuration of this program. Move it away, or use --config FILE.", USAGE
        ) from error
    section = parser[_SECTION] if parser.has_section(_SECTION) else {}
    return Configuration(**{name: section[name] for name in NAMES if name in section})


def write(path: Path, configuration: Configuration) -> None:
    """Write the file for nobody else to read."""
    parser = RawConfigParser()
    parser[_SECTION] = {name: value for name, value in asdict(configuration).items() if value}
    text = io.StringIO()
    parser.write(text)
    replace_file(path, text.getvalue())


def merge(
    stored: Configuration, flags: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> Configuration:
    """Return the flags' values, then the file's, then the environment's."""
    found = {name: flags.get(name) or getattr(stored, name) for name in NAMES}
    for name, variable in _VARIABLES.items():
        found[name] = found[name] or environment.get(variable, "")
    return Configuration(**found)
