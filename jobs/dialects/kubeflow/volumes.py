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
from jobs.dialects.objects import as_object, without_empty
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import Mount, MountPurpose

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - where Linux has it
_CLAIM: Final = "pvc://"
_NFS: Final = "nfs://"
_EMPTY: Final = "emptydir://"
_PARTIAL: Final = ("subPath", "subPathExpr", "mountPropagation")
"""Keys of a mount of a part of its volume, or of a way to mount that only a cluster knows."""

_EMPTY_OPTIONS: Final = frozenset({"medium", "sizeLimit"})


@dataclass(slots=True)
class MountedVolumes:
    """Mounts of a pod: shared memory (None when none is named), places, and the volumes' names by path."""

    shm_mib: int | None = None
    mounts: list[Mount] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def take_shared(self, paths: Sequence[str]) -> Iterator[str]:
        """Take the mounts of empty folders at these paths, and yield the paths."""
        for mount in list(self.mounts):
            if mount.path in paths and is_shared_folder(mount):
                self.mounts.remove(mount)
                yield mount.path


def shared_folder(path: str) -> Mount:
    """Return the mount of an empty folder that all containers share."""
    return Mount(uri=_EMPTY, path=path)


def is_shared_folder(mount: Mount) -> bool:
    """Tell whether a mount says no more than that."""
    return mount == shared_folder(mount.path)


def read(
    volumes: Sequence[Mapping[str, object]],
    mounts: Sequence[Mapping[str, object]],
    at: str,
    findings: Findings,
) -> MountedVolumes:
    """Return the places of the main container; `at` is the pointer of its pod."""
    by_name = {str(volume.get("name")): (index, volume) for index, volume in enumerate(volumes)}
    found = MountedVolumes()
    for mount in mounts:
        path, name = str(mount.get("mountPath", "")), str(mount.get("name", ""))
        index, volume = by_name.get(name, (0, None))
        if volume is None:
            findings.problem("no_such_volume", f"{at}/containers", keys.KUBERNETES, name=name)
            continue
        empty, read_only = as_object(volume.get("emptyDir")), mount.get("readOnly") is True
        if empty.get("medium") == "Memory" and path == SHARED_MEMORY:
            found.shm_mib = _read_size(empty.get("sizeLimit"), f"{at}/volumes/{index}/emptyDir", findings)
        elif (uri := _read_uri(volume, mount)) and path:
            found.mounts.append(Mount(uri=uri, path=path, read_only=read_only))
        elif _is_own(path) and sum(each.get("name") == name for each in mounts) == 1:
            options = _read_empty(volume, mount)
            if options is None:
                continue
            found.mounts.append(Mount(uri=_EMPTY, path=path, read_only=read_only, options=options))
        else:
            continue
        found.names[path] = name
    return found


def _read_size(size: object, where: str, findings: Findings) -> int | None:
    """Return the size of shared memory in MiB; None for a wrong one, or none."""
    exact = None if size is None else quantity(str(size))
    if exact is not None:
        return amounts.whole(exact / 2**20)
    if size is None:
        findings.note("shared_memory_unlimited", where)
    else:
        at, key, value = f"{where}/sizeLimit", "sizeLimit", str(size)[:60]
        findings.problem("not_an_amount", at, keys.KUBERNETES, key=key, value=value)
    return None


def _is_own(path: str) -> bool:
    """Tell whether a folder can be mounted there: shared memory is a resource of the role."""
    return path.startswith("/") and path != SHARED_MEMORY


def _read_empty(volume: Mapping[str, object], mount: Mapping[str, object]) -> dict[str, str] | None:
    """Return the options of an empty folder of the pod's own; None for another volume, or one that says more.

    A volume that names nothing is one too (Kubernetes API), and an empty `emptyDir` names nothing.
    """
    empty = volume.get("emptyDir") if volume.keys() - {"name"} else {}
    if not isinstance(empty, dict) or empty.keys() - _EMPTY_OPTIONS or any(map(mount.get, _PARTIAL)):
        return None
    options = {str(key): value for key, value in empty.items()}
    return options if all(isinstance(value, str) and value for value in options.values()) else None


def _read_uri(volume: Mapping[str, object], mount: Mapping[str, object]) -> str:
    """Return the URI of a volume's place; "" for one that only the cluster knows."""
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


def write(
    mounts: Sequence[Mount], shm_mib: int, names: Mapping[str, str]
) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the volumes of a pod, and where its main container mounts them.

    `names` are those that the volumes had, by path.
    """
    volumes: list[JsonObject] = []
    mounted: list[JsonObject] = []
    named: set[str] = set()
    for path, source, folder, read_only in _write_places(mounts, shm_mib):
        taken = named | set(names.values())
        name = names.get(path) or _free(taken, "shm" if path == SHARED_MEMORY else "volume")
        if name not in named:
            volumes.append({"name": name, **source})
        named.add(name)
        more = without_empty({"readOnly": read_only, "subPath": folder})
        mounted.append({"mountPath": path, "name": name, **more})
    return volumes, mounted


def _write_places(mounts: Sequence[Mount], shm_mib: int) -> Iterator[tuple[str, JsonObject, str, bool]]:
    """Yield path, volume, folder in it, and whether it is read-only."""
    seen: set[str] = set()
    if shm_mib != keys.DEFAULTS.shm_mib:
        seen.add(SHARED_MEMORY)
        memory: JsonObject = {"medium": "Memory", "sizeLimit": amounts.memory(shm_mib)}
        yield SHARED_MEMORY, {"emptyDir": memory}, "", False
    for mount in mounts:
        plain = mount.purpose is MountPurpose.DATA and not mount.id
        path = mount.path or mount.uri  # a folder of the node without a path is mounted where it is
        found = _write_source(mount) if plain and path.startswith("/") else None
        if found and path not in seen:
            seen.add(path)
            yield path, found[0], found[1], mount.read_only


def _write_source(mount: Mount) -> tuple[JsonObject, str] | None:
    """Return the volume of a place, and the folder in it; None for one that a cluster does not know."""
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
