"""Uploaded code over the native API: what is missing, files and packs of files, trees.

Sending needs the scope `submit`, as it is the first part of submitting.  Nothing here tells what other people
have sent: content that somebody else has is as missing as any other until one has sent it oneself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import translation
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import problems, shapes
from jobs.api.native.base import ABSENT, REFUSED, BodyLeftAlone, LargeJSON, NativeView
from jobs.assets.uploads import arrivals, uploaded_trees
from jobs.assets.uploads.arrivals import Arrival, Pack, Range
from jobs.assets.uploads.store import MIB, NotTaken
from jobs.live import bodies
from jobs.live.bodies import Awaiting
from jobs.live.thread_pool import run_in_thread
from jobs.trees import DIGEST, Tree, address

_RANGE: Final = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_TROUBLE: Final = {**REFUSED, **dict.fromkeys((409, 413, 422), shapes.ProblemDetails)}


class DigestField(serializers.RegexField):
    """A SHA-256, 64 lower-case hexadecimal digits."""

    def __init__(self, **options: Any) -> None:
        super().__init__(DIGEST.pattern + r"\Z", **options)


class AskedShape(shapes.ApiShape):
    """Contents that somebody is about to send: SHA-256 → bytes; with the `tree` that they make."""

    tree = DigestField(allow_null=True, default=None)
    blobs = serializers.DictField(child=serializers.IntegerField(min_value=0))


class LackingShape(shapes.ApiShape):
    """What has to be sent; `received` bytes of it are there, from which a PUT may go on."""

    sha256 = serializers.CharField()
    size = serializers.IntegerField()
    received = serializers.IntegerField()


class MissingShape(shapes.ApiShape):
    """`tree` is the address to name in a job file when all of it is there already; else null."""

    tree = serializers.CharField(allow_null=True)
    missing = LackingShape(many=True)


class ArrivedShape(shapes.ApiShape):
    """How many bytes of a file are there, and whether that is all of it."""

    sha256 = serializers.CharField()
    received = serializers.IntegerField()
    complete = serializers.BooleanField()


class PackedShape(shapes.ApiShape):
    """How many files were in the pack."""

    files = serializers.IntegerField()


class TreeShape(shapes.ApiShape):
    """A tree; `entries` are [path, kind, …] as `docs/api.md` says."""

    format = serializers.IntegerField()
    entries = serializers.ListField(child=serializers.ListField())


class KeptTreeShape(shapes.ApiShape):
    """A tree that is there; `uri` is its address in job files."""

    id = serializers.CharField(source="sha256")
    uri = serializers.CharField()
    files = serializers.IntegerField()
    size = serializers.IntegerField()


class WholeTreeShape(KeptTreeShape):
    """With all of its entries."""

    entries = serializers.ListField(child=serializers.ListField())


class Missing(NativeView):
    """The content that has to be sent before a tree can be made."""

    scopes = {"POST": "submit"}
    parser_classes = (LargeJSON,)

    @extend_schema(
        operation_id="uploads_missing", request=AskedShape, responses={200: MissingShape, **_TROUBLE}
    )
    def post(self, request: Request) -> Response:
        """Of the contents, those that the caller has not sent yet; none when the tree is known."""
        tree, blobs = _read_contents(request.data)
        if tree and uploaded_trees.knows(self.person, tree):
            return Response({"tree": address(tree), "missing": []})
        there = arrivals.list_partial(self.person)
        lacking = uploaded_trees.find_missing(self.person, blobs)
        rows = [{"sha256": one, "size": blobs[one], "received": there.get(one, 0)} for one in lacking]
        return Response({"tree": None, "missing": rows})


def _read_contents(data: Any) -> tuple[str, dict[str, int]]:
    """A tree's id and contents.  By hand: a serializer takes seconds for as many as there may be."""
    tree, blobs = (data.get("tree") or "", data.get("blobs")) if isinstance(data, dict) else ("", None)
    if not isinstance(blobs, dict) or not isinstance(tree, str) or (tree and not DIGEST.fullmatch(tree)):
        raise NotTaken("format")
    if not all(DIGEST.fullmatch(one) and type(size) is int and size >= 0 for one, size in blobs.items()):
        raise NotTaken("digest")
    return tree, blobs


