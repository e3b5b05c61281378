"""Both sides of a door know each other by one certificate each, and trust nobody else's word for it.

Taken to the nodes by `luggage`: it needs nothing but Python's own library.
"""

from __future__ import annotations

import os
import ssl


class Stranger(OSError):
    """It is not who it should be."""


def door(own: str, console: str) -> ssl.SSLContext:
    """The node's side, which has the key in `own`."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.num_tickets = 0
    return _knowing(made, own, console)


def console(own: str, door: str) -> ssl.SSLContext:
    """The console's side, likewise."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    return _knowing(made, own, door)


def check(shown: bytes | None, expected: str) -> None:
    """Raise Stranger unless that certificate was shown."""
    if shown != ssl.PEM_cert_to_DER_cert(expected):
        raise Stranger("another certificate")


def _knowing(made: ssl.SSLContext, own: str, other: str) -> ssl.SSLContext:
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(cadata=other)
    file = os.memfd_create("key", os.MFD_CLOEXEC)  # the library reads keys from files alone
    try:
        os.write(file, own.encode())
        made.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return made
