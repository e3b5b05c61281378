"""A browser's User-Agent in words: "Firefox 128 on Windows"."""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext as _

_BROWSERS: Final = (
    ("Edge", r"Edg(?:e|A|iOS)?"),
    ("Opera", r"OPR|Opera"),
    ("Samsung Internet", r"SamsungBrowser"),
    ("Vivaldi", r"Vivaldi"),
    ("Firefox", r"Firefox|FxiOS"),
    ("Chromium", r"Chromium"),
    ("Chrome", r"(?:Headless)?Chrome|CriOS"),
    ("Safari", r"Version(?=/.* Safari/)"),
    ("curl", r"curl"),
)
"""Those that name others too come before these."""

_SYSTEMS: Final = (
    ("Android", r"Android"),
    ("iPhone", r"iPhone"),
    ("iPad", r"iPad"),
    ("ChromeOS", r"CrOS"),
    ("Windows", r"Windows"),
    ("macOS", r"Mac OS X|Macintosh"),
    ("Linux", r"Linux|X11"),
)


def describe(agent: str) -> str:
    """Return the browser with its major version and the system; the text itself where neither is known."""
    found = (
        (name, match) for name, words in _BROWSERS if (match := re.search(rf"\b(?:{words})/(\d+)", agent))
    )
    name, match = next(found, ("", None))
    browser = f"{name} {match[1]}" if match else ""
    system = next((name for name, words in _SYSTEMS if re.search(words, agent)), "")
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or agent
