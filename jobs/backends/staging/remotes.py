"""Places elsewhere from which data is fetched into a job: object stores, and the web."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from jobs.facilities import WEB, covers_data, split_data, without_login

KEYS: Final = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "oss": ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET"),
    "bos": ("BOS_ACCESS_KEY_ID", "BOS_SECRET_ACCESS_KEY"),
}
"""The variables in which a job may have its own keys."""

_OSS_HOST: Final = ".aliyuncs.com"
_BOS_HOST: Final = ".bcebos.com"
_BOS_REGION: Final = "bj"


@dataclass(frozen=True, slots=True)
class Remote:
    """A place elsewhere, as S3's words say it; `shown` is its address without a login."""

    uri: str
    shown: str
    endpoint: str = ""
    region: str = ""
    addressing: str = "auto"

    @property
    def can_be_written(self) -> bool:
        """Tell whether there is a way back."""
        return self.uri.startswith("s3://")


@dataclass(frozen=True, slots=True)
class DataRules:
    """Settings for data: the addresses it may come `from_`, hosts `inside` this network that
    may be spoken to, at most `most_bytes` at a time and `cache_bytes` kept for each person.
    """

    from_: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    most_bytes: int = 50 << 30
    cache_bytes: int = 20 << 30

    def cover(self, uri: str) -> bool:
        """Tell whether data may be fetched from the address."""
        return covers_data(self.from_, uri)


def read(uri: str, options: Mapping[str, str]) -> Remote | None:
    """The place at an address; `options` may say the `endpoint` and the `region` of a store."""
    parts = split_data(uri)
    if parts is None:
        return None
    host, shown = parts.netloc.rpartition("@")[2], without_login(uri)
    if parts.scheme in WEB:
        return Remote(shown, shown.partition("?")[0])
    endpoint, region = options.get("endpoint", ""), options.get("region", "")
    if parts.scheme == "oss" and not endpoint and host.endswith(_OSS_HOST):
        host, _, endpoint = host.partition(".")
    elif parts.scheme == "oss" and not endpoint and region:
        endpoint = f"oss-{region.removeprefix('oss-')}{_OSS_HOST}"
    elif parts.scheme == "bos" and not endpoint:
        endpoint = f"s3.{region or _BOS_REGION}{_BOS_HOST}"
    if endpoint and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    own_names = (urlsplit(endpoint).hostname or "").endswith((_OSS_HOST, _BOS_HOST))
    addressing = ("virtual" if own_names else "path") if endpoint else "auto"
    return Remote(f"s3://{host}{parts.path}", shown, endpoint, region, addressing)


def login_of(uri: str) -> tuple[str, str]:
    """The user and the password that stand in the address."""
    parts = split_data(uri)
    if parts is None:
        return "", ""
    return unquote(parts.username or ""), unquote(parts.password or "")


def named_hosts(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts, with ports, that addresses of the web name."""
    named = [parts for parts in map(split_data, addresses) if parts is not None and parts.scheme in WEB]
    ports = {"http": 80, "https": 443}
    return tuple(
        f"{parts.hostname}:{parts.port or ports[parts.scheme]}" for parts in named if parts.hostname != "*"
    )
