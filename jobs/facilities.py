"""Facilities of a cluster beside CPU, memory and GPUs, as its backend reports them with its nodes.

A backend makes a `Facilities` of its settings and of what it finds; the console keeps it with the cluster and
tells from it, without asking the backend, what a job asks for that will never be there.  The addresses that
settings admit are matched here, for the backends too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final, Self
from urllib.parse import SplitResult, quote, unquote, urlsplit

STORES: Final = ("s3", "oss", "bos")
WEB: Final = ("https", "http")
HDFS: Final = "hdfs"
"""Schemes of data that can be fetched; no chained addresses (`::`), no files, no shells."""

CODE_SCHEMES: Final = ("https", "ssh", "http", "git")
"""Schemes by which git fetches from other machines, where the settings name them."""

WRITABLE: Final = "writable"
READ_ONLY: Final = "read_only"
"""How a cluster brings buckets to its jobs: in and out, or in alone."""

EVERYBODY: Final = "*"
USER: Final = "{user}"
"""As one part of a folder's path: the login name of the person that asks."""

OWN_NETWORK: Final = "own"
"""A job has a network of its own, in which the egress policy of its workspace is enforced."""

HOST_NETWORK: Final = "host"
"""Jobs share their machine's network because an admin has chosen that; "" where there is no other one."""

_FILE_SCHEMES: Final = ("file://localhost/", "file:///")
_SHORT_SSH: Final = re.compile(r"(?P<user>[A-Za-z0-9._-]+)@(?P<host>[A-Za-z0-9.-]+):(?P<path>[^/].*)")


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """A folder of the cluster's machines that jobs of these workspaces (`*`: of all) may use."""

    path: str
    workspaces: tuple[str, ...] = (EVERYBODY,)

    def admits(self, path: str, workspace: str, user: str) -> bool:
        """Tell whether the path is this folder or lies in it, for a person of a workspace."""
        if not {workspace, EVERYBODY} & set(self.workspaces):
            return False
        mine, asked = PurePosixPath(self.path).parts, PurePosixPath(path).parts
        return (
            len(asked) >= len(mine)
            and ".." not in asked
            and all(
                part in (theirs, USER) and (part != USER or theirs == user)
                for part, theirs in zip(mine, asked, strict=False)
            )
        )


@dataclass(frozen=True, slots=True)
class StorageMapping:
    """A folder, or a part of an object store, that job files call by an id or by an address.

    `path` is where it is mounted if they do not say; `is_admitted` tells that the job's workspace may use it.
    `bucket` is an address such as `s3://bucket/folder`; the keys reach what copies the data, never the job.
    """

    folder: str = ""
    path: str = ""
    read_only: bool = False
    is_admitted: bool = True
    bucket: str = ""
    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)

    @property
    def options(self) -> dict[str, str]:
        """Return the options with which the bucket is reached."""
        return {"endpoint": self.endpoint, "region": self.region}

    @property
    def bucket_with_login(self) -> str:
        """Return the bucket's address with the keys in it; for the backend alone."""
        scheme, _, rest = self.bucket.partition("://")
        login = f"{quote(self.access_key, safe='')}:{quote(self.secret_key, safe='')}@"
        return f"{scheme}://{login}{rest}" if self.secret_key else self.bucket

    def below(self, rest: str) -> StorageMapping:
        """Return the part of it at a relative path."""
        if not rest:
            return self
        if self.bucket:
            return replace(self, bucket=f"{self.bucket.rstrip('/')}/{rest}")
        return replace(self, folder=f"{self.folder.rstrip('/')}/{rest}")


