"""A stand-in for Alibaba Cloud's STS: it is not Alibaba's program, and speaks AssumeRole alone.

The request is the RPC of version 2015-04-01, signed with ACS3-HMAC-SHA256, whose signature is checked.  Each
answer has other credentials.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import pytest

from jobs import signatures
from jobs.signatures import SignedRequest

KEY_ID: Final = "LTAIroleconsole"
SECRET: Final = "alibaba-console-secret"


class AlibabaSts:
    """The server; `calls` are the parameters of each request that it has answered."""

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []
        self.failing = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: SignedRequest) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the answer to a request."""
        headers = request.headers
        claim = signatures.parse_acs3(headers.get("authorization", ""))
        asked = headers.get("x-acs-action"), headers.get("x-acs-version")
        if self.failing or asked != ("AssumeRole", "2015-04-01"):
            return 400, {"Code": "InvalidAction.NotFound", "Message": "not here"}
        if claim is None or claim.key_id != KEY_ID:
            return 404, {"Code": "InvalidAccessKeyId.NotFound", "Message": "no such key"}
        if signatures.sign_acs3(request, claim.headers, SECRET) != claim.signature:
            return 400, {"Code": "SignatureDoesNotMatch", "Message": "signature"}
        call = dict(parse_qsl(request.query))
        self.calls.append(call)
        ends = datetime.now(UTC) + timedelta(seconds=int(call["DurationSeconds"]))
        number = len(self.calls)
        return 200, {
            "RequestId": "6894B13B-6D71-4EF5-88FA-F32781734A7F",
            "AssumedRoleUser": {"Arn": f"{call['RoleArn']}/{call['RoleSessionName']}"},
            "Credentials": {
                "AccessKeyId": f"STS.key{number}",
                "AccessKeySecret": f"alibaba-secret-{number}",
                "SecurityToken": f"alibaba-token-{number}",
                "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
        }


def _handler_of(sts: AlibabaSts) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answer = sts.answer(SignedRequest("POST", parts.path, parts.query, headers, body))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json;charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_words: Any) -> None:
            pass

    return Handler


@pytest.fixture
def alibaba_sts() -> Iterator[AlibabaSts]:
    sts = AlibabaSts()
    sts.start()
    yield sts
    sts.stop()
