"""The Files tab: the folders of a job's replicas, to browse, download, upload and change.

Files may hold anything that the job was given.  Those who may enter the job may read them, also after its
end; those who may only read a public job may not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import localtime, now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from jobs.access import sessions as entries
from jobs.access.folders import checkpoint_list, file_audit, file_responses, names, notebook, text
from jobs.access.folders.client import Asker, FolderRefused, OpenFile, connect
from jobs.access.folders.file_responses import FileRequest
from jobs.access.folders.locations import FolderLocation, find
from jobs.access.folders.retention import KEEP_LONGER, kept_until
from jobs.live.bodies import takes_body
from jobs.messages.dataset_copies import copy_message
from jobs.models import AssetKind, Job
from jobs.node.sftp_packets import LONGEST_DATA
from jobs.submission import dataset_copies, job_control
from jobs.submission.access import Forbidden, find_job
from jobs.web.http import SignedIn, signed_in
from jobs.web.job.access import MOST_REPLICAS
from quotas.access import Verb, may_submit
from quotas.accounts import sessions
from quotas.models import Action

PAGE: Final = 200
LARGEST_PICTURE: Final = 20 * file_responses.MIB
SORTS: Final = ("name", "size", "time")
_FURTHEST: Final = 10**15


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry of a folder."""

    name: str
    key: str
    kind: str
    size: int | None
    when: datetime | None
    target: str
    hidden: bool
    query: str


# --- the tab ----------------------------------------------------------------------------------------------


def files_context(request: SignedIn, job: Job) -> dict[str, Any]:
    """Return the context of the Files tab: a folder, a file, or why neither can be shown."""
    replicas = list(
        entries.current_replicas(job).select_related("attempt").order_by("ordinal")[:MOST_REPLICAS]
    )
    query = _query(request)
    context: dict[str, Any] = {
        "replicas": replicas,
        "replica": None,
        "file_acts": file_audit.list_latest(job),
    }
    try:
        place = find(job, query)
        until = kept_until(place.replica.attempt)
        context |= {
            "replica": place.replica,
            "place": place,
            "kept_until": until,
            "can_keep": until is not None and until < now() + KEEP_LONGER - timedelta(days=1),
            "forgotten_at": place.replica.attempt.forgotten_at,
            "can_save": until is not None and may_submit(request.user, job.workspace_id),
        }
        return context | _look(request, place, query)
    except FolderRefused as shut:
        return context | {"shut": shut.code, "shut_text": file_responses.sentence_of(shut)}


