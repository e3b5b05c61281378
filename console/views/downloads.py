"""Long tables, sent piece by piece: neither the whole of one nor a request's thread is held meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from django.http import StreamingHttpResponse

from jobs.live.threads import aside, leave_request_thread

TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


def download(pieces: Iterator[bytes], name: str, kind: str) -> StreamingHttpResponse:
    """`pieces` as a file of that name; `kind` is one of TYPES."""
    headers = {
        "Content-Type": TYPES[kind],
        "Content-Disposition": f'attachment; filename="{name}.{kind}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingHttpResponse(_sent(pieces), headers=headers)


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    await leave_request_thread()
    while piece := await aside(next, pieces, b""):
        yield piece
