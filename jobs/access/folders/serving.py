"""Files of jobs over HTTP, for pages and API alike: one file, many as a zip file, and what is sent.

Whatever a job wrote is bytes to keep, and nothing that a browser would act on: only what begins like one of
four kinds of picture is called a picture.
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

from jobs.access.folders import acts, names
from jobs.access.folders.client import Asker, OpenFile, Shut, connect
from jobs.access.folders.places import Place
from jobs.live import bodies
from jobs.live.bodies import Awaiting
from jobs.live.threads import aside
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
class Wanted:
    """How somebody asks for a file, by which headers."""

    range: str
    if_range: str
    head: bool

    @classmethod
    def by(cls, request: HttpRequest) -> Self:
        """What a request's headers say."""
        headers = request.headers
        return cls(headers.get("Range", ""), headers.get("If-Range", ""), request.method == "HEAD")


def status_of(shut: Shut) -> int:
    """The status of the answer; 503 for what may be otherwise in a moment."""
    return _STATUS.get(shut.code, 503)


def sentence_of(shut: Shut) -> str:
    """What is said of it."""
    name = names.legible(shut.name)
    return folder_message(shut.code, {"name": name, "most": settings.CONSOLE_UPLOAD_MIB})


def picture_of(head: bytes) -> str:
    """The type of a picture that a file begins like; empty for none."""
    return next((kind for kind, begins in _PICTURES if begins.match(head)), "")


def content(asker: Asker, place: Place, wanted: Wanted) -> HttpResponseBase:
    """A file, or the one part of it that is asked for.  Raises Shut."""
    with connect(asker, place.task) as client:
        file = client.open_file(place.path)
        part = _part(wanted, file)
        first, count = part or (0, file.size)
        if part is not None and count <= 0:
            return HttpResponse(status=416, headers={**_HEADERS, "Content-Range": f"bytes */{file.size}"})
        pieces = None if wanted.head else client.download(file, first, count)
    if first == 0 and not wanted.head:
        acts.record(asker.user, place, Action.FILE_READ)
    headers = {
        **_HEADERS,
        "Content-Type": picture_of(bytes.fromhex(file.head)) or "application/octet-stream",
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


def _part(wanted: Wanted, file: OpenFile) -> tuple[int, int] | None:
    """Where one range of bytes begins, and how many it has; of several, of what is none, and of another file
    than `If-Range` names the whole one (None), as the standard allows.
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


def packed(asker: Asker, place: Place, chosen: Sequence[str]) -> HttpResponseBase:
    """A folder, or those of its entries that are chosen, as a zip file.  Raises Shut."""
    if len(chosen) > MOST_CHOSEN:
        raise Shut("too_many", place.name or place.root)
    with connect(asker, place.task) as client:
        pieces = client.archive(place.path, chosen, left_out())
    acts.record(asker.user, place, Action.FILE_ZIP, chosen)
    name = (
        chosen[0]
        if len(chosen) == 1
        else place.name or f"{place.job.name}-{place.task.role}-{place.task.index}"
    )
    headers = {
        **_HEADERS,
        "Content-Type": "application/zip",
        "Content-Disposition": names.attachment(f"{name}.zip"),
    }
    return StreamingHttpResponse(pieces, headers=headers)


Said = Callable[[int, Mapping[str, Any]], HttpResponse]
"""Makes an answer of a status and what there is to say: `size`, or `detail` and `code`."""


def received(asker: Asker, place: Place, length: str, *, replace: bool, say: Said) -> HttpResponseBase:
    """Have the body become the file `place`, whole or not at all.  Raises Shut before any of it is read."""
    most = settings.CONSOLE_UPLOAD_MIB * MIB
    if not place.names:
        raise Shut("name")
    if length.isdecimal() and int(length) > most:
        raise Shut("too_large")
    with connect(asker, place.task) as client:
        upload = client.upload(place.path, replace=replace)
    language, whence = translation.get_language(), origin.current()

    async def take(body: Any) -> HttpResponse:
        with translation.override(language):
            try:
                size = await upload(body, most)
            except Shut as shut:
                return say(status_of(shut), {"detail": sentence_of(shut), "code": shut.code})
            except bodies.Gone:
                return say(499, {"detail": "", "code": "broke_off"})
        await aside(_written, whence, asker, place)
        return say(201, {"size": size})

    return Awaiting(take)


def _written(whence: Origin, asker: Asker, place: Place) -> None:
    with origin.of(whence):  # which the thread of a stream does not know
        acts.record(asker.user, place, Action.FILE_UPLOAD)


def make_folder(asker: Asker, place: Place) -> None:
    """Raises Shut."""
    with connect(asker, place.task) as client:
        client.make_folder(place.path)
    acts.record(asker.user, place, Action.FILE_FOLDER)


def rename(asker: Asker, place: Place, to: str) -> None:
    """Give it another name.  Raises Shut."""
    if not place.names:
        raise Shut("name")
    with connect(asker, place.task) as client:
        client.rename(place.path, place.folder.inner(to).path)
    acts.record(asker.user, place, Action.FILE_RENAME, [to])


def remove(asker: Asker, place: Place, chosen: Sequence[str]) -> None:
    """Remove those entries of a folder.  Raises Shut."""
    if len(chosen) > MOST_CHOSEN:
        raise Shut("too_many", place.name or place.root)
    with connect(asker, place.task) as client:
        client.remove(place.path, chosen)
    acts.record(asker.user, place, Action.FILE_DELETE, chosen)


def when(seconds: float | None) -> datetime | None:
    """A file's time; None for one that no calendar has."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
