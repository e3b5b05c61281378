"""Host headers of Alibaba's SDK where its endpoint was given as an address, with a scheme or a path.

The SDK sends the endpoint as it is: `http://console:8000`, `console:8000/` or `console:8000/prefix`, none of
which is a host name.  With a prefix it asks for `/prefix/api/v1/…` and signs `/api/v1/…`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from jobs.access.gateway import addresses

_ADDRESS: Final = re.compile(
    rb"(?:https?://)?(?P<host>(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)(?P<prefix>/[a-z0-9._~/-]*)?",
    re.IGNORECASE,
)


def with_plain_host(scope: Any) -> Any:
    """Return the scope of a request to Alibaba's APIs, with a host name alone in its Host header.

    The header as it was sent, which the signature covers, stays in the scope as `SENT_HOST`.  The names of
    jobs' endpoints, which are none of Django's, are left as they are, for Django to refuse.
    """
    sent = [value for name, value in scope["headers"] if name == b"host"]
    if len(sent) != 1 or b"/" not in sent[0]:
        return scope
    match = _ADDRESS.fullmatch(sent[0])
    if match is None or addresses.is_apps_host(match["host"].decode("ascii").lower()):
        return scope
    prefix = (match["prefix"] or b"").rstrip(b"/")
    path = scope["path"].removeprefix(prefix.decode("ascii"))
    from jobs.api.vendors import registry  # noqa: PLC0415  # need settings, unlike this module
    from jobs.api.vendors.alibaba import AlibabaApi  # noqa: PLC0415
    from jobs.api.vendors.authentication import SENT_HOST  # noqa: PLC0415

    if not isinstance(registry.find_by_path(path), AlibabaApi):
        return scope
    headers = [(name, match["host"] if name == b"host" else value) for name, value in scope["headers"]]
    raw_path = scope.get("raw_path") or b""
    return {
        **scope,
        "path": path,
        "raw_path": raw_path.removeprefix(prefix),
        "headers": headers,
        SENT_HOST: sent[0].decode("latin-1"),
    }