class OneBlob(NativeView):
    """One file, by what is in it."""

    scopes = {"GET": "submit", "PUT": "submit"}
    parser_classes = (BodyLeftAlone,)

    @extend_schema(operation_id="uploads_blob", responses={200: ArrivedShape, **_TROUBLE})
    def get(self, request: Request, sha256: str) -> Response:
        """How much of it the caller has sent."""
        _check(sha256)
        if size := _whole(self, sha256):
            return Response(size)
        received = arrivals.received_bytes(self.person, sha256)
        return Response({"sha256": sha256, "received": received, "complete": False})

    @extend_schema(
        operation_id="uploads_blob_send",
        parameters=[
            OpenApiParameter(
                "Content-Range",
                str,
                OpenApiParameter.HEADER,
                description="`bytes FIRST-LAST/SIZE` for a part; all of it when left out",
            )
        ],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={201: ArrivedShape, 202: ArrivedShape, **_TROUBLE},
    )
    def put(self, request: Request, sha256: str) -> HttpResponseBase:
        """The body, or as much of it as arrives, is kept; 201 once all is there and is what was said."""
        _check(sha256)
        part = _part(request)
        if _whole(self, sha256):
            return JsonResponse({"sha256": sha256, "received": part.size, "complete": True})
        arrival = Arrival(self.person, sha256, part)

        def finish() -> HttpResponse:
            whole = arrival.finish()
            body = {"sha256": sha256, "received": arrival.received, "complete": whole}
            return JsonResponse(body, status=201 if whole else 202)

        return _take_body(arrival, finish)


def _check(sha256: str) -> None:
    if not DIGEST.fullmatch(sha256):
        raise NotTaken("digest")


def _whole(view: NativeView, sha256: str) -> dict[str, Any] | None:
    size = uploaded_trees.size_of(view.person, sha256)
    return None if size is None else {"sha256": sha256, "received": size, "complete": True}


def _part(request: Request) -> Range:
    length = request.headers.get("Content-Length", "")
    content_range = request.headers.get("Content-Range", "")
    if not content_range:
        if not length.isdecimal():
            raise NotTaken("length")
        return Range(0, int(length))
    found = _RANGE.fullmatch(content_range.strip())
    if found is None or not int(found[1]) <= int(found[2]) < int(found[3]):
        raise NotTaken("range")
    return Range(int(found[1]), int(found[3]))


class Packs(NativeView):
    """Many small files in one request."""

    scopes = {"POST": "submit"}
    parser_classes = (BodyLeftAlone,)

    @extend_schema(
        operation_id="uploads_pack",
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={201: PackedShape, **_TROUBLE},
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Each file as its SHA-256 (32 bytes), its length (8 bytes, the highest first), and its content."""
        length = request.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise NotTaken("length")
        pack = Pack(self.person, int(length))
        return _take_body(pack, lambda: JsonResponse({"files": pack.finish()}, status=201))


def _take_body(arrival: Arrival | Pack, finish: Callable[[], HttpResponse]) -> Awaiting:
    """Let the body in, some of it at a time, in threads that may wait for the disk."""
    language = translation.get_language()

    async def take(body: Any) -> HttpResponse:
        with translation.override(language):
            try:
                await _let_in(body, arrival)
                return await run_in_thread(finish)
            except NotTaken as error:
                return problems.answer(error)
            except bodies.SenderGone:
                return JsonResponse({}, status=499)
            finally:
                await run_in_thread(arrival.close)

    return Awaiting(take)


async def _let_in(body: Any, arrival: Arrival | Pack) -> None:
    held: list[bytes] = []
    size = 0
    try:
        async for piece in body:
            held.append(piece)
            size += len(piece)
            if size >= MIB:
                await run_in_thread(arrival.write, b"".join(held))
                held, size = [], 0
    finally:  # also of what broke off: whoever comes back goes on from there
        if held:
            await run_in_thread(arrival.write, b"".join(held))


class Trees(NativeView):
    """Making a tree of what was sent."""

    scopes = {"POST": "submit"}
    parser_classes = (LargeJSON,)

    @extend_schema(
        operation_id="uploads_trees", request=TreeShape, responses={201: KeptTreeShape, **_TROUBLE}
    )
    def post(self, request: Request) -> Response:
        """The tree's address; 409 with what is `missing` while something is."""
        row = uploaded_trees.make(self.person, Tree.load(request.data))
        return Response(KeptTreeShape.render(row, uri=address(row.sha256)), status=201)


class OneTree(NativeView):
    """A tree."""

    @extend_schema(operation_id="uploads_tree", responses={200: WholeTreeShape, **ABSENT})
    def get(self, request: Request, sha256: str) -> Response:
        """What is in it, for whoever sent it or may read a job that has it."""
        row = uploaded_trees.usable(self.person, sha256)
        if row is None:
            raise Http404
        entries = [entry.to_json() for entry in uploaded_trees.load(row).entries]
        return Response(WholeTreeShape.render(row, uri=address(row.sha256), entries=entries))
