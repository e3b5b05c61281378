"""Terminals in JSON frames, as the web terminals of PAI-DLC speak.

A client sends `{"operation": "stdin", "data": …}` and `{"operation": "resize", "cols": …, "rows": …}`, and
receives `{"operation": "stdout", "data": …}`.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import WSMsgType

from jobs.access.gateway.websocket import GOING_AWAY, NORMAL, Bridge

MOST_CELLS: Final = 1000
PIECE_BYTES: Final = 64 * 1024
"""Typed bytes are passed on in pieces of this size."""


class FrameBridge(Bridge):
    """A client that speaks frames on one side, a terminal of the console's own on the other."""

    async def from_browser(self) -> None:
        """Carry frames to the terminal until the client closes."""
        while (message := await self._receive())["type"] == "websocket.receive":
            text = message.get("text")
            for each in read_frame(text if text is not None else message.get("bytes") or b""):
                if isinstance(each, bytes):
                    await self._job.send_bytes(each)
                else:
                    await self._job.send_str(json.dumps(each))
        await self._job.close(code=GOING_AWAY)

    async def from_job(self) -> None:
        """Carry output to the client until the terminal has ended, and close there with the reason."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        reason = ""
        while (message := await self._job.receive()).type in {WSMsgType.TEXT, WSMsgType.BINARY}:
            if message.type is WSMsgType.TEXT:
                reason = str(json.loads(message.data).get("ended", reason))
            elif text := decoder.decode(message.data):
                frame = json.dumps({"operation": "stdout", "data": text}, ensure_ascii=False)
                await self._send({"type": "websocket.send", "text": frame})
        await self.close_browser(NORMAL if reason else GOING_AWAY, reason)


def read_frame(text: str | bytes) -> Iterator[bytes | dict[str, int]]:
    """Yield what a client's frame types, or the size that it wants; nothing for any other frame."""
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(frame, dict):
        return
    if frame.get("operation") == "stdin" and isinstance(frame.get("data"), str):
        typed = frame["data"].encode("utf-8", "replace")
        yield from (typed[at : at + PIECE_BYTES] for at in range(0, len(typed), PIECE_BYTES))
    elif frame.get("operation") == "resize" and _is_count(frame.get("cols")) and _is_count(frame.get("rows")):
        yield {"columns": frame["cols"], "rows": frame["rows"]}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_CELLS
