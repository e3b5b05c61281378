"""What a connection has still to be told: gathered, bounded, and spread when there is a crowd."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from jobs.live import inbox as module
from jobs.live.cursor import Cursor, parse
from jobs.live.inbox import Inbox, spread_ms

NOW = Cursor(1_700_000_000_000, 7)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two messages."""
    monkeypatch.setattr(module, "LEAST_S", 0.0)


async def woken(*fills: Callable[[Inbox], None]) -> Inbox:
    """An inbox that was filled, once it has called for somebody to take it."""
    wake = asyncio.Event()
    box = Inbox(wake.set)
    for fill in fills:
        fill(box)
    await asyncio.wait_for(wake.wait(), 60)
    return box


async def test_inbox_returns_names_once_and_sorted() -> None:
    box = await woken(lambda box: box.add(["b", "a"], NOW), lambda box: box.add(["a"], NOW))
    assert box.look() == (["a", "b"], str(NOW), 0)
    assert box.look() is None


async def test_inbox_delays_names_right_after_a_message() -> None:
    wake = asyncio.Event()
    box = Inbox(wake.set)
    loop = asyncio.get_running_loop()
    box.add(["first"], NOW)
    await wake.wait()
    assert box.look()
    told = loop.time()
    wake.clear()
    box.add(["second"], NOW)
    assert box.look() is None
    await asyncio.wait_for(wake.wait(), 60)
    assert loop.time() - told >= module.LEAST_S * 0.9
    assert box.look() == (["second"], str(NOW), 0)


async def test_inbox_with_too_many_names_becomes_everything() -> None:
    names = [f"job:{number}" for number in range(module.MOST_NAMES + 1)]
    box = await woken(lambda box: box.add(names, NOW))
    assert box.look() == (None, str(NOW), 0)


@pytest.mark.usefixtures("at_once")
async def test_inbox_returns_everything_once() -> None:
    box = await woken(lambda box: box.add(["a"], NOW), lambda box: box.add_everything(None))
    assert box.look() == (None, str(NOW), 0)
    box = await woken(lambda box: box.add(["a"], NOW))
    assert box.look() == (["a"], str(NOW), 0)


async def test_inbox_ignores_other_names() -> None:
    wake = asyncio.Event()
    box = Inbox(wake.set, frozenset({"mine"}))
    box.add(["other"], NOW)
    box.add(["other", "mine"], NOW)
    await asyncio.wait_for(wake.wait(), 60)
    assert box.look() == (["mine"], str(NOW), 0)


def test_inbox_spreads_crowd_over_time_but_not_a_few() -> None:
    assert spread_ms(1) == spread_ms(module.CROWD) == 0
    assert 0 < spread_ms(module.CROWD + 1) < spread_ms(400) <= module.SPREAD_MS_MOST
    assert spread_ms(100_000) == module.SPREAD_MS_MOST


@pytest.mark.parametrize("text", ["", "1", "1-", "-1", "1-2-3", "a-b", "1.1.5", "9" * 30 + "-1", None])
def test_cursor_parse_of_invalid_text_is_none(text: str | None) -> None:
    assert parse(text) is None


def test_cursor_parses_its_own_text() -> None:
    assert parse(str(NOW)) == NOW
    assert NOW.before < f"{NOW.moment}-0"
