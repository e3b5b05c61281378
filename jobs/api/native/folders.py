"""Folders of a job over the native API: list, read, zip, upload, change.

Reading needs the scope `read` and the right to enter the job, as files may hold anything that the job was
given; writing needs `exec`, like everything that reaches into a running job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpResponse, HttpResponseBase, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.access.folders import file_responses, names
from jobs.access.folders.client import Asker, FolderRefused, OpenFile, connect
from jobs.access.folders.file_responses import FileRequest
from jobs.access.folders.locations import FolderLocation, find
from jobs.api.native import problems, shapes
from jobs.api.native.base import ABSENT, LIMIT, REFUSED, NativeView
from jobs.messages.dataset_copies import copy_message
from jobs.models import DatasetCopy
from jobs.submission import dataset_copies, job_control
from quotas.access import Verb
from quotas.accounts import sessions
from quotas.models import AccessToken

PAGE: Final = 200
MOST: Final = 1000

WHERE: Final = (
    OpenApiParameter("role", str, description="the first replica that runs when left out"),
    OpenApiParameter("index", int),
    OpenApiParameter("root", str, description="`work`, or another of `roots`"),
    OpenApiParameter("path", str, description="below the root; names that are no UTF-8 as their bytes"),
)
_TROUBLE: Final = {**REFUSED, **ABSENT, **dict.fromkeys((409, 413, 429, 503), shapes.ProblemDetails)}


class RootShape(shapes.ApiShape):
    """A folder that can be browsed, and what the job calls it."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # the field of that name


class FolderEntryShape(shapes.ApiShape):
    """An entry of a folder; `key` is its name as `path` and `name` take it."""

    name = serializers.CharField(help_text="to be shown: what can't be is spelled out")
    key = serializers.CharField(help_text="percent-encoded")
    kind = serializers.ChoiceField(choices=["folder", "file", "link", "other"])
    size = serializers.IntegerField(allow_null=True)
    modified = serializers.DateTimeField(allow_null=True)
    target = serializers.CharField(allow_blank=True, help_text="of a link, which is never followed")


class PlaceShape(shapes.ApiShape):
    """A folder with a page of its entries, or a file without any."""

    kind = serializers.ChoiceField(choices=["folder", "file"])
    roots = RootShape(many=True)
    writable = serializers.BooleanField(help_text="while the replica runs")
    size = serializers.IntegerField(allow_null=True)
    modified = serializers.DateTimeField(allow_null=True)
    total = serializers.IntegerField(allow_null=True)
    entries = FolderEntryShape(many=True)
    next = serializers.CharField(allow_null=True)


class SizeShape(shapes.ApiShape):
    """How many bytes arrived."""

    size = serializers.IntegerField()


class NewFolderShape(shapes.ApiShape):
    """A folder to make in the one at `path`."""

    name = shapes.TextField(trim_whitespace=False)


class RenameShape(shapes.ApiShape):
    """Another name for what lies at `path`."""

    to = shapes.TextField(trim_whitespace=False)


class FolderView(NativeView):
    """Every view of this module."""

    def location(self, public_id: str) -> FolderLocation:
        """The place that the address names.  Raises what `job` does, or Shut."""
        return find(self.job(public_id, Verb.ENTER), self.bytes_query)

    @property
    def bytes_query(self) -> dict[str, list[str]]:
        """The parameters of the address, with the bytes of names."""
        return names.query(self.request.META.get("QUERY_STRING", ""))

    @property
    def asker(self) -> Asker:
        """The caller with their credential."""
        token = self.request.auth
        if isinstance(token, AccessToken):
            return Asker(self.person, token=token)
        return Asker(self.person, session=sessions.reference(self.request))


