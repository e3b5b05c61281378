"""A receiver of the console's webhooks."""

import hashlib
import hmac
import time
from collections.abc import Mapping


def is_genuine(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return whether the console sent a message, within the last five minutes."""
    timestamp, delivery = headers["X-Console-Timestamp"], headers["X-Console-Delivery"]
    if abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{timestamp}.{delivery}.".encode() + body
    expected = "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(expected, each) for each in headers["X-Console-Signature"].split(","))
