"""Orders for the data mover where it can reach no more than the job's command: on nodes, and in pods.

Nothing keeps such a job from any address, and so nothing keeps the data mover (`inside` is None).  Objects of
a mapped bucket are read by addresses that the console signs at submission: its keys stay in the console.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jobs.backends.base import NotSubmitted, Submission
from jobs.backends.refusals import refusal
from jobs.backends.staging import bucket_requests, code_sources, remotes
from jobs.backends.staging.mounts import fill_names
from jobs.backends.staging.remotes import Remote
from jobs.backends.staging.storage_map import find_storage
from jobs.dialects import placeholders
from jobs.facilities import HDFS, STORES, StorageMapping, without_login
from jobs.spec import CodeSource, Mount, MountPurpose

Order = dict[str, Any]

SIGNED: Final = "signed:"
"""In place of an address: each object has one of its own."""

CODE_BYTES: Final = 2 << 30
"""At most as much is unpacked of an archive, or fetched of an HDFS."""

_SIGNING_S: Final = 30
"""The timeout of signing the addresses of a bucket's objects."""


def order_code(
    source: CodeSource, submission: Submission, namenodes: Mapping[str, str], most: int = CODE_BYTES
) -> Order:
    """Return the order for code that needs no git, without its login.  Raises Refused."""
    shown = without_login(source.uri)
    scheme = shown.partition(":")[0]
    if source.branch or source.commit:
        raise refusal("code_address", place=shown)
    if _find_bucket(submission, "", source.uri) is not None:
        return order_fetch(Remote(SIGNED, shown), most, unpack=True)
    if scheme in STORES:
        raise refusal("code_elsewhere", place=shown)
    if scheme != HDFS:
        return order_fetch(Remote(shown, shown), most, unpack=True)
    place = remotes.DataRules(hdfs=namenodes).read(source.uri, {})
    if place is None:
        raise refusal("code_not_allowed", place=shown, setting=HDFS)
    return order_fetch(place, most, user=submission.person.name, unpack=True)


def login_for_code(source: CodeSource, submission: Submission) -> dict[str, str]:
    """Return what is added to the order for code with a login in its address."""
    if source.uri.startswith(f"{HDFS}://"):  # to which everybody is known by the own name
        return {}
    login = placeholders.fill(code_sources.login_of(source.uri), submission.secrets)
    user, _, password = login.partition(":")
    return {"user": user, "password": password} if login else {}


def order_bucket(mount: Mount, uri: str) -> Order:
    """Return the order for a mount of a mapped bucket, whose filled address is `uri`.

    Raises Refused where the job may write to it.
    """
    refuse_writing(mount, without_login(uri) or mount.id)
    return order_fetch(Remote(SIGNED, mount.id or without_login(uri)), remotes.DataRules().most_bytes)


def refuse_writing(mount: Mount, shown: str) -> None:
    """Raise Refused for a mount that may be written to, where data is only copied in."""
    if mount.purpose is MountPurpose.OUTPUT or not mount.read_only:
        raise refusal("bucket_not_writable", place=shown)


def order_fetch(place: Remote, most: int, **more: str | bool) -> Order:
    """Return the order to fetch at most so many bytes, without a cache."""
    where = {"name": place.shown, "uri": place.uri, "endpoint": place.endpoint}
    order = {"do": "fetch", **where, "most": most, "inside": None, "site": ""}
    return {**order, "user": "", "password": "", "cache": "", "cache_most": 0, **more}


def sign_buckets(submission: Submission) -> dict[str, list[Any]]:
    """Return the signed addresses of the objects in each mapped bucket that a job reads, by its order's name.

    Raises NotSubmitted where a bucket does not answer.
    """
    found: dict[str, list[Any]] = {}
    for name, mapping in _list_buckets(submission):
        try:
            found[name] = bucket_requests.sign(mapping, _SIGNING_S, remotes.DataRules().most_bytes)
        except bucket_requests.BucketError as error:
            detail = str(error) or f"no answer in {_SIGNING_S} s"
            raise NotSubmitted.not_sent(detail) from error
    return found


def _list_buckets(submission: Submission) -> Iterator[tuple[str, StorageMapping]]:
    spec = submission.spec
    if spec.code is not None and code_sources.needs_no_git(spec.code):
        mapping = _find_bucket(submission, "", spec.code.uri)
        if mapping is not None:
            yield without_login(spec.code.uri), mapping
    for mount in spec.mounts:
        uri = fill_names(mount.uri, spec.name, submission.person.name)
        mapping = _find_bucket(submission, mount.id, uri)
        if mapping is not None and (mount.path or mapping.path):
            yield mount.id or without_login(uri), mapping


def _find_bucket(submission: Submission, id_: str, uri: str) -> StorageMapping | None:
    mapping = find_storage(submission.storage, id_, uri, submission.workspace)
    return mapping if mapping is not None and mapping.bucket else None
