"""Places elsewhere from which data is fetched into a job: object stores, and the web."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from jobs.facilities import HDFS, WEB, covers_data, lies_in, split_data, without_login

KEYS: Final = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "oss": ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET"),
    "bos": ("BOS_ACCESS_KEY_ID", "BOS_SECRET_ACCESS_KEY"),
}
"""The variables in which a job may have its own keys."""

_OPTIONS: Final = {
    "s3": {"endpoint": "AWS_ENDPOINT_URL", "region": "AWS_REGION"},
    "oss": {"endpoint": "OSS_ENDPOINT", "region": "OSS_REGION"},
}
"""The variables in which a job may have a store's endpoint and region: those of the vendors' own tools."""

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
        return self.uri.startswith(("s3://", "hdfs://"))


@dataclass(frozen=True, slots=True)
class DataRules:
    """Settings for data: the addresses it may come `from_`, hosts `inside` this network that
    may be spoken to, at most `most_bytes` at a time and `cache_bytes` kept for each person.  `hdfs` maps
    namenodes, as job files call them, to where their HTTP interface is.
    """

    from_: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    most_bytes: int = 50 << 30
    cache_bytes: int = 20 << 30
    hdfs: Mapping[str, str] = field(default_factory=dict)

    def cover(self, uri: str) -> bool:
        """Tell whether data may be fetched from the address."""
        return covers_data((*self.from_, *self.hdfs), uri)

    def namenode(self, uri: str) -> str:
        """Return where the HTTP interface of an address's namenode is; "" where no admin has said so."""
        known = max((name for name in self.hdfs if lies_in(uri, name.rstrip("/"))), key=len, default="")
        return self.hdfs.get(known, "")

    def read(self, uri: str, options: Mapping[str, str]) -> Remote | None:
        """Return the place at an address; None for one from which nothing is fetched."""
        if not uri.startswith(f"{HDFS}://"):
            return read(uri, options)
        bare = without_login(uri)
        endpoint = self.namenode(bare)
        return Remote(bare, bare, endpoint) if endpoint and split_data(bare) else None


def read(uri: str, options: Mapping[str, str]) -> Remote | None:
    """The place at an address; `options` may say the `endpoint` and the `region` of a store."""
    parts = split_data(uri)
    if parts is None or parts.scheme == HDFS:
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


def options_of(uri: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a store from the job's own variables."""
    names = _OPTIONS.get(uri.partition(":")[0], {})
    return {option: env[name] for option, name in names.items() if env.get(name)}


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
