"""Upload of the content that the console does not have of a tree."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx

from jobs.client.api import Console, RequestRefused, check_status
from jobs.client.folder_scan import FolderContent
from jobs.trees import address

HEAD: Final = struct.Struct(">32sQ")
SMALL_BYTES: Final = 1 << 20
PACK_BYTES: Final = 8 << 20
PACK_FILES: Final = 5_000
PIECE: Final = 1 << 20

Progress = Callable[[int, int], None]
"""Called with the bytes that have been sent, and their total."""


class FileChanged(Exception):
    """A file changed while it was sent."""


def send(console: Console, found: FolderContent, progress: Progress) -> str:
    """Upload what the console lacks of a tree; return its address.  Raises CommandFailure, FileChanged."""
    tree, contents = found.tree, found.tree.contents()
    answer = console.post("/uploads/missing", {"tree": tree.id, "blobs": contents})
    if answer["tree"]:
        return str(answer["tree"])
    missing: list[dict[str, Any]] = answer["missing"]
    sender = _Sender(console, found, progress, sum(row["size"] - row["received"] for row in missing))
    small = [row for row in missing if row["size"] <= SMALL_BYTES and not row["received"]]
    large = [row for row in missing if row["size"] > SMALL_BYTES or row["received"]]
    for pack in _packs(small):
        sender.pack(pack)
    for row in large:
        sender.file(row["sha256"], row["size"], row["received"])
    made = console.call(
        "POST", "/uploads/trees", content=tree.dump(), headers={"Content-Type": "application/json"}
    )
    assert made["uri"] == address(tree.id)
    return str(made["uri"])


def _packs(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    pack: list[dict[str, Any]] = []
    size = 0
    for row in sorted(rows, key=lambda row: (row["size"], row["sha256"])):
        length = row["size"] + HEAD.size
        if pack and (size + length > PACK_BYTES or len(pack) >= PACK_FILES):
            yield pack
            pack, size = [], 0
        pack.append(row)
        size += length
    if pack:
        yield pack


class _Sender:
    def __init__(self, console: Console, found: FolderContent, progress: Progress, total: int) -> None:
        self._console, self._found, self._progress, self._total = console, found, progress, total
        self._sent = 0

    def pack(self, rows: list[dict[str, Any]]) -> None:
        body = bytearray()
        for row in rows:
            data = self._path(row["sha256"]).read_bytes()
            if len(data) != row["size"]:
                raise FileChanged
            body += HEAD.pack(bytes.fromhex(row["sha256"]), len(data)) + data
        headers = {"Content-Type": "application/octet-stream"}
        try:
            self._console.call("POST", "/uploads/packs", content=bytes(body), headers=headers)
        except RequestRefused as refused:
            raise _as_change(refused) from refused
        self._tell(sum(row["size"] for row in rows))

    def file(self, sha256: str, size: int, received: int) -> None:
        """Upload a large file, each time from where it broke off."""
        before = self._sent
        for number, attempt in enumerate(self._console.tries()):
            with attempt:
                there = self._received_bytes(sha256) if number else received
                self._sent = before + there - received
                if there < size:
                    self._send_rest(sha256, size, there)

    def _send_rest(self, sha256: str, size: int, received: int) -> None:
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Range": f"bytes {received}-{size - 1}/{size}",
            "Content-Length": str(size - received),
        }
        content = self._bytes(sha256, size, received)
        try:
            check_status(self._console.http.put(f"/uploads/blobs/{sha256}", content=content, headers=headers))
        except RequestRefused as refused:
            # The console may not have noticed yet that the last try broke off.
            is_late = refused.code in {"offset", "busy"}
            raise (httpx.RemoteProtocolError(str(refused)) if is_late else _as_change(refused)) from refused

    def _received_bytes(self, sha256: str) -> int:
        return int(self._console.get(f"/uploads/blobs/{sha256}")["received"])

    def _bytes(self, sha256: str, size: int, received: int) -> Iterator[bytes]:
        with self._path(sha256).open("rb") as file:
            file.seek(received)
            rest = size - received
            while rest:
                piece = file.read(min(PIECE, rest))
                if not piece:
                    raise FileChanged
                yield piece
                rest -= len(piece)
                self._tell(len(piece))

    def _path(self, sha256: str) -> Path:
        return self._found.files[sha256]

    def _tell(self, more: int) -> None:
        self._sent += more
        self._progress(self._sent, self._total)


def _as_change(refused: RequestRefused) -> Exception:
    return FileChanged() if refused.code == "hash" else refused
