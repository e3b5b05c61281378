"""`python -m console.server.web`: the web server, as the settings want it."""

import os
import resource
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from console.configuration.tls import Mode
from console.server import certificate
from console.server.listener import Server
from console.server.protocol import BoundedHttp
from jobs.node.network.service import SOCKET

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

MOST_DESCRIPTORS = 65536
KEEP_ALIVE_SECONDS = 20
"""Longer than programs wait between two requests: the samples of PAI-DLC's pages poll every 5 s, on one
connection, and fail where it is closed at that moment.
"""

SHUTDOWN_SECONDS = 3  # a live page reconnects; nobody waits for its stream to end


def main() -> None:
    """Serve until SIGTERM."""
    from console import settings  # noqa: PLC0415  # the module itself; Django configures it in the server

    _open_as_many_as_allowed()
    tls = settings.CONSOLE_TLS_SERVED
    certificate.ensure(tls, settings.CONSOLE_HOSTS, settings.CONSOLE_APPS_DOMAIN, settings.CONSOLE_BIND)
    config = make_config("console.asgi:application")
    server = Server(
        config,
        share=settings.CONSOLE_CONNECTIONS_PER_ADDRESS,
        exempt=settings.CONSOLE_TRUSTED_PROXIES,
        tls=certificate.context(tls) if tls.mode is Mode.OWN else None,
        lead=_https,
        job_service=settings.CONSOLE_HOME / SOCKET,
    )
    server.run([_bind(settings.CONSOLE_BIND, settings.PORT, is_shared=settings.CONSOLE_WEB_PROCESSES > 1)])


def _bind(host: str, port: int, *, is_shared: bool) -> socket.socket:
    """Return a socket at the address; where it `is_shared`, the kernel spreads connections over processes."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((host, port))
    return bound


def make_config(application: str | Callable[..., Any]) -> uvicorn.Config:
    """Return how uvicorn serves `application`, believing X-Forwarded-For of trusted proxies alone."""
    from console import settings  # noqa: PLC0415  # see above

    return uvicorn.Config(
        application,
        host=settings.CONSOLE_BIND,
        port=settings.PORT,
        loop="uvloop",
        http=BoundedHttp,
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # it would block everybody while it squeezes one notebook's output
        lifespan="on",
        access_log=False,
        log_config=None,
        proxy_headers=bool(settings.CONSOLE_TRUSTED_PROXIES),
        forwarded_allow_ips=settings.CONSOLE_TRUSTED_PROXIES,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def _https(host: str, path: str) -> str:
    """Return the https address of what was asked for by http; a name that is not ours is not repeated."""
    from console.addresses import absolute  # noqa: PLC0415  # there are settings by now
    from jobs.access.gateway import addresses  # noqa: PLC0415

    return f"https://{host.lower()}{path}" if addresses.is_known(host) else absolute(path)


def _open_as_many_as_allowed() -> None:
    """A limit of 1024 descriptors is soon reached: each WebSocket to a job takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


if __name__ == "__main__":
    main()
