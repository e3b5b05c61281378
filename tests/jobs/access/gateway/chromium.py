"""Chromium in a thread of its own, so that the test may use the database meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.conf import settings
from playwright.sync_api import BrowserContext

from tests.browser import chromium
from tests.jobs.access.gateway.served import CONSOLE

T = TypeVar("T")


def in_chromium(look: Callable[[BrowserContext], T], *, session_key: str = "") -> T:
    """What `look` gives back, in a browser that is signed in to the console with `session_key`."""

    def run() -> T:
        with chromium() as browser:
            context = browser.new_context(locale="en-GB")
            if session_key:
                context.add_cookies(
                    [
                        {
                            "name": settings.SESSION_COOKIE_NAME,
                            "value": session_key,
                            "domain": CONSOLE,
                            "path": "/",
                            "httpOnly": True,
                            "sameSite": "Lax",
                        }
                    ]
                )
            return look(context)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()
