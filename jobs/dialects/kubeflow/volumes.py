"""Volumes and where they are mounted ↔ shared memory and mounts.

A folder of the node is its path, a claim `pvc://name/folder`, a share `nfs://server/path`, an empty folder of
the pod's own `emptydir://`.  Other volumes are the cluster's own and kept; so is an empty folder that is
mounted at several paths, since each `emptydir://` is one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import amounts
from jobs.dialects.findings import Findings
from jobs.dialects.kubeflow import keys
from jobs.dialects.kubeflow.resources import quantity
from jobs.dialects.rendering import JsonObject
from jobs.spec import Mount, MountPurpose

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - where Linux has it
_CLAIM: Final = "pvc://"
_NFS: Final = "nfs://"
_EMPTY: Final = "emptydir://"
_EMPTY_OPTIONS: Final = frozenset({"medium", "sizeLimit"})


@dataclass(slots=True)
class Places:
    """What a pod mounts: shared memory (None when it is not told), places, and the volumes' names by path."""

    shm_mib: int | None = None
    mounts: list[Mount] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


def read(
    volumes: Sequence[Mapping[str, object]],
    mounts: Sequence[Mapping[str, object]],
    at: str,
    findings: Findings,
) -> Places:
    """The places of the main container; `at` is the pointer of its pod."""
    by_name = {str(volume.get("name")): (index, volume) for index, volume in enumerate(volumes)}
    found = Places()
    for mount in mounts:
        path, name = str(mount.get("mountPath", "")), str(mount.get("name", ""))
        index, volume = by_name.get(name, (0, None))
        if volume is None:
            findings.problem("no_such_volume", f"{at}/containers", keys.KUBERNETES, name=name)
            continue
        memory = _memory(volume)
        if memory is not None and path == SHARED_MEMORY:
            found.names[path] = name
            size = memory.get("sizeLimit")
            exact = quantity(str(size)) if size is not None else None
            where = f"{at}/volumes/{index}/emptyDir"
            if size is not None and exact is None:
                findings.problem(
                    "not_an_amount",
                    f"{where}/sizeLimit",
                    keys.KUBERNETES,
                    key="sizeLimit",
                    value=str(size)[:60],
                )
            elif exact is None:
                findings.note("shared_memory_unlimited", where)
            else:
                found.shm_mib = amounts.whole(exact / 2**20)
        elif (uri := _uri(volume, mount)) and path:
            found.names[path] = name
            found.mounts.append(Mount(uri=uri, path=path, read_only=mount.get("readOnly") is True))
        elif (options := _empty(volume, mount)) is not None and _is_own(path) and _times(name, mounts) == 1:
            read_only = mount.get("readOnly") is True
            found.names[path] = name
            found.mounts.append(Mount(uri=_EMPTY, path=path, read_only=read_only, options=options))
    return found


def _is_own(path: str) -> bool:
    """Whether a folder can be mounted there: shared memory is a resource of the role."""
    return path.startswith("/") and path != SHARED_MEMORY


def _times(name: str, mounts: Sequence[Mapping[str, object]]) -> int:
    """How often the volume is mounted."""
    return sum(mount.get("name") == name for mount in mounts)


def _empty(volume: Mapping[str, object], mount: Mapping[str, object]) -> dict[str, str] | None:
    """The options of an empty folder of the pod's own; None for another volume, or one that says more.

    A volume that names nothing is one too (Kubernetes API), and an empty `emptyDir` names nothing.
    """
    empty = volume.get("emptyDir") if volume.keys() - {"name"} else {}
    if not isinstance(empty, dict) or empty.keys() - _EMPTY_OPTIONS or _within(mount):
        return None
    options = {str(key): value for key, value in empty.items()}
    return options if all(isinstance(value, str) and value for value in options.values()) else None


def _within(mount: Mapping[str, object]) -> bool:
    """Whether only a part of the volume is mounted, or in a way that only a cluster knows."""
    return any(mount.get(key) for key in ("subPath", "subPathExpr", "mountPropagation"))


