"""Data sources ↔ mounts: the type of a source becomes the scheme of a URI, a dataset an id.

pfs `pfs-1` with path `/data` is `pfs://pfs-1/data`; a directory of the node is `file:///data`, which a
cluster mounts only where its admin allows it; bos is `bos://bucket/path`.
"""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.aihc import keys
from jobs.dialects.objects import without_empty, write_fields
from jobs.dialects.request import Request
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import Mount

DATASET: Final = "dataset"
_NAMED: Final = ("pfs", "cfs", "rapidfs")
_UNNAMED: Final = {"file": "hostPath", "bos": "bos"}
_URI: Final = re.compile(r"(?P<scheme>[a-z]+)://(?P<name>[^/]*)(?P<path>/.*)?", re.DOTALL)


def read(source: Request) -> Mount | None:
    """Return the mount; None for a source that can't be mounted elsewhere, which is kept for AIHC."""
    scheme = keys.TYPE.meanings.get(_type(source), "")
    name, path = source.text(keys.SOURCE_NAME), source.text(keys.SOURCE_PATH)
    options = source.group(keys.OPTIONS)
    read_only = options.flag(keys.READ_ONLY)
    more = {rule.key: options.text(rule) for rule in (keys.MEDIUM, keys.SIZE_LIMIT) if options.has(rule)}
    target = source.text(keys.MOUNT_PATH)
    uri = ""
    if scheme in _UNNAMED and path:
        uri = f"{scheme}://{path}"
    elif scheme in _NAMED and name:
        uri = f"{scheme}://{name}{'/' if path and not path.startswith('/') else ''}{path}"
    known = name if scheme == DATASET else ""
    if not (known or uri):
        return None
    return Mount(id=known, uri=uri, path=target, read_only=read_only, options=more)


def _type(source: Request) -> str:
    """Return the type; pfs when none is given, "" for one that is not known."""
    if source.has(keys.TYPE):
        return source.choice(keys.TYPE)
    where, default = source.at(keys.TYPE.key), keys.TYPE.default
    source.findings.note("default_taken", where, key=keys.TYPE.key, value=default, source=keys.PAGE)
    return default


def write(mount: Mount) -> JsonObject | None:
    """Return the data source; None for a place that AIHC has no type for."""
    place = _write_place(mount)
    if place is None:
        return None
    options = {**write_fields((keys.READ_ONLY,), mount), **mount.options}
    return {**place, **without_empty({keys.MOUNT_PATH.key: mount.path, keys.OPTIONS.key: options})}


def _write_place(mount: Mount) -> JsonObject | None:
    if mount.id and not mount.uri:
        return {keys.TYPE.key: DATASET, keys.SOURCE_NAME.key: mount.id}
    scheme, _, rest = mount.uri.partition("://")
    if scheme in _UNNAMED and rest:
        return {keys.TYPE.key: _UNNAMED[scheme], keys.SOURCE_PATH.key: rest}
    match = _URI.fullmatch(mount.uri)
    if not match or match["scheme"] not in _NAMED or not match["name"]:
        return None
    named = {keys.TYPE.key: match["scheme"], keys.SOURCE_NAME.key: match["name"]}
    return {**named, **without_empty({keys.SOURCE_PATH.key: match["path"]})}
