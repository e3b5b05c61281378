"""Files of jobs over HTTP, for pages and API alike: one file, many as a zip file, and what is sent.

Whatever a job wrote is bytes to keep, and nothing that a browser would act on: only what begins like one of
four kinds of picture is called a picture, and a drawing (SVG) by its name and beginning.  No script of a
drawing runs in an `img`, and as a page of its own it is downloaded and, by its headers, in a sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import translation
from django.utils.http import http_date

from jobs.access.folders import file_audit, names
from jobs.access.folders.client import Asker, FolderRefused, OpenFile, connect
from jobs.access.folders.locations import FolderLocation
from jobs.live import bodies
from jobs.live.bodies import Awaiting
from jobs.live.thread_pool import run_in_thread
from jobs.messages.folders import folder_message, left_out
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import Action

MIB: Final = 1024 * 1024
MOST_CHOSEN: Final = 5000

_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}
_PICTURES: Final = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
)
DRAWING: Final = "image/svg+xml"
_SVG_TAG: Final = re.compile(rb"<svg\b[^>]*>", re.IGNORECASE)
_SVG_LENGTH: Final = re.compile(rb"""\s(?:width|height)\s*=\s*["']\s*[0-9.]+[a-z]{0,2}\s*["']""")
_DRAWING: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:svg|\?xml|!--|!DOCTYPE svg)", re.IGNORECASE)
_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))")

_STATUS: Final = {
    "name": 400,
    "is_folder": 400,
    "denied": 403,
    "link": 403,
    "special": 403,
    "linked": 403,
    "read_only": 403,
    "nowhere": 404,
    "not_begun": 404,
    "no_root": 404,
    "absent": 404,
    "gone": 404,
    "ended": 409,
    "exists": 409,
    "mounted": 409,
    "changed": 409,
    "too_large": 413,
    "too_many": 413,
    "range": 416,
    "busy_person": 429,
    "no_exec": 501,
    "full": 507,
}


@dataclass(frozen=True, slots=True)
class FileRequest:
    """The headers with which a file is requested."""

    range: str
    if_range: str
    head: bool

    @classmethod
    def by(cls, request: HttpRequest) -> Self:
        """Read a request's headers."""
        headers = request.headers
        return cls(headers.get("Range", ""), headers.get("If-Range", ""), request.method == "HEAD")


def status_of(shut: FolderRefused) -> int:
    """The status of the answer; 503 for what may be otherwise in a moment."""
    return _STATUS.get(shut.code, 503)


def sentence_of(shut: FolderRefused) -> str:
    """Return the sentence for a refusal."""
    name = names.legible(shut.name)
    return folder_message(shut.code, {"name": name, "most": settings.CONSOLE_UPLOAD_MIB})


def has_size(data: bytes) -> bool:
    """Tell whether a drawing says how large it is; else a browser gives it all the room there is."""
    tag = _SVG_TAG.search(data)
    return tag is not None and _SVG_LENGTH.search(tag[0]) is not None


def picture_of(head: bytes, name: str) -> str:
    """The type of a picture that a file begins like; empty for none."""
    if name.lower().endswith(".svg") and _DRAWING.match(head):
        return DRAWING
    return next((kind for kind, begins in _PICTURES if begins.match(head)), "")


def content(asker: Asker, place: FolderLocation, wanted: FileRequest) -> HttpResponseBase:
    """A file, or the one part of it that is asked for.  Raises Shut."""
    with connect(asker, place.replica) as client:
        file = client.open_file(place.path)
        part = _part(wanted, file)
        first, count = part or (0, file.size)
        if part is not None and count <= 0:
            return HttpResponse(status=416, headers={**_HEADERS, "Content-Range": f"bytes */{file.size}"})
        pieces = None if wanted.head else client.download(file, first, count)
    if first == 0 and not wanted.head:
        file_audit.record(asker.user, place, Action.FILE_READ)
    headers = {
        **_HEADERS,
        "Content-Type": picture_of(bytes.fromhex(file.head), place.name) or "application/octet-stream",
        "Content-Disposition": names.attachment(place.name),
        "Content-Length": str(count),
        "Accept-Ranges": "bytes",
        "ETag": f'"{file.tag}"',
        "Last-Modified": http_date(file.time),
    }
    if part is not None:
        headers["Content-Range"] = f"bytes {first}-{first + count - 1}/{file.size}"
    status = 200 if part is None else 206
    if pieces is None:
        return HttpResponse(status=status, headers=headers)
    return StreamingHttpResponse(pieces, status=status, headers=headers)


