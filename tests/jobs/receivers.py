"""Servers that messages are sent to: real ones, on this machine, that remember what came."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True)
class Came:
    """One request; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes


Reply = Callable[[Came], tuple[int, Mapping[str, str], bytes]]


def accepted(came: Came) -> tuple[int, Mapping[str, str], bytes]:
    return 200, {}, b"ok"


@dataclass
class Receiver:
    """A running server: what came, and how it answers from now on.  `connections` counts those it took."""

    port: int
    came: list[Came] = field(default_factory=list)
    reply: Reply = accepted
    connections: int = 0

    def url(self, path: str = "/hook", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@contextmanager
def receiving(context: ssl.SSLContext | None = None, *, port: int = 0) -> Iterator[Receiver]:
    """A server on a port of 127.0.0.1, any if none is given, with TLS when there is a `context`."""
    receiver = Receiver(0)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            headers = {name.lower(): value for name, value in self.headers.items()}
            came = Came(self.path, headers, self.rfile.read(length))
            receiver.came.append(came)
            status, more, body = receiver.reply(came)
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        def get_request(self) -> Any:
            receiver.connections += 1
            sock, address = super().get_request()
            return (context.wrap_socket(sock, server_side=True), address) if context else (sock, address)

        def handle_error(self, *args: Any) -> None:
            """A caller that left is what is tested."""

    server = Server(("127.0.0.1", port), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def authority(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """A certificate for `names` that vouches for itself: the file to trust, and a server's context."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, private = folder / "trusted.pem", folder / "private.pem"
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, private)
    return trusted, context