class Files(FolderView):
    """A location in a replica's folders."""

    scopes = {"DELETE": "exec"}

    @extend_schema(
        operation_id="jobs_files",
        parameters=[
            *WHERE,
            LIMIT,
            OpenApiParameter("from", int, description="the entry to begin with, counted from 0"),
            OpenApiParameter("sort", str, enum=["name", "size", "time"]),
            OpenApiParameter("down", bool),
        ],
        responses={200: PlaceShape, **_TROUBLE},
    )
    def get(self, request: Request, public_id: str) -> Response:
        """Folders first by name, unless `sort` says otherwise."""
        place = self.location(public_id)
        limit = max(1, self.number("limit", PAGE, MOST))
        first = self.number("from", 0)
        sort = request.query_params.get("sort", "name")
        down = request.query_params.get("down", "").lower() in {"1", "true"}
        with connect(self.asker, place.replica) as client:
            found = client.look(place.path, sort, first, limit, down=down)
        about = {"roots": client.roots, "writable": client.live}
        if isinstance(found, OpenFile):
            file = {"kind": "file", "size": found.size, "modified": file_responses.when(found.time)}
            return Response({**about, **file, "total": None, "entries": [], "next": None})
        rows, total = found["rows"], found["total"]
        after = first + len(rows)
        shown = {"total": total, "entries": [_entry(row) for row in rows]}
        following = self._address_from(after) if after < total else None
        return Response(
            {**about, "kind": "folder", "size": None, "modified": None, **shown, "next": following}
        )

    def _address_from(self, first: int) -> str:
        kept = [
            f"{names.quote_name(name)}={names.quote_name(value)}"
            for name, values in self.bytes_query.items()
            if name != "from"
            for value in values
        ]
        return self.request.build_absolute_uri(f"{self.request.path}?{'&'.join([*kept, f'from={first}'])}")

    @extend_schema(
        operation_id="jobs_files_delete",
        parameters=[*WHERE],
        request=None,
        responses={204: None, **_TROUBLE},
    )
    def delete(self, request: Request, public_id: str) -> Response:
        """Delete a file, a link, or a folder with all that is in it."""
        place = self.location(public_id)
        if not place.names:
            raise FolderRefused("name")
        file_responses.remove(self.asker, place.folder, [place.name])
        return Response(status=204)


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": names.legible(row["name"]),
        "key": names.quote_name(row["name"]),
        "kind": row["kind"],
        "size": row["size"],
        "modified": file_responses.when(row["time"]),
        "target": names.legible(row["target"]),
    }


class Content(FolderView):
    """The bytes of a file."""

    scopes = {"PUT": "exec"}

    @extend_schema(
        operation_id="jobs_files_read",
        parameters=[
            *WHERE,
            OpenApiParameter("Range", str, OpenApiParameter.HEADER, description="one range of bytes"),
            OpenApiParameter("If-Range", str, OpenApiParameter.HEADER),
        ],
        responses={
            (200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY),
            (206, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY),
            **_TROUBLE,
        },
    )
    def get(self, request: Request, public_id: str) -> HttpResponseBase:
        """The file, or the range of it that is asked for."""
        return file_responses.content(self.asker, self.location(public_id), FileRequest.by(request))

    @extend_schema(
        operation_id="jobs_files_upload",
        parameters=[*WHERE, OpenApiParameter("replace", bool, description="there may be such a file")],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={201: SizeShape, **_TROUBLE},
    )
    def put(self, request: Request, public_id: str) -> HttpResponseBase:
        """The body becomes the file at `path`, whole or not at all; 409 when there is one already."""
        length = request.headers.get("Content-Length", "")
        replace = request.query_params.get("replace", "").lower() in {"1", "true"}
        return file_responses.receive_file(
            self.asker, self.location(public_id), length, replace=replace, say=_say
        )


def _say(status: int, said: Mapping[str, Any]) -> HttpResponse:
    if status == 201:
        return JsonResponse(dict(said), status=status)
    body = problems.details(status, said["detail"], code=said["code"])
    return JsonResponse(body, status=status, content_type=problems.CONTENT_TYPE)


