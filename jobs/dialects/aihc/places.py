"""Data sources ↔ mounts: the type of a source becomes the scheme of a URI, a dataset an id.

pfs `pfs-1` with path `/data` is `pfs://pfs-1/data`; a directory of the node is `file:///data`, which a
cluster mounts only where its admin allows it; bos is `bos://bucket/path`.
"""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.aihc import keys
from jobs.dialects.rendering import JsonObject
from jobs.dialects.request import Request
from jobs.spec import Mount

DATASET: Final = "dataset"
_NAMED: Final = ("pfs", "cfs", "rapidfs")
_UNNAMED: Final = {"file": "hostPath", "bos": "bos"}
_URI: Final = re.compile(r"(?P<scheme>[a-z]+)://(?P<name>[^/]*)(?P<path>/.*)?", re.DOTALL)


def read(source: Request) -> Mount | None:
    """The mount; None for a source that can't be mounted elsewhere, which is kept for AIHC."""
    scheme = keys.TYPE.meanings.get(_type(source), "")
    name, path = source.text(keys.SOURCE_NAME), source.text(keys.SOURCE_PATH)
    options = source.group(keys.OPTIONS)
    read_only = options.flag(keys.READ_ONLY)
    more = {rule.key: options.text(rule) for rule in (keys.MEDIUM, keys.SIZE_LIMIT) if options.has(rule)}
    target = source.text(keys.MOUNT_PATH)
    known, uri = _place(scheme, name, path)
    if not (known or uri):
        return None
    return Mount(id=known, uri=uri, path=target, read_only=read_only, options=more)


def _type(source: Request) -> str:
    """The type; pfs when none is given, "" for one that is not known."""
    if source.has(keys.TYPE):
        return source.choice(keys.TYPE)
    where = source.at(keys.TYPE.key)
    source.findings.note("default_taken", where, key=keys.TYPE.key, value=keys.TYPE.default, source=keys.PAGE)
    return keys.TYPE.default


def _place(scheme: str, name: str, path: str) -> tuple[str, str]:
    """The id and URI of a place; both empty when there is none."""
    if scheme == DATASET:
        return name, ""
    if scheme in _UNNAMED:
        return "", f"{scheme}://{path}" if path else ""
    if scheme in _NAMED and name:
        return "", f"{scheme}://{name}{_rooted(path)}"
    return "", ""


def _rooted(path: str) -> str:
    return path if not path or path.startswith("/") else f"/{path}"


def document(mount: Mount) -> JsonObject | None:
    """The data source; None for a place that AIHC has no type for."""
    place = _source(mount)
    if place is None:
        return None
    options: JsonObject = {**({keys.READ_ONLY.key: True} if mount.read_only else {}), **mount.options}
    return {
        **place,
        **({keys.MOUNT_PATH.key: mount.path} if mount.path else {}),
        **({keys.OPTIONS.key: options} if options else {}),
    }


def _source(mount: Mount) -> JsonObject | None:
    if mount.id and not mount.uri:
        return {keys.TYPE.key: DATASET, keys.SOURCE_NAME.key: mount.id}
    scheme, _, rest = mount.uri.partition("://")
    if scheme in _UNNAMED and rest:
        return {keys.TYPE.key: _UNNAMED[scheme], keys.SOURCE_PATH.key: rest}
    match = _URI.fullmatch(mount.uri)
    if not match or match["scheme"] not in _NAMED or not match["name"]:
        return None
    path: JsonObject = {keys.SOURCE_PATH.key: match["path"]} if match["path"] else {}
    return {keys.TYPE.key: match["scheme"], keys.SOURCE_NAME.key: match["name"], **path}
