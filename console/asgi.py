"""The ASGI application: jobs' endpoints by their host names, static files, then Django."""

import os
from typing import Any

import django
from django.conf import settings
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from servestatic import ServeStaticASGI

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup(set_prefix=False)

from console.server.handler import Handler  # noqa: E402  # there are models from here on
from jobs.access.gateway.app import Gateway  # noqa: E402
from jobs.access.gateway.terminals import Terminals  # noqa: E402

# Names that ManifestStaticFilesStorage gives: a hash of the content before the extension.
HASHED = r"^.+\.[0-9a-f]{12}\.[^./]+$"

_gateway = Gateway()
_terminals = Terminals()
_django = Handler()
_pages: Any = (
    ASGIStaticFilesHandler(_django)
    if settings.DEBUG
    else ServeStaticASGI(
        _django, root=settings.STATIC_ROOT, prefix=settings.STATIC_URL, immutable_file_test=HASHED
    )
)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Endpoints' hosts are the gateway's; whatever else somebody calls us is for Django to refuse."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
    elif _gateway.serves(scope):
        await _gateway(scope, receive, send)
    elif _terminals.serves(scope):
        await _terminals(scope, receive, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close"})  # the console's own pages use no other
    else:
        await _pages(scope, receive, send)


async def _live(receive: Any, send: Any) -> None:
    """From the server's start to its end."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await _gateway.close()
    await _terminals.close()
    await send({"type": "lifespan.shutdown.complete"})
