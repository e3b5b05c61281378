"""Files of an HDFS by its HTTP interface, WebHDFS (Apache Hadoop, "WebHDFS REST API"; HttpFS speaks it too).

The user's name is told, not proved: Hadoop's own simple authentication.  A namenode that an admin maps may
send us to its datanodes, wherever they are in this network.
"""

from __future__ import annotations

import http.client
import json
import posixpath
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import IO, Any, Final

import guard  # type: ignore[import-not-found]

API: Final = "/webhdfs/v1"
WAIT_S: Final = 60

_MOVED: Final = (301, 302, 303, 307)
_PORTS: Final = {"http": 80, "https": 443}


class HdfsError(Exception):
    """A refusal, in the namenode's words."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Redirections are answers here: the request to a datanode is another one."""

    def redirect_request(self, *_: Any) -> None:
        return None


class WebHdfs:
    """One user's files at the endpoint `http://namenode:9870`."""

    def __init__(self, endpoint: str, user: str, allowed: guard.Allowed) -> None:
        self._endpoint, self._user, self._allowed = endpoint.rstrip("/"), user, allowed
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _NoRedirects(),
        ):
            self._opener.add_handler(handler)

    def list_files(self, path: str) -> Iterator[tuple[str, int, int]]:
        """Yield each file at or below a path: its path below, its size, its time in milliseconds.

        For a file itself the path below is "".  Raises FileNotFoundError.
        """
        folders = [""]
        while folders:
            below = folders.pop()
            listed = self._json("LISTSTATUS", f"{path}/{below}".rstrip("/") or "/")
            for each in listed["FileStatuses"]["FileStatus"]:
                name = posixpath.join(below, each["pathSuffix"]) if each["pathSuffix"] else below
                if each["type"] == "DIRECTORY":
                    folders.append(name)
                elif each["type"] == "FILE":
                    yield name, int(each["length"]), int(each.get("modificationTime") or 0)

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading."""
        answer: IO[bytes] = self._follow("GET", self._url("OPEN", path))
        return answer

    def upload(self, path: str, source: str) -> None:
        """Write a file, in place of one that is there; folders around it are made."""
        at = self._url("CREATE", path, overwrite="true")
        location = self._location(self._ask("PUT", at))
        with open(source, "rb") as file:  # noqa: PTH123 a descriptor's path
            length = file.seek(0, 2)
            file.seek(0)
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(length)}
            self._ask("PUT", location, file, headers).close()

    def _url(self, operation: str, path: str, **more: str) -> str:
        asked = {"op": operation, "user.name": self._user, **more}
        return f"{self._endpoint}{API}{urllib.parse.quote(path)}?{urllib.parse.urlencode(asked)}"

    def _json(self, operation: str, path: str) -> Any:
        with self._follow("GET", self._url(operation, path)) as answer:
            return json.load(answer)

    def _follow(self, method: str, url: str) -> Any:
        """Return the answer, of the datanode that the namenode names if it names one."""
        answer = self._ask(method, url)
        return self._ask(method, self._location(answer)) if answer.status in _MOVED else answer

    def _location(self, answer: http.client.HTTPResponse) -> str:
        """Return where the namenode sends us, which is thereby allowed: an admin trusts that namenode."""
        location = answer.headers.get("Location") or ""
        answer.close()
        parts = urllib.parse.urlsplit(location)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise HdfsError(f"WebHDFS names no datanode: {answer.status} {location}".strip())
        self._allowed.admit(parts.hostname, parts.port or _PORTS[parts.scheme])
        return location

    def _ask(self, method: str, url: str, data: Any = None, headers: Any = None) -> Any:
        request = urllib.request.Request(url, data, headers or {}, method=method)  # noqa: S310 guarded
        try:
            return self._opener.open(request, timeout=WAIT_S)
        except urllib.error.HTTPError as error:
            if error.code in _MOVED:
                return error
            raise _read_error(error) from None


def _read_error(error: urllib.error.HTTPError) -> Exception:
    """Return the namenode's RemoteException."""
    with error:
        try:
            about = json.load(error)["RemoteException"]
            kind, text = str(about["exception"]), str(about["message"])
        except (ValueError, KeyError, TypeError):
            return HdfsError(f"{error.code} {error.reason}")
    return FileNotFoundError(text) if kind == "FileNotFoundException" else HdfsError(f"{kind}: {text}")
