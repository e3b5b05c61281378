"""Addresses that assets may have: read the same by the console and by whoever fetches from them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from jobs.models import Dataset

_Source = Dataset.Source

OBJECTS: Final = {_Source.OSS: "oss", _Source.S3: "s3", _Source.BOS: "bos"}
"""Object stores, and how their addresses begin."""

FILES: Final = frozenset(
    {_Source.NAS, _Source.NAS_EXTREME, _Source.CPFS, _Source.BMCPFS, _Source.PFS, _Source.HOST}
)
"""What a machine has mounted itself: a folder, or an address that a cluster's settings map to one."""

GIT: Final = ("https", "ssh")

_SCHEMES: Final = frozenset({"nas", "cpfs", "bmcpfs", "pfs", "file"})
_PLAIN: Final = re.compile(r"[A-Za-z0-9._~/+%=@:-]*")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,200}")


class Wrong(Exception):
    """The address can't be that of such an asset; `code` is one of `jobs.messages.assets`."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


def check_git(uri: str) -> None:
    """A repository by https or ssh, without a password.  Raises Wrong."""
    parts = _split(uri)
    if parts.scheme not in GIT:
        raise Wrong("git_scheme")
    if parts.password is not None or (parts.scheme == "https" and parts.username):
        raise Wrong("login_in_address")
    if not _HOST.fullmatch(parts.hostname or "") or not _PLAIN.fullmatch(parts.path) or _has_more(parts):
        raise Wrong("address")


def check_place(uri: str, source: str) -> None:
    """Where data may lie that is stored so.  Raises Wrong."""
    if "::" in uri:
        raise Wrong("chained")
    if not uri.isprintable() or ".." in uri.split("/"):
        raise Wrong("address")
    if source in FILES:
        _check_folder(uri)
        return
    if source == _Source.UPLOAD:
        raise Wrong("of_the_console")
    parts = _split(uri)
    if parts.password is not None or parts.username:
        raise Wrong("login_in_address")
    if source == _Source.HTTP:
        if parts.scheme not in {"http", "https"} or not _HOST.fullmatch(parts.hostname or ""):
            raise Wrong("http_scheme")
        return
    wanted = OBJECTS[_Source(source)]
    if parts.scheme != wanted:
        raise Wrong("scheme", f"{wanted}://")
    if not _BUCKET.fullmatch(parts.netloc) or _has_more(parts):
        raise Wrong("address")


def _check_folder(uri: str) -> None:
    scheme, mark, rest = uri.partition("://")
    if not mark:
        if not uri.startswith("/"):
            raise Wrong("folder")
        return
    if scheme not in _SCHEMES or not rest:
        raise Wrong("folder")


def _split(uri: str) -> SplitResult:
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 ValueError for one that is no number
    except ValueError:
        raise Wrong("address") from None
    if not parts.scheme or not parts.netloc or "::" in uri or ".." in parts.path.split("/"):
        raise Wrong("chained" if "::" in uri else "address")
    return parts


def _has_more(parts: SplitResult) -> bool:
    return bool(parts.query or parts.fragment)