def _memory(volume: Mapping[str, object]) -> Mapping[str, object] | None:
    """A volume in memory."""
    empty = volume.get("emptyDir")
    return empty if isinstance(empty, dict) and empty.get("medium") == "Memory" else None


def _uri(volume: Mapping[str, object], mount: Mapping[str, object]) -> str:
    """What a volume's place is called; "" for one that only the cluster knows."""
    folder = mount.get("subPath") or ""
    if not isinstance(folder, str) or mount.get("subPathExpr") or mount.get("mountPropagation"):
        return ""
    claim, host, share = (volume.get(key) for key in ("persistentVolumeClaim", "hostPath", "nfs"))
    if isinstance(claim, dict) and set(claim) == {"claimName"} and _is_word(claim["claimName"]):
        return f"{_CLAIM}{claim['claimName']}{'/' if folder else ''}{folder}"
    if folder:
        return ""
    if isinstance(host, dict) and set(host) == {"path"} and str(host["path"]).startswith("/"):
        return str(host["path"])
    if isinstance(share, dict) and set(share) == {"server", "path"} and str(share["path"]).startswith("/"):
        return f"{_NFS}{share['server']}{share['path']}" if _is_word(share["server"]) else ""
    return ""


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "/" not in value


@dataclass(frozen=True, slots=True)
class Written:
    """The volumes of a pod, and where its main container mounts them."""

    volumes: list[JsonObject]
    mounts: list[JsonObject]


def document(mounts: Sequence[Mount], shm_mib: int, names: Mapping[str, str]) -> Written:
    """The volumes that say the places; `names` are those that the volumes had, by path."""
    written = Written([], [])
    named: set[str] = set()
    for place in _places(mounts, shm_mib):
        path, source, folder, read_only = place
        name = names.get(path) or _free(
            named | set(names.values()), "shm" if path == SHARED_MEMORY else "volume"
        )
        if name not in named:
            written.volumes.append({"name": name, **source})
        named.add(name)
        more: JsonObject = {"readOnly": True} if read_only else {}
        more |= {"subPath": folder} if folder else {}
        written.mounts.append({"mountPath": path, "name": name, **more})
    return written


def _places(mounts: Sequence[Mount], shm_mib: int) -> Iterator[tuple[str, JsonObject, str, bool]]:
    """Path, volume, folder in it, and whether it is read-only."""
    seen: set[str] = set()
    if shm_mib != keys.DEFAULTS.shm_mib:
        seen.add(SHARED_MEMORY)
        memory: JsonObject = {"medium": "Memory", "sizeLimit": amounts.memory(shm_mib)}
        yield SHARED_MEMORY, {"emptyDir": memory}, "", False
    for mount in mounts:
        plain = mount.purpose is MountPurpose.DATA and not mount.id
        path = mount.path or mount.uri  # a folder of the node without a path is mounted where it is
        found = _source(mount) if plain and path.startswith("/") else None
        if found and path not in seen:
            seen.add(path)
            yield path, found[0], found[1], mount.read_only


def _source(mount: Mount) -> tuple[JsonObject, str] | None:
    """The volume of a place, and the folder in it."""
    uri, options = mount.uri, mount.options
    if (
        uri == _EMPTY
        and _is_own(mount.path)
        and not options.keys() - _EMPTY_OPTIONS
        and all(options.values())
    ):
        return {"emptyDir": {**options}}, ""
    if options:
        return None
    if uri.startswith("/"):
        return {"hostPath": {"path": uri}}, ""
    if uri.startswith(_CLAIM):
        claim, _, folder = uri.removeprefix(_CLAIM).partition("/")
        return ({"persistentVolumeClaim": {"claimName": claim}}, folder) if claim else None
    if uri.startswith(_NFS):
        server, slash, path = uri.removeprefix(_NFS).partition("/")
        return ({"nfs": {"server": server, "path": f"/{path}"}}, "") if server and slash else None
    return None


def _free(taken: set[str], name: str) -> str:
    number, free = 1, name
    while free in taken:
        number, free = number + 1, f"{name}-{number + 1}"
    return free
