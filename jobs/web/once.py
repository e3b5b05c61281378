"""What is shown once: a new token or secret, on the page that its form leads to.

It waits in the session, encrypted, for that page alone; a reload neither shows nor makes it again.
"""

from __future__ import annotations

from typing import Final

from jobs.web.http import SignedIn
from quotas import encryption

_KEY: Final = "shown-once"


def keep(request: SignedIn, about: str, value: str) -> None:
    """Keep `value` for the next page about `about`, in place of what no page has shown."""
    request.session[_KEY] = [about, encryption.encrypt(value)]


def take(request: SignedIn, about: str) -> str:
    """Return what was kept for a page about `about`, and forget it; "" where there is nothing."""
    kept = request.session.get(_KEY)
    if not kept or kept[0] != about:
        return ""
    del request.session[_KEY]
    return encryption.decrypt(kept[1])
