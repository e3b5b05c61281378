"""A stand-in for an HDFS: a namenode and a datanode that speak WebHDFS, over files in memory.

No Hadoop is here.  It answers GETs of LISTSTATUS and OPEN and PUTs of CREATE as "WebHDFS REST API" (Apache
Hadoop 3) has them, with redirections to another port, and says in its `Server` header that it is a stand-in.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

API = "/webhdfs/v1"
TIME_MS = 1_700_000_000_000


def tar(*entries: tarfile.TarInfo | tuple[str, str], mode: str = "w:gz") -> bytes:
    """An archive of files by name and text, and of other entries."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        for each in entries:
            info, text = (
                (each, "") if isinstance(each, tarfile.TarInfo) else (tarfile.TarInfo(each[0]), each[1])
            )
            info.size, info.mode = len(text), 0o755
            archive.addfile(info, io.BytesIO(text.encode()))
    return file.getvalue()


@dataclass
class StandInHdfs:
    """`files` by path; `asked` are the operations with the users that asked."""

    name: str = ""
    endpoint: str = ""
    datanode: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, str]:
        """The setting `hdfs` of a cluster that knows it."""
        return {self.name: self.endpoint}

    def list(self, path: str) -> list[dict[str, object]] | None:
        """The rows of LISTSTATUS."""
        if path in self.files:
            return [_row("", "FILE", len(self.files[path]))]
        inner = {name[len(path) :].lstrip("/") for name in self.files if name.startswith(f"{path}/")}
        rows = {
            each.partition("/")[0]: "DIRECTORY" if "/" in each else "FILE" for each in sorted(inner, key=len)
        }
        sizes = {name: len(self.files.get(f"{path}/{name}", b"")) for name in rows}
        return [_row(name, kind, sizes[name]) for name, kind in rows.items()] or None


def _row(name: str, kind: str, size: int) -> dict[str, object]:
    return {"pathSuffix": name, "type": kind, "length": size, "modificationTime": TIME_MS}


class Node(BaseHTTPRequestHandler):
    """Namenode, or datanode where `is_datanode`."""

    server_version = "StandInWebHDFS/1.0 (no Hadoop)"
    hdfs: StandInHdfs
    is_datanode = False

    def _parts(self) -> tuple[str, str]:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = unquote(parts.path.removeprefix(API)).rstrip("/")
        self.hdfs.asked.append((asked["op"], path, asked.get("user.name", "")))
        return asked["op"], path

    def do_GET(self) -> None:
        op, path = self._parts()
        if op == "LISTSTATUS":
            rows = self.hdfs.list(path)
            if rows is None:
                self._refuse(404, "FileNotFoundException", f"File {path} does not exist.")
            else:
                self._say(200, json.dumps({"FileStatuses": {"FileStatus": rows}}).encode())
        elif not self.is_datanode:
            self._redirect()
        else:
            self._say(200, self.hdfs.files[path])

    def do_PUT(self) -> None:
        _, path = self._parts()
        if path.startswith("/closed"):
            self._refuse(403, "AccessControlException", "Permission denied: access=WRITE")
        elif not self.is_datanode:
            self._redirect()
        else:
            self.hdfs.files[path] = self.rfile.read(int(self.headers["Content-Length"]))
            self._say(201, b"")

    def _redirect(self) -> None:
        self._say(307, b"", Location=f"{self.hdfs.datanode}{self.path}")

    def _refuse(self, code: int, kind: str, text: str) -> None:
        self._say(code, json.dumps({"RemoteException": {"exception": kind, "message": text}}).encode())

    def _say(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@contextmanager
def served(
    handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1", **attributes: object
) -> Iterator[str]:
    """Serve HTTP on this machine; the address."""
    kind = type("Handler", (handler,), attributes)
    with ThreadingHTTPServer((host, 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{host}:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def hdfs() -> Iterator[StandInHdfs]:
    made = StandInHdfs("hdfs://namenode.example:9000")
    with served(Node, hdfs=made) as made.endpoint, served(Node, hdfs=made, is_datanode=True) as made.datanode:
        yield made
