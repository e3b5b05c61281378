"""TLS between a session listener and the console: one certificate for each side, and no authority.

Part of the node bundle: it needs only the standard library.
"""

from __future__ import annotations

import os
import ssl


class UnknownPeer(OSError):
    """The other side shows another certificate than the expected one."""


def listener_context(own: str, console: str) -> ssl.SSLContext:
    """Return the listener's context; `own` is its key and certificate as PEM, `console` a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    return _trust(context, own, console)


def console_context(own: str, listener: str) -> ssl.SSLContext:
    """Return the console's context, likewise."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _trust(context, own, listener)


def check_certificate(shown: bytes | None, expected: str) -> None:
    """Raise UnknownPeer unless the certificate `shown` (DER) is the expected one (PEM)."""
    if shown != ssl.PEM_cert_to_DER_cert(expected):
        raise UnknownPeer("another certificate")


def _trust(context: ssl.SSLContext, own: str, other: str) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=other)
    file = os.memfd_create("key", os.MFD_CLOEXEC)  # the library reads keys only from files
    try:
        os.write(file, own.encode())
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return context