def _look(request: SignedIn, place: FolderLocation, query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    sort, down, offset = _order(query)
    with connect(_asker(request), place.replica) as client:
        found = client.look(place.path, sort, offset, PAGE, down=down)
        is_top = not place.names and not offset
        checkpoints = checkpoint_list.list_checkpoints(client, place) if is_top else None
        count = min(text.PIECE, found.size - offset) if isinstance(found, OpenFile) else 0
        data = client.read(found, offset, count) if isinstance(found, OpenFile) else b""
        if isinstance(found, OpenFile) and _is_notebook(place, found, query):
            for first in range(len(data), found.size, LONGEST_DATA):
                data += client.read(found, first, min(LONGEST_DATA, found.size - first))
    roots = [
        {**root, "query": FolderLocation(place.job, place.replica, root["name"], ()).query}
        for root in client.roots
    ]
    label = next((root["label"] for root in roots if root["name"] == place.root), place.root)
    context = {
        "roots": roots,
        "checkpoints": checkpoints,
        "crumbs": _crumbs(place, label),
        "live": client.live,
        "most_upload": settings.CONSOLE_UPLOAD_MIB * file_responses.MIB,
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


def _crumbs(place: FolderLocation, label: str) -> list[dict[str, str]]:
    """Return the folders of the path, each with the query that shows it."""
    labels = [label, *map(names.legible, place.names)]
    paths = [
        FolderLocation(place.job, place.replica, place.root, place.names[:count])
        for count in range(len(labels))
    ]
    return [{"name": name, "query": path.query} for name, path in zip(labels, paths, strict=True)]


def _folder(place: FolderLocation, listing: Mapping[str, Any], sort: str, *, down: bool) -> dict[str, Any]:
    rows = [_row(place, row) for row in listing["rows"]]
    order = f"{place.query}&sort={sort}&down={int(down)}"
    first, last = listing["offset"], listing["offset"] + len(rows)
    labels = {"name": _("Name"), "size": _("Size"), "time": _("Modified")}
    return {
        "rows": rows,
        "hidden_rows": sum(row.hidden for row in rows),
        "total": listing["total"],
        "cut": listing["cut"],
        "first": first + 1 if rows else first,
        "last": last,
        "previous_query": f"{order}&from={max(0, first - PAGE)}" if first else "",
        "next_query": f"{order}&from={last}" if last < listing["total"] else "",
        "columns": [_column(place, name, label, sort, down=down) for name, label in labels.items()],
    }


def _column(place: FolderLocation, name: str, label: str, sort: str, *, down: bool) -> dict[str, str]:
    current = name == sort
    turned = int(not down) if current else int(name != "name")
    order = "descending" if down else "ascending"
    return {
        "name": name,
        "label": label,
        "query": f"{place.query}&sort={name}&down={turned}",
        "sorted": order if current else "",
    }


def _row(place: FolderLocation, row: Mapping[str, Any]) -> FolderEntry:
    name = row["name"]
    return FolderEntry(
        name=names.legible(name),
        key=names.quote_name(name),
        kind=row["kind"],
        size=row["size"],
        when=file_responses.when(row["time"]),
        target=names.legible(row["target"]),
        hidden=name.startswith("."),
        query=place.inner(name).query,
    )


def _file(
    request: SignedIn,
    place: FolderLocation,
    file: OpenFile,
    first: int,
    data: bytes,
    query: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    if first == 0:
        file_audit.record(request.user, place, Action.FILE_READ)
    encoding = query.get("as", [""])[-1]
    picture = file_responses.picture_of(bytes.fromhex(file.head), place.name)
    shown = text.piece(data, first, file.size, encoding)
    more = f"{place.query}&from={shown.after}&as={shown.encoding}" if shown.after < file.size else ""
    return {
        "file_name": names.legible(place.name),
        "file_key": names.quote_name(place.name),
        "size": file.size,
        "when": file_responses.when(file.time),
        "picture": picture if file.size <= LARGEST_PICTURE else "",
        "is_picture": bool(picture),
        "is_unsized": picture == file_responses.DRAWING and not file_responses.has_size(data),
        "notebook": notebook.parse(data) if _is_notebook(place, file, query) else None,
        "text": shown,
        "piece_from": first,
        "more_query": more,
        "encodings": text.ENCODINGS,
    }


def _is_notebook(place: FolderLocation, file: OpenFile, query: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether to show cells: not of a file that was asked for as text, or is too large."""
    is_asked_as_text = bool(query.get("as") or query.get("from"))
    return place.name.endswith(notebook.SUFFIX) and file.size <= notebook.LARGEST and not is_asked_as_text


# --- bytes ------------------------------------------------------------------------------------------------


@takes_body("PUT")
@require_http_methods(["GET", "HEAD", "PUT"])
@signed_in
def job_files_content(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Download a file; with PUT, upload it, with `replace=1` over an existing one."""
    job = find_job(request.user, public_id, Verb.ENTER)
    query = _query(request)
    try:
        place = find(job, query)
        if request.method == "PUT":
            length, replace = request.headers.get("Content-Length", ""), query.get("replace") == ["1"]
            return file_responses.receive_file(_asker(request), place, length, replace=replace, say=_json)
        return file_responses.content(_asker(request), place, FileRequest.by(request))
    except FolderRefused as shut:
        return _refuse(request, job, shut)


@require_http_methods(["GET", "POST"])
@signed_in
def job_files_zip(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Download a folder, or with POST its chosen entries, as a zip file."""
    job = find_job(request.user, public_id, Verb.ENTER)
    chosen = [names.unquote_name(key) for key in request.POST.getlist("chosen")]
    try:
        place = find(job, _query(request))
        return file_responses.zip_folder(_asker(request), place, chosen)
    except FolderRefused as shut:
        return _refuse(request, job, shut)


@require_POST
@signed_in
def job_files_change(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Make, rename or remove something in the folder that the address names, and show that again."""
    job = find_job(request.user, public_id, Verb.ENTER)
    try:
        place = find(job, _query(request))
        _change(request, place)
    except FolderRefused as shut:
        return _refuse(request, job, shut)
    return redirect(f"{reverse('job', args=[public_id])}?tab=files&{place.query}")


@require_POST
@signed_in
def job_files_keep(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Keep the files of an ended job longer."""
    job = find_job(request.user, public_id, Verb.CONTROL)
    try:
        until = job_control.keep_files(request.user, job)
    except job_control.FilesRemoved:
        notes.error(request, _("Can't keep the files: they have been removed, or the job has not ended."))
    else:
        shown = date_format(localtime(until), "Y-m-d H:i")
        notes.success(request, _("The files are kept until %(until)s.") % {"until": shown})
    return redirect(f"{reverse('job', args=[public_id])}?tab=files")


@require_POST
@signed_in
def job_files_dataset(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Save the folder that the address names as a dataset, and show that."""
    job = find_job(request.user, public_id, Verb.ENTER)
    try:
        place = find(job, _query(request))
    except FolderRefused as shut:
        return _refuse(request, job, shut)
    try:
        copy = dataset_copies.request_copy(request.user, place, request.POST.get("name", ""))
    except dataset_copies.CopyRefused as refused:
        notes.error(request, copy_message(refused.code))
    except Forbidden as error:
        raise PermissionDenied(_("Your role in the workspace does not allow submitting.")) from error
    else:
        return redirect("asset", AssetKind.DATASET, copy.dataset.key)
    return redirect(f"{reverse('job', args=[public_id])}?tab=files&{place.query}")


def _change(request: SignedIn, place: FolderLocation) -> None:
    do, asker = request.POST.get("do", ""), _asker(request)
    key, name = names.unquote_name(request.POST.get("key", "")), request.POST.get("name", "").strip()
    shown = names.legible(name)
    if do == "make":
        file_responses.make_folder(asker, place.inner(name))
        notes.success(request, _("Folder %(name)s created.") % {"name": shown})
    elif do == "rename":
        file_responses.rename(asker, place.inner(key), name)
        notes.success(request, _("Renamed to %(name)s.") % {"name": shown})
    elif do == "remove":
        chosen = [names.unquote_name(each) for each in request.POST.getlist("chosen")]
        if not chosen:
            raise FolderRefused("name")
        file_responses.remove(asker, place, chosen)
        content = ngettext("%(count)d item deleted.", "%(count)d items deleted.", len(chosen))
        notes.success(request, content % {"count": len(chosen)})
    else:
        raise FolderRefused("failed")


def _refuse(request: SignedIn, job: Job, shut: FolderRefused) -> HttpResponseBase:
    """Answer a script in JSON, and a person on the page that they came from."""
    if request.method == "PUT":
        return _json(
            file_responses.status_of(shut), {"detail": file_responses.sentence_of(shut), "code": shut.code}
        )
    notes.error(request, file_responses.sentence_of(shut))
    try:
        place = find(job, _query(request))
    except FolderRefused:
        return redirect(f"{reverse('job', args=[job.public_id])}?tab=files")
    around = place if request.method == "POST" else place.folder
    return redirect(f"{reverse('job', args=[job.public_id])}?tab=files&{around.query}")


def _json(status: int, content: Mapping[str, Any]) -> HttpResponse:
    return JsonResponse(dict(content), status=status)


def _query(request: SignedIn) -> Mapping[str, Sequence[str]]:
    return names.query(request.META.get("QUERY_STRING", ""))


def _asker(request: SignedIn) -> Asker:
    return Asker(request.user, session=sessions.reference(request))
