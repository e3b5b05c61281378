"""HTTP and WebSockets with as little in between as Python allows: what answers is what is measured."""

from __future__ import annotations

import socket
import time
from typing import Final, Self

PIECE: Final = 1 << 20


class Wire:
    """One kept connection to a server on this machine."""

    def __init__(self, port: int, host: str, cookie: str = "") -> None:
        self._head = f"Host: {host}\r\n" + (f"Cookie: {cookie}\r\n" if cookie else "")
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._room = memoryview(bytearray(PIECE))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self._socket.close()

    def get(self, path: str) -> float:
        """Seconds that one GET takes, to the last byte."""
        return self._ask(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode(), b"")

    def post(self, path: str, body: bytes) -> float:
        """Likewise a POST."""
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        return self._ask(head.encode(), body)

    def _ask(self, head: bytes, body: bytes) -> float:
        began = time.perf_counter()
        self._socket.sendall(head)
        if body:
            self._socket.sendall(body)
        answer, got = self._until(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        lines = answer.lower().split(b"\r\n")
        length = next(int(line[16:]) for line in lines if line.startswith(b"content-length: "))
        self._read(length - got)
        return time.perf_counter() - began

    def _until(self, end: bytes) -> tuple[bytes, int]:
        """What comes up to `end`, and how many bytes came after it."""
        answer = b""
        while end not in answer:
            piece = self._socket.recv(PIECE)
            assert piece, answer
            answer += piece
        head, _end, rest = answer.partition(end)
        return head, len(rest)

    def _read(self, left: int) -> None:
        while left > 0:
            count = self._socket.recv_into(self._room)
            assert count, left
            left -= count

    def open_socket(self, path: str) -> None:
        """Go on as a WebSocket (RFC 6455)."""
        asked = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        self._socket.sendall(f"GET {path} HTTP/1.1\r\n{self._head}{asked}{key}\r\n".encode())
        answer, _got = self._until(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 "), answer

    def echo(self, payload: bytes) -> float:
        """Seconds until a short message has come back."""
        assert len(payload) < 126
        began = time.perf_counter()
        self._socket.sendall(bytes([0x82, 0x80 | len(payload), 0, 0, 0, 0]) + payload)
        self._read(2 + len(payload))
        return time.perf_counter() - began
