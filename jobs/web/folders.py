"""The Files tab: what lies in the folders of a job's replicas, to look at, keep, add to and change.

Files may hold anything that the job was given, so that they are for those who may enter it, also after its
end, and not for whoever may read a public job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.contrib import messages as notes
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from jobs.access import entries
from jobs.access.folders import acts, names, serving, text
from jobs.access.folders.client import Asker, OpenFile, Shut, connect
from jobs.access.folders.kept import kept_until
from jobs.access.folders.places import Place, find
from jobs.access.folders.serving import Wanted
from jobs.live.bodies import takes_body
from jobs.models import Job
from jobs.submission.access import find_job
from jobs.web.connect import MOST_REPLICAS
from jobs.web.http import SignedIn, signed_in
from quotas.access import Verb
from quotas.accounts import sessions
from quotas.models import Action

PAGE: Final = 200
LARGEST_PICTURE: Final = 20 * serving.MIB
SORTS: Final = ("name", "size", "time")
_FURTHEST: Final = 10**15


@dataclass(frozen=True, slots=True)
class Row:
    """An entry of a folder."""

    name: str
    key: str
    kind: str
    size: int | None
    when: datetime | None
    target: str
    hidden: bool
    query: str


@dataclass(frozen=True, slots=True)
class Crumb:
    """A folder on the way."""

    name: str
    query: str


@dataclass(frozen=True, slots=True)
class Column:
    """A heading by which a folder can be sorted."""

    name: str
    label: str
    query: str
    sorted: str


# --- the tab ----------------------------------------------------------------------------------------------


def files(request: SignedIn, job: Job) -> dict[str, Any]:
    """What the tab shows: a folder, a file, or why neither can be seen."""
    tasks = list(entries.current_tasks(job).select_related("attempt").order_by("ordinal")[:MOST_REPLICAS])
    query = names.query(request.META.get("QUERY_STRING", ""))
    context: dict[str, Any] = {"tasks": tasks, "task": None, "file_acts": acts.latest(job)}
    try:
        place = find(job, query)
        context |= {
            "task": place.task,
            "place": place,
            "kept_until": kept_until(place.task.attempt),
            "forgotten_at": place.task.attempt.forgotten_at,
        }
        return context | _seen(request, place, query)
    except Shut as shut:
        return context | {"shut": shut.code, "shut_text": serving.sentence_of(shut)}


def _seen(request: SignedIn, place: Place, query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    sort, down, offset = _order(query)
    with connect(_asker(request), place.task) as client:
        found = client.look(place.path, sort, offset, PAGE, down=down)
        count = min(text.PIECE, found.size - offset) if isinstance(found, OpenFile) else 0
        data = client.read(found, offset, count) if isinstance(found, OpenFile) else b""
    roots = [{**root, "query": Place(place.job, place.task, root["name"], ()).query} for root in client.roots]
    label = next((root["label"] for root in roots if root["name"] == place.root), place.root)
    context = {
        "roots": roots,
        "crumbs": _crumbs(place, label),
        "live": client.live,
        "most_upload": settings.CONSOLE_UPLOAD_MIB * serving.MIB,
        "listing": not isinstance(found, OpenFile),
    }
    if isinstance(found, OpenFile):
        return context | _file(request, place, found, offset, data, query)
    return context | _folder(place, found, sort, down=down)


def _order(query: Mapping[str, Sequence[str]]) -> tuple[str, bool, int]:
    sort = query.get("sort", ["name"])[-1]
    offset = query.get("from", ["0"])[-1]
    at = int(offset) if offset.isascii() and offset.isdecimal() and len(offset) < 16 else 0
    return sort if sort in SORTS else "name", query.get("down") == ["1"], min(at, _FURTHEST)


def _crumbs(place: Place, label: str) -> list[Crumb]:
    roots = [Crumb(label, Place(place.job, place.task, place.root, ()).query)]
    way = [
        Crumb(names.legible(name), Place(place.job, place.task, place.root, place.names[: count + 1]).query)
        for count, name in enumerate(place.names)
    ]
    return roots + way


def _folder(place: Place, told: Mapping[str, Any], sort: str, *, down: bool) -> dict[str, Any]:
    rows = [_row(place, row) for row in told["rows"]]
    order = f"{place.query}&sort={sort}&down={int(down)}"
    first, last = told["offset"], told["offset"] + len(rows)
    labels = {"name": _("Name"), "size": _("Size"), "time": _("Modified")}
    return {
        "rows": rows,
        "hidden_rows": sum(row.hidden for row in rows),
        "total": told["total"],
        "cut": told["cut"],
        "first": first + 1 if rows else first,
        "last": last,
        "previous_query": f"{order}&from={max(0, first - PAGE)}" if first else "",
        "next_query": f"{order}&from={last}" if last < told["total"] else "",
        "columns": [_column(place, name, label, sort, down=down) for name, label in labels.items()],
    }


def _column(place: Place, name: str, label: str, sort: str, *, down: bool) -> Column:
    current = name == sort
    turned = int(not down) if current else int(name != "name")
    order = "descending" if down else "ascending"
    return Column(name, label, f"{place.query}&sort={name}&down={turned}", order if current else "")


def _row(place: Place, row: Mapping[str, Any]) -> Row:
    name = row["name"]
    return Row(
        name=names.legible(name),
        key=names.quoted(name),
        kind=row["kind"],
        size=row["size"],
        when=serving.when(row["time"]),
        target=names.legible(row["target"]),
        hidden=name.startswith("."),
        query=place.inner(name).query,
    )


def _file(
    request: SignedIn,
    place: Place,
    file: OpenFile,
    first: int,
    data: bytes,
    query: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    if first == 0:
        acts.record(request.user, place, Action.FILE_READ)
    encoding = query.get("as", [""])[-1]
    picture = serving.picture_of(bytes.fromhex(file.head))
    shown = text.piece(data, first, file.size, encoding)
    more = f"{place.query}&from={shown.after}&as={shown.encoding}" if shown.after < file.size else ""
    return {
        "file_name": names.legible(place.name),
        "file_key": names.quoted(place.name),
        "size": file.size,
        "when": serving.when(file.time),
        "picture": picture if file.size <= LARGEST_PICTURE else "",
        "is_picture": bool(picture),
        "text": shown,
        "piece_from": first,
        "more_query": more,
        "encodings": text.ENCODINGS,
    }


# --- bytes ------------------------------------------------------------------------------------------------


@takes_body("PUT")
@require_http_methods(["GET", "HEAD", "PUT"])
@signed_in
def job_files_content(request: SignedIn, public_id: str) -> HttpResponseBase:
    """A file to keep; with PUT the body becomes the file, and `replace=1` says that there may be one."""
    job = find_job(request.user, public_id, Verb.ENTER)
    query = names.query(request.META.get("QUERY_STRING", ""))
    try:
        place = find(job, query)
        if request.method == "PUT":
            length, replace = request.headers.get("Content-Length", ""), query.get("replace") == ["1"]
            return serving.received(_asker(request), place, length, replace=replace, say=_say)
        return serving.content(_asker(request), place, Wanted.by(request))
    except Shut as shut:
        return _refused(request, job, shut)


@require_http_methods(["GET", "POST"])
@signed_in
def job_files_zip(request: SignedIn, public_id: str) -> HttpResponseBase:
    """A folder as a zip file; posted, those of its entries that are chosen."""
    job = find_job(request.user, public_id, Verb.ENTER)
    chosen = [names.unquoted(key) for key in request.POST.getlist("chosen")]
    try:
        place = find(job, names.query(request.META.get("QUERY_STRING", "")))
        return serving.packed(_asker(request), place, chosen)
    except Shut as shut:
        return _refused(request, job, shut)


@require_POST
@signed_in
def job_files_change(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Make, rename or remove something in the folder that the address names, and show that again."""
    job = find_job(request.user, public_id, Verb.ENTER)
    try:
        place = find(job, names.query(request.META.get("QUERY_STRING", "")))
        _change(request, place)
    except Shut as shut:
        return _refused(request, job, shut)
    return redirect(f"{reverse('job', args=[public_id])}?tab=files&{place.query}")


