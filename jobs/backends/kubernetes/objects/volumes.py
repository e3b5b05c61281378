"""Volumes of a pod: its working folder, shared memory, and the places that its job mounts.

A folder of the nodes is mounted as the folder that an admin names with the rest as a `subPath`, since the
kubelet follows no link out of that.  Claims are those of the job's own namespace.  Data of buckets and of an
HDFS is fetched into empty volumes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jobs.backends.base import Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.objects.code import find_path, find_source, is_mapped
from jobs.backends.refusals import refusal
from jobs.backends.staging import remotes
from jobs.backends.staging.mounts import INNER_DATA, fill_names
from jobs.backends.staging.storage_map import apply_mapping, find_storage
from jobs.backends.staging.transfer_orders import Order, order_bucket, order_fetch, refuse_writing
from jobs.facilities import lies_in, local_path, without_login
from jobs.node.frameworks import registry
from jobs.node.sandbox.folders import NEVER, Requester, parts_of
from jobs.node.staging import mount_paths
from jobs.node.staging.mount_paths import SHARED_MEMORY, WORK
from jobs.spec import Mount, MountPurpose, RoleSpec

Object = dict[str, Any]

DEFAULT_SHM_MIB: Final = 64
"""What a container has without a volume."""

_CLAIM: Final = re.compile(r"pvc://(?P<name>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)(/(?P<folder>.*))?")
_EXPORT: Final = re.compile(r"nfs://(?P<server>[A-Za-z0-9.-]+)(?P<path>/.*)")
_EMPTY: Final = "emptydir://"
_SIZE: Final = re.compile(r"[0-9]+(\.[0-9]+)?([KMGT]i?|[kmEP])?")


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume's source, a folder in it, and where it is mounted; the data mover's `order` fills it."""

    source: Object
    path: str
    folder: str = ""
    read_only: bool = False
    order: Order | None = None

    def mount(self, name: str) -> Object:
        """Return the container's part of it."""
        found: Object = {"name": name, "mountPath": self.path}
        if self.folder:
            found["subPath"] = self.folder
        if self.read_only:
            found["readOnly"] = True
        return found


def list_volumes(submission: Submission, role: RoleSpec, config: KubernetesConfig) -> list[Volume]:
    """Return the volumes of a role's pods.  Raises Refused."""
    found = [Volume({"emptyDir": {}}, WORK)]
    shm_mib = max(role.resources.shm_mib, registry.count_shared_memory_mib(submission.spec))
    if shm_mib > DEFAULT_SHM_MIB:
        found.append(Volume({"emptyDir": {"medium": "Memory", "sizeLimit": f"{shm_mib}Mi"}}, SHARED_MEMORY))
    found += list_mounts(submission, config)
    shared = {mount_paths.locate(path) for path in role.shared_paths}
    found += [Volume({"emptyDir": {}}, path) for path in sorted(shared - {each.path for each in found})]
    path = find_path(source) if (source := find_source(submission)) is not None else WORK
    if not any(lies_in(path, each.path) for each in found):
        found.append(Volume({"emptyDir": {}}, path))
    _check_paths(found[1:])
    return found


def list_mounts(submission: Submission, config: KubernetesConfig) -> list[Volume]:
    """Return the volumes that the job file mounts.  Raises Refused."""
    return list(_mounts(submission, config))


def list_fetched(submission: Submission, config: KubernetesConfig) -> list[Volume]:
    """Return those that the data mover fills.  Raises Refused."""
    return [volume for volume in list_mounts(submission, config) if volume.order]


def is_data_dir(submission: Submission, mount: Mount, config: KubernetesConfig) -> bool:
    """Return whether a mount is OpenPAI's dataDir in an HDFS that the settings know."""
    is_told = mount.purpose is MountPurpose.DATA and not (mount.path or is_mapped(submission, mount))
    return is_told and bool(remotes.DataRules(hdfs=config.hdfs).namenode(mount.uri))


def _mounts(submission: Submission, config: KubernetesConfig) -> Iterator[Volume]:
    for mount in submission.spec.mounts:
        if is_data_dir(submission, mount, config):
            mount = mount.model_copy(update={"path": INNER_DATA, "read_only": True})  # noqa: PLW2901
        uri = fill_names(mount.uri, submission.spec.name, submission.person.name)
        path = mount.path and mount_paths.locate(mount.path)
        storage = find_storage(submission.storage, mount.id, uri, submission.workspace)
        if storage is None and not mount.uri:
            raise refusal("mount_unknown", id=mount.id)
        if storage is not None:
            mount, path = apply_mapping(mount, storage, path)  # noqa: PLW2901
        if storage is not None and storage.bucket:
            if path:
                yield _plan_fetched(mount, path, order_bucket(mount, uri))
            continue
        uri = storage.folder if storage else uri
        if not path and local_path(uri) is None:
            if uri.startswith(_EMPTY) or storage:
                raise refusal("mount_without_path", id=mount.id or uri)
            continue  # OpenPAI's directories are only told to the job
        yield _volume(submission, config, mount, uri, path)