@dataclass(frozen=True, slots=True)
class Facilities:
    """The facilities that a cluster has for its jobs.

    `images`: something runs container images.  `plain`: an admin lets a job that names an image run without
    it.  `slurm`: jobs find srun and its like.  `modules`: they find environment modules; None where that is
    not known.  `folders` are those that jobs may use, None for all.  `data` are the addresses from which data
    may come; `buckets` says how buckets of storage mappings are brought (`writable` or `read_only`).  `code`
    are the addresses from which code is fetched, None for all, and `code_ids` the ids by which the settings
    know code.
    `file_system` is the folder that stands for OpenPAI's default file system.  `one_machine`: all replicas
    share its ports.  `engines` are the container engines that were looked for: each is `used`, `absent` or
    `silent`; None where the backend looks for none.  `network` is the one that a job has, `image_network`
    that of a job in containers; `network_lacks` names what the machine lacks for OWN_NETWORK.  `hdfs` are
    the namenodes whose HTTP interface the settings name.  `roles` tells that jobs get credentials of their
    role also without a network of their own, `image_roles` that jobs in containers do.  `operators` are the
    kinds of operators that the cluster serves.
    """

    images: bool
    plain: bool
    slurm: bool = False
    modules: bool | None = None
    folders: tuple[SharedFolder, ...] | None = None
    data: tuple[str, ...] = ()
    buckets: str = WRITABLE
    code: tuple[str, ...] | None = None
    code_ids: tuple[str, ...] = ()
    file_system: str = ""
    one_machine: bool = False
    engines: Mapping[str, str] | None = None
    network: str = ""
    image_network: str = ""
    network_lacks: tuple[str, ...] = ()
    hdfs: tuple[str, ...] = ()
    roles: bool = False
    image_roles: bool = False
    operators: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the facilities as they are stored with the cluster."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return stored facilities; fields that this version does not know are left out."""
        known = {name: kept for name, kept in value.items() if name in cls.__dataclass_fields__}
        folders = known.get("folders")
        if folders is not None:
            known["folders"] = tuple(
                SharedFolder(each["path"], tuple(each["workspaces"])) for each in folders
            )
        for name in ("data", "code", "code_ids", "network_lacks", "hdfs", "operators"):
            if known.get(name) is not None:
                known[name] = tuple(known[name])
        return cls(**known)

    def admits_folder(self, path: str, workspace: str, user: str) -> bool:
        """Tell whether a person's jobs in a workspace may use the folder, as far as its name tells."""
        return self.folders is None or any(each.admits(path, workspace, user) for each in self.folders)

    def fetches_data(self, uri: str) -> bool:
        """Tell whether data may be fetched from the address."""
        return covers_data(self.data, uri)

    def fetches_code(self, uri: str) -> bool:
        """Tell whether code may be fetched from the address."""
        parts = split_code(uri)
        if parts is not None and parts.scheme == HDFS:
            return covers_data(self.hdfs, uri)
        if parts is not None and parts.scheme in STORES:
            return self.fetches_data(uri)
        if parts is None or parts.scheme not in CODE_SCHEMES:
            return False
        return self.code is None or bool(covering_code(self.code, parts))


def find_mapping(names: Collection[str], id_: str, uri: str) -> str | None:
    """Return the id, or else the address or the longest one around it, among the names of mappings."""
    if id_ in names:
        return id_
    around = (name for name in names if "://" in name and lies_in(uri, name))
    return max(around, key=len, default=None)


def local_path(uri: str) -> str | None:
    """Return the path of a location on the machine itself; None for one elsewhere."""
    for scheme in _FILE_SCHEMES:
        if uri.startswith(scheme):
            return uri[len(scheme) - 1 :]
    return uri if uri.startswith("/") else None


def lies_in(uri: str, around: str) -> bool:
    """Tell whether an address is `around`, or below it."""
    return uri == around or uri.startswith(around if around.endswith("/") else f"{around}/")


# --- data ------------------------------------------------------------------------------------------------


def split_data(uri: str) -> SplitResult | None:
    """Return the parts of an address that data can be fetched from; None for any other."""
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 ValueError for one that is no number
    except ValueError:
        return None
    bare = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    plain = parts.hostname and uri.isprintable() and "::" not in bare
    if parts.scheme not in (*STORES, *WEB, HDFS) or not plain or ".." in unquote(parts.path).split("/"):
        return None
    return parts if parts.scheme in WEB or not (parts.query or parts.fragment) else None


def covers_data(admitted: Iterable[str], uri: str) -> bool:
    """Tell whether one of the admitted addresses is the address, or around it."""
    parts = split_data(uri)
    return parts is not None and any(_covers_data(each, parts) for each in admitted)


def _covers_data(admitted: str, parts: SplitResult) -> bool:
    scheme, _, rest = admitted.partition("://")
    host, _, path = rest.partition("/")
    if scheme != parts.scheme or host not in ("*", parts.netloc.rpartition("@")[2]):
        return False
    around = f"/{path}".rstrip("/")
    return parts.path == around or parts.path.startswith(f"{around}/") or not around


def without_login(uri: str) -> str:
    """Return the address without the login in it."""
    scheme, mark, rest = uri.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


# --- code ------------------------------------------------------------------------------------------------


def setting_of_code(uri: str) -> str:
    """Return the setting that admits code from the address; "" where none can."""
    parts = split_code(uri)
    scheme = parts.scheme if parts else ""
    settings = {**dict.fromkeys(STORES, "data_from"), **dict.fromkeys(CODE_SCHEMES, "code_from"), HDFS: HDFS}
    return settings.get(scheme, "")


def split_code(uri: str) -> SplitResult | None:
    """Return the parts of a repository's address, `user@host:path` as ssh; None if it is none."""
    short = _SHORT_SSH.fullmatch(uri)
    if short:
        uri = f"ssh://{short['user']}@{short['host']}/{short['path']}"
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 ValueError for one that is no number
    except ValueError:
        return None
    return parts if parts.scheme and parts.netloc else None


def covering_code(admitted: Iterable[str], parts: SplitResult) -> Sequence[str]:
    """Return the admitted addresses that are the repository's, or around it."""
    return [each for each in admitted if _covers_code(each, parts)]


def _covers_code(admitted: str, parts: SplitResult) -> bool:
    known = split_code(admitted)
    if known is None or (known.scheme, known.port) != (parts.scheme, parts.port):
        return False
    if known.hostname not in ("*", parts.hostname):
        return False
    around = known.path.rstrip("/")
    return parts.path == around or parts.path.startswith(f"{around}/")