def _change(request: SignedIn, place: Place) -> None:
    do, asker = request.POST.get("do", ""), _asker(request)
    key, name = names.unquoted(request.POST.get("key", "")), request.POST.get("name", "").strip()
    shown = names.legible(name)
    if do == "make":
        serving.make_folder(asker, place.inner(name))
        notes.success(request, _("The folder %(name)s was made.") % {"name": shown})
    elif do == "rename":
        serving.rename(asker, place.inner(key), name)
        notes.success(request, _("It is called %(name)s now.") % {"name": shown})
    elif do == "remove":
        chosen = [names.unquoted(each) for each in request.POST.getlist("chosen")]
        if not chosen:
            raise Shut("name")
        serving.remove(asker, place, chosen)
        said = ngettext("%(count)d entry was deleted.", "%(count)d entries were deleted.", len(chosen))
        notes.success(request, said % {"count": len(chosen)})
    else:
        raise Shut("failed")


def _refused(request: SignedIn, job: Job, shut: Shut) -> HttpResponseBase:
    """A script is told in JSON; a person finds the reason on the page that they came from."""
    if request.method == "PUT":
        return _say(serving.status_of(shut), {"detail": serving.sentence_of(shut), "code": shut.code})
    notes.error(request, serving.sentence_of(shut))
    try:
        place = find(job, names.query(request.META.get("QUERY_STRING", "")))
    except Shut:
        return redirect(f"{reverse('job', args=[job.public_id])}?tab=files")
    around = place if request.method == "POST" else place.folder
    return redirect(f"{reverse('job', args=[job.public_id])}?tab=files&{around.query}")


def _say(status: int, said: Mapping[str, Any]) -> HttpResponse:
    return JsonResponse(dict(said), status=status)


def _asker(request: SignedIn) -> Asker:
    return Asker(request.user, session=sessions.reference(request))
