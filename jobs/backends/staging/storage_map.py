"""Storage of this site that stands for ids and addresses of other systems, as the admins' mappings say."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.backends.refusals import refusal
from jobs.facilities import StorageMapping, find_mapping, without_login
from jobs.node.staging import mount_paths
from jobs.spec import Mount, MountPurpose


def find_storage(
    mappings: Mapping[str, StorageMapping], id_: str, uri: str, workspace: str
) -> StorageMapping | None:
    """Return the storage that stands for an id or an address, or for the longest address around that.

    Raises Refused for jobs of a workspace that may not use it, and for an address that leads out of it.
    """
    address = without_login(uri)
    name = find_mapping(mappings, id_, address)
    if name is None:
        return None
    if not mappings[name].is_admitted:
        raise refusal("storage_not_allowed", place=id_ or address, workspace=workspace)
    rest = "" if name == id_ else address[len(name) :].strip("/")
    if ".." in rest.split("/"):
        raise refusal("mount_not_allowed", place=address, workspace=workspace)
    return mappings[name].below(rest)


def apply_mapping(mount: Mount, mapping: StorageMapping, path: str) -> tuple[Mount, str]:
    """Return a mount, and its path in the job, with what the mapping says of them.

    Raises Refused for a mount without a path, and for an output where nothing may be written.
    """
    path = path or (mapping.path and mount_paths.locate(mapping.path))
    if not path and mount.id:
        raise refusal("mount_without_path", id=mount.id)
    if mapping.read_only and mount.purpose is MountPurpose.OUTPUT:
        raise refusal("storage_read_only", place=without_login(mount.uri) or mount.id)
    return mount.model_copy(update={"read_only": mount.read_only or mapping.read_only}), path
