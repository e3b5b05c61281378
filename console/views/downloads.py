"""Long tables, sent piece by piece: neither the whole of one nor a request's thread is held meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from django.http import StreamingHttpResponse

from jobs.live.thread_pool import run_in_thread

TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


def download(pieces: Iterator[bytes], name: str, kind: str) -> StreamingHttpResponse:
    """`pieces` as a file of that name; `kind` is one of TYPES."""
    headers = {
        "Content-Type": TYPES[kind],
        "Content-Disposition": f'attachment; filename="{name}.{kind}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingHttpResponse(_response(pieces), headers=headers)


async def _response(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await run_in_thread(next, pieces, b""):
        yield piece
