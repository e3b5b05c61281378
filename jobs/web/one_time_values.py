"""Values that are shown once: a new token or secret, on the page that its form leads to.

It waits in the session, encrypted, for that page alone; a reload neither shows nor makes it again.
"""

from __future__ import annotations

from typing import Final

from jobs.web.http import SignedIn
from quotas import encryption

_KEY: Final = "shown-once"


def store(request: SignedIn, about: str, value: str) -> None:
    """Store `value` for the next page about `about`, in place of an earlier value."""
    request.session[_KEY] = [about, encryption.encrypt(value)]


def pop(request: SignedIn, about: str) -> str:
    """Return the value for a page about `about`, and remove it; "" if there is none."""
    stored = request.session.get(_KEY)
    if not stored or stored[0] != about:
        return ""
    del request.session[_KEY]
    try:
        return encryption.decrypt(stored[1])
    except encryption.Unreadable:  # its key has left the key ring meanwhile
        return ""
