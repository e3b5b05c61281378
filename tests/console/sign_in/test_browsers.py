"""A browser's User-Agent in words."""

from __future__ import annotations

import pytest

from console.sign_in.browsers import describe

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
CHROME = f"{WEBKIT} Chrome/126.0.0.0"
MAC = "(Macintosh; Intel Mac OS X 14_5)"
PHONE = "(iPhone; CPU iPhone OS 17_5 like Mac OS X)"


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox 128 on Windows"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {CHROME} Safari/537.36", "Chrome 126 on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0) {CHROME} Safari/537.36 Edg/126.0.2592.61", "Edge 126 on Windows"),
        (f"Mozilla/5.0 {MAC} AppleWebKit/605.1.15 Version/17.5 Safari/605.1.15", "Safari 17 on macOS"),
        (f"Mozilla/5.0 {PHONE} {WEBKIT} CriOS/126.0.6478.54 Safari/604.1", "Chrome 126 on iPhone"),
        (
            f"Mozilla/5.0 (Linux; Android 14) {WEBKIT} SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari",
            "Samsung Internet 25 on Android",
        ),
        ("curl/8.5.0", "curl 8"),
        ("Netscape", "Netscape"),
        ("", ""),
    ],
)
def test_user_agent_description_names_browser_and_system(agent: str, words: str) -> None:
    assert describe(agent) == words
