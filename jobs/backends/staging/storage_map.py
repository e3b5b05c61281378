"""Storage of this site that stands for ids and addresses of other systems, as the admins' mappings say."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.backends.refusals import refusal
from jobs.facilities import StorageMapping, find_mapping, without_login


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