class Zip(FolderView):
    """A folder as a zip file."""

    @extend_schema(
        operation_id="jobs_files_zip",
        parameters=[
            *WHERE,
            OpenApiParameter("name", str, many=True, description="only these entries of the folder"),
        ],
        responses={(200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY), **_TROUBLE},
    )
    def get(self, request: Request, public_id: str) -> HttpResponseBase:
        """Written as it is read, in a settled order; links and special files are left out, and listed."""
        chosen = self.bytes_query.get("name", [])
        return file_responses.zip_folder(self.asker, self.location(public_id), chosen)


class NewFolder(FolderView):
    """Making folders."""

    scopes = {"POST": "exec"}

    @extend_schema(
        operation_id="jobs_files_folder",
        parameters=[*WHERE],
        request=NewFolderShape,
        responses={204: None, **_TROUBLE},
    )
    def post(self, request: Request, public_id: str) -> Response:
        """Make a folder in the one at `path`."""
        place = self.location(public_id)
        data = NewFolderShape.parse(request.data)
        file_responses.make_folder(self.asker, place.inner(data["name"]))
        return Response(status=204)


class KeptShape(shapes.ApiShape):
    """Until when the files of an ended job are kept."""

    kept_until = serializers.DateTimeField()


class KeepFiles(NativeView):
    """Keeping the files of an ended job longer."""

    scopes = {"POST": "submit"}

    @extend_schema(
        operation_id="jobs_files_keep",
        request=None,
        responses={200: KeptShape, **dict.fromkeys((403, 404, 409), shapes.ProblemDetails)},
    )
    def post(self, request: Request, public_id: str) -> Response:
        """Keep them 30 days from now, but no longer than the job; 409 where they are removed or it runs."""
        until = job_control.keep_files(self.person, self.job(public_id, Verb.CONTROL))
        return Response(KeptShape.render(until, kept_until=until))


class NewDatasetShape(shapes.ApiShape):
    """A dataset to make of the folder at `path`."""

    name = shapes.TextField()


class DatasetCopyShape(shapes.ApiShape):
    """A dataset that a folder is copied into; it can be mounted once its `state` is `ready`."""

    id = serializers.CharField(source="dataset.key", help_text="of the dataset")
    name = serializers.CharField(source="dataset.name")
    state = serializers.ChoiceField(DatasetCopy.State.values)
    code = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True, help_text="why it failed")
    files = serializers.IntegerField()
    size = serializers.IntegerField()
    copied = serializers.IntegerField(help_text="bytes so far")
    skipped = serializers.IntegerField(help_text="links, special files and closed ones")


class SaveAsDataset(FolderView):
    """Saving a folder of an ended job as a dataset of its workspace."""

    scopes = {"POST": "submit"}

    @extend_schema(
        operation_id="jobs_files_dataset",
        parameters=[*WHERE],
        request=NewDatasetShape,
        responses={202: DatasetCopyShape, **_TROUBLE},
    )
    def post(self, request: Request, public_id: str) -> Response:
        """Request a copy, which a worker makes; `assets/datasets/ID` has its state as `copy`."""
        place = self.location(public_id)
        name = NewDatasetShape.parse(request.data)["name"]
        try:
            copy = dataset_copies.request_copy(self.person, place, name)
        except dataset_copies.CopyRefused as refused:
            body = problems.details(409, copy_message(refused.code), code=refused.code)
            return Response(body, status=409, content_type=problems.CONTENT_TYPE)
        return Response(render_copy(copy), status=202)


def render_copy(copy: DatasetCopy) -> dict[str, Any]:
    """Return a copy as the API shows it."""
    message = copy_message(copy.code, copy.detail) if copy.code else ""
    return DatasetCopyShape.render(copy, message=message)


class Rename(FolderView):
    """Renaming."""

    scopes = {"POST": "exec"}

    @extend_schema(
        operation_id="jobs_files_rename",
        parameters=[*WHERE],
        request=RenameShape,
        responses={204: None, **_TROUBLE},
    )
    def post(self, request: Request, public_id: str) -> Response:
        """Give what lies at `path` another name, where nothing is called so yet."""
        place = self.location(public_id)
        file_responses.rename(self.asker, place, RenameShape.parse(request.data)["to"])
        return Response(status=204)
