"""Storage of this site that stands for ids and addresses of other systems, as the admins' mappings say."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.backends.base import Refused
from jobs.facilities import StorageMapping, find_mapping, without_login
from jobs.states import Reason, ReasonCode


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
        raise _refusal("storage_not_allowed", id_ or address, workspace)
    rest = "" if name == id_ else address[len(name) :].strip("/")
    if ".." in rest.split("/"):
        raise _refusal("mount_not_allowed", address, workspace)
    return mappings[name].below(rest)


def _refusal(why: str, place: str, workspace: str) -> Refused:
    return Refused(Reason(ReasonCode.REFUSED, {"why": why, "place": place, "workspace": workspace}))