def _plan_fetched(mount: Mount, path: str, order: Order) -> Volume:
    return Volume({"emptyDir": _empty_options(mount)}, path, read_only=True, order=order)


def _volume(submission: Submission, config: KubernetesConfig, mount: Mount, uri: str, path: str) -> Volume:
    read_only, place = mount.read_only, local_path(uri)
    if place is not None:
        return _node_folder(submission, config, mount, place, path)
    if uri.startswith(_EMPTY):
        return Volume({"emptyDir": _empty_options(mount)}, path, read_only=read_only)
    if claim := _CLAIM.fullmatch(uri):
        if claim["name"].startswith(f"{submission.key.partition('-')[0]}-"):
            raise refusal("mount_not_allowed", place=uri)  # checkpoints of another job
        source = {"persistentVolumeClaim": {"claimName": claim["name"]}}
        return Volume(source, path, _inner(uri, claim["folder"] or ""), read_only)
    if export := _EXPORT.fullmatch(uri):
        return _export(config, uri, export, path, submission.workspace, read_only=read_only)
    rules = remotes.DataRules(hdfs=config.hdfs)
    if rules.namenode(uri) and (remote := rules.read(uri, {})) is not None:
        refuse_writing(mount, remote.shown)
        return _plan_fetched(mount, path, order_fetch(remote, rules.most_bytes, user=submission.person.name))
    raise refusal("mount_elsewhere", place=without_login(uri), path=path)


def _node_folder(
    submission: Submission, config: KubernetesConfig, mount: Mount, place: str, path: str
) -> Volume:
    """Return the volume of a folder of the nodes that an admin has named."""
    parts = parts_of(place)
    asker = Requester(submission.workspace, submission.person.name)
    rule = max(
        (each for each in config.folders if each.covers(parts)),
        key=lambda each: (len(each.parts), -each.parts.count("{user}")),
        default=None,
    )
    inner = [each for each in config.folders if each.lies_in(parts)]
    is_never = any(parts[: len(each)] == each for each in map(parts_of, NEVER))
    if (
        rule is None
        or is_never
        or ".." in parts
        or not all(each.admits(asker, parts) for each in (rule, *inner))
    ):
        workspace = submission.workspace
        raise refusal("mount_not_allowed", place=place, workspace=workspace, setting="folders")
    can_write = all(each.write for each in (rule, *inner))
    if mount.purpose is MountPurpose.OUTPUT and not can_write:
        raise refusal("mount_read_only", place=place, setting="folders")
    named = len(rule.parts)
    source = {"hostPath": {"path": "/" + "/".join(parts[:named]), "type": "Directory"}}
    folder = "/".join(parts[named:])
    return Volume(source, path or mount_paths.normalize(place), folder, mount.read_only or not can_write)


def _export(
    config: KubernetesConfig, uri: str, export: re.Match[str], path: str, workspace: str, *, read_only: bool
) -> Volume:
    """Return the volume of a folder in an NFS export that an admin has named."""
    for each in config.exports:
        server, _, root = each.partition(":")
        named, asked = parts_of(root), parts_of(export["path"])
        if server == export["server"] and asked[: len(named)] == named and ".." not in asked:
            source = {"nfs": {"server": server, "path": root}}
            return Volume(source, path, "/".join(asked[len(named) :]), read_only)
    raise refusal("mount_not_allowed", place=uri, workspace=workspace, setting="exports")


def _empty_options(mount: Mount) -> Object:
    found: Object = {}
    if mount.options.get("medium") == "Memory":
        found["medium"] = "Memory"
    if _SIZE.fullmatch(size := mount.options.get("sizeLimit", "")):
        found["sizeLimit"] = size
    return found


def _inner(uri: str, folder: str) -> str:
    """Return a folder in a claim.  Raises Refused for one that leads out of it."""
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise refusal("mount_not_allowed", place=uri)
    return "/".join(parts)


def _check_paths(volumes: list[Volume]) -> None:
    """Refuse paths of the system, and one inside another."""
    for volume in volumes:
        if volume.path != SHARED_MEMORY and not mount_paths.is_free(volume.path):
            raise refusal("mount_over", path=volume.path)
    if (twice := mount_paths.clash(volume.path for volume in volumes)) is not None:
        raise refusal("mount_twice", path=twice)