def _part(wanted: FileRequest, file: OpenFile) -> tuple[int, int] | None:
    """Return the beginning and the length of the requested range; None for the whole file.

    As the standard allows, the whole file answers several ranges, a malformed one, and one of another version
    of the file than `If-Range` names.
    """
    found = _RANGE.fullmatch(wanted.range.strip())
    if found is None or (wanted.if_range and wanted.if_range.strip().strip('"') != file.tag):
        return None
    first, last, ending = found.groups()
    if ending is not None:
        count = min(int(ending), file.size)
        return (file.size - count, count) if int(ending) else None
    if last is not None and int(last) < int(first):
        return None
    return int(first), min(int(last or file.size), file.size - 1) - int(first) + 1


def zip_folder(asker: Asker, place: FolderLocation, chosen: Sequence[str]) -> HttpResponseBase:
    """A folder, or those of its entries that are chosen, as a zip file.  Raises Shut."""
    if len(chosen) > MOST_CHOSEN:
        raise FolderRefused("too_many", place.name or place.root)
    with connect(asker, place.replica) as client:
        pieces = client.archive(place.path, chosen, left_out())
    file_audit.record(asker.user, place, Action.FILE_ZIP, chosen)
    name = (
        chosen[0]
        if len(chosen) == 1
        else place.name or f"{place.job.name}-{place.replica.role}-{place.replica.index}"
    )
    headers = {
        **_HEADERS,
        "Content-Type": "application/zip",
        "Content-Disposition": names.attachment(f"{name}.zip"),
    }
    return StreamingHttpResponse(pieces, headers=headers)


Said = Callable[[int, Mapping[str, Any]], HttpResponse]
"""Makes an answer of a status and what there is to say: `size`, or `detail` and `code`."""


def receive_file(
    asker: Asker, place: FolderLocation, length: str, *, replace: bool, say: Said
) -> HttpResponseBase:
    """Receive the body as the file `place`, whole or not at all.  Raises Shut before it is read."""
    most = settings.CONSOLE_UPLOAD_MIB * MIB
    if not place.names:
        raise FolderRefused("name")
    if length.isdecimal() and int(length) > most:
        raise FolderRefused("too_large")
    with connect(asker, place.replica) as client:
        upload = client.upload(place.path, replace=replace)
    language, request_origin = translation.get_language(), origin.current()

    async def take(body: Any) -> HttpResponse:
        with translation.override(language):
            try:
                size = await upload(body, most)
            except FolderRefused as shut:
                return say(status_of(shut), {"detail": sentence_of(shut), "code": shut.code})
            except bodies.SenderGone:
                return say(499, {"detail": "", "code": "broke_off"})
        await run_in_thread(_record_upload, request_origin, asker, place)
        return say(201, {"size": size})

    return Awaiting(take)


def _record_upload(request_origin: Origin, asker: Asker, place: FolderLocation) -> None:
    with origin.of(request_origin):  # which the thread of a stream does not know
        file_audit.record(asker.user, place, Action.FILE_UPLOAD)


def make_folder(asker: Asker, place: FolderLocation) -> None:
    """Make a folder.  Raises Shut."""
    with connect(asker, place.replica) as client:
        client.make_folder(place.path)
    file_audit.record(asker.user, place, Action.FILE_FOLDER)


def rename(asker: Asker, place: FolderLocation, to: str) -> None:
    """Rename an entry.  Raises Shut."""
    if not place.names:
        raise FolderRefused("name")
    with connect(asker, place.replica) as client:
        client.rename(place.path, place.folder.inner(to).path)
    file_audit.record(asker.user, place, Action.FILE_RENAME, [to])


def remove(asker: Asker, place: FolderLocation, chosen: Sequence[str]) -> None:
    """Remove those entries of a folder.  Raises Shut."""
    if len(chosen) > MOST_CHOSEN:
        raise FolderRefused("too_many", place.name or place.root)
    with connect(asker, place.replica) as client:
        client.remove(place.path, chosen)
    file_audit.record(asker.user, place, Action.FILE_DELETE, chosen)


def when(seconds: float | None) -> datetime | None:
    """A file's time; None for one that no calendar has."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
