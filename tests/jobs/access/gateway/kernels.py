"""Jupyter's kernels, as a page of Jupyter's talks to them."""

from __future__ import annotations

import json
import uuid

from tests.jobs.access.gateway.served import Browser


def execute(visitor: Browser, host: str, kernel: str, code: str) -> str:
    """What `code` prints in the kernel, over Jupyter's own WebSocket protocol."""
    session = uuid.uuid4().hex
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": session}
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    asked = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}
    printed = ""
    with visitor.socket(host, f"/api/kernels/{kernel}/channels?session_id={session}") as socket:
        socket.send(json.dumps(asked))
        while True:
            message = json.loads(socket.recv(60))
            if message["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            if message["msg_type"] == "stream":
                printed += message["content"]["text"]
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return printed
