"""`python -m console.web`: the web server, as the settings want it."""

import os
import resource

import uvicorn

from console.protocol import BoundedHttp

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

MOST_DESCRIPTORS = 65536
SHUTDOWN_SECONDS = 3  # a live page reconnects; nobody waits for its stream to end


def main() -> None:
    """Serve until SIGTERM."""
    from console import settings  # noqa: PLC0415  # the module itself; Django configures it in the server

    _open_as_many_as_allowed()
    uvicorn.run(
        "console.asgi:application",
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
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def _open_as_many_as_allowed() -> None:
    """A limit of 1024 descriptors is soon reached: each WebSocket to a job takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


if __name__ == "__main__":
    main()
