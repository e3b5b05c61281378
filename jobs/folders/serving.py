"""Files of jobs over HTTP, for pages and API alike: one file, many as a zip file, and what is sent.

Whatever a job wrote is bytes to keep, and nothing that a browser would act on: only what begins like one of
four kinds of picture is called a picture.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import translation
from django.utils.http import http_date

from jobs.folders import acts, asking, names
from jobs.folders.asking import Asker, Shut
from jobs.folders.places import Place
from jobs.live import bodies
from jobs.live.bodies import Awaiting
from jobs.live.threads import aside
from jobs.messages.folders import folder_message, left_out
from quotas import origin
from quotas.models import Action
from quotas.origin import Origin

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

    range: str = ""
    if_range: str = ""
    head: bool = False


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
    try:
        answer = asking.ask(asker, place.task, "read", place.root, list(place.names), **_part(wanted))
    except Shut as shut:
        if shut.code != "range":
            raise
        return HttpResponse(status=416, headers={**_HEADERS, "Content-Range": f"bytes */{shut.name}"})
    told = answer.told
    if told["first"] == 0 and not wanted.head:
        acts.record(asker.user, place, Action.FILE_READ)
    headers = {
        **_HEADERS,
        "Content-Type": picture_of(bytes.fromhex(told["head"])) or "application/octet-stream",
        "Content-Disposition": names.attachment(place.name),
        "Content-Length": str(told["count"]),
        "Accept-Ranges": "bytes",
        "ETag": f'"{told["tag"]}"',
        "Last-Modified": http_date(told["time"]),
    }
    status = 200 if told["whole"] else 206
    if status == 206:
        last = told["first"] + told["count"] - 1
        headers["Content-Range"] = f"bytes {told['first']}-{last}/{told['size']}"
    if wanted.head:
        answer.close()
        return HttpResponse(status=status, headers=headers)
    return StreamingHttpResponse(answer.pieces(), status=status, headers=headers)


def _part(wanted: Wanted) -> dict[str, Any]:
    """One range of bytes; of several, and of what is none, the whole file, as the standard allows."""
    found = _RANGE.fullmatch(wanted.range.strip())
    if found is None:
        return {}
    first, last, ending = found.groups()
    tag = {"tag": wanted.if_range.strip().strip('"')} if wanted.if_range else {}
    if ending is not None:
        return {"first": -int(ending), "last": None, **tag} if int(ending) else {}
    if last is not None and int(last) < int(first):
        return {}
    return {"first": int(first), "last": int(last) if last else None, **tag}


def packed(asker: Asker, place: Place, chosen: Sequence[str]) -> HttpResponseBase:
    """A folder, or those of its entries that are chosen, as a zip file.  Raises Shut."""
    if len(chosen) > MOST_CHOSEN:
        raise Shut("too_many", place.name or place.root)
    more = {"chosen": list(chosen), "said": left_out()}
    answer = asking.ask(asker, place.task, "pack", place.root, list(place.names), **more)
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
    return StreamingHttpResponse(answer.pieces(), headers=headers)


Said = Callable[[int, Mapping[str, Any]], HttpResponse]
"""Makes an answer of a status and what there is to say: `size`, or `detail` and `code`."""


def received(asker: Asker, place: Place, length: str, *, replace: bool, say: Said) -> HttpResponseBase:
    """Have the body become the file `place`, whole or not at all.  Raises Shut before any of it is read."""
    most = settings.CONSOLE_UPLOAD_MIB * MIB
    if not place.names:
        raise Shut("name")
    if length.isdecimal() and int(length) > most:
        raise Shut("too_large")
    around = place.folder
    more = {"name": place.name, "most": most, "replace": replace}
    answer = asking.ask(asker, place.task, "put", around.root, list(around.names), **more)
    language, whence = translation.get_language(), origin.current()

    async def take(body: Any) -> HttpResponse:
        with translation.override(language):
            try:
                told = await answer.put(body)
            except Shut as shut:
                return say(status_of(shut), {"detail": sentence_of(shut), "code": shut.code})
            except bodies.Gone:
                return say(499, {"detail": "", "code": "broke_off"})
        await aside(_written, whence, asker, place)
        return say(201, {"size": told["size"]})

    return Awaiting(take)


def _written(whence: Origin, asker: Asker, place: Place) -> None:
    with origin.of(whence):  # which the thread of a stream does not know
        acts.record(asker.user, place, Action.FILE_UPLOAD)


def change(asker: Asker, place: Place, do: str, **more: Any) -> None:
    """`make` the folder `name`, `rename` `name` `to` another, or `remove` what is `chosen`.  Raises Shut."""
    act, about, rest = {
        "make": (Action.FILE_FOLDER, more.get("name"), ()),
        "rename": (Action.FILE_RENAME, more.get("name"), (more.get("to"),)),
        "remove": (Action.FILE_DELETE, None, more.get("chosen", ())),
    }[do]
    if len(rest) > MOST_CHOSEN:
        raise Shut("too_many", place.name or place.root)
    asking.tell(asker, place.task, do, place.root, list(place.names), **more)
    what = place.inner(str(about)) if about else place
    acts.record(asker.user, what, act, [str(each) for each in rest])


def when(seconds: float | None) -> datetime | None:
    """A file's time; None for one that no calendar has."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
