"""The reader of one growing file: whole characters, no byte twice, bounded memory."""

from __future__ import annotations

import asyncio
import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.live import tail as module
from jobs.live.tail import Tail, decode, pause


class Grown:
    """A file that a test writes to, and a tail of it."""

    def __init__(self, path: Path, begun: bytes = b"") -> None:
        self.path = path
        self.path.write_bytes(begun)
        self.tail = Tail((1, 1), os.open(path, os.O_RDONLY))

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    async def read(self, offset: int = 0) -> tuple[str, int]:
        """All text from `offset` on that may be told now, and where it ends."""
        text = ""
        while (frame := await self.tail.after(offset)) is not None:
            assert frame.start == offset
            text += "".join(json.loads(line[6:]) for line in frame.event.splitlines() if line[:5] == b"data:")
            assert f"id: 1.1.{frame.end}\n".encode() in frame.event
            offset = frame.end
        return text, offset


@pytest.fixture
def grown(tmp_path: Path) -> Grown:
    return Grown(tmp_path / "log")


@given(
    data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=8), start=st.integers(0, 300)
)
def test_tail_of_any_write_pattern_gives_whole_text(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int], start: int
) -> None:
    log = Grown(tmp_path_factory.getbasetemp() / "any")
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in pairwise(edges):
        log.write(data[begin:end])
        log.tail.look()
    log.tail.ended = True
    log.tail.look()
    assert log.tail.done
    text, end = asyncio.run(log.read())
    assert (text, end) == (data.decode("utf-8", "replace"), len(data))
    start = min(start, len(data))
    assert asyncio.run(log.read(start)) == (data[start:].decode("utf-8", "replace"), len(data))


@given(st.text(min_size=4), st.integers(4, 40))
def test_decode_of_cut_character_waits_for_rest(text: str, cut: int) -> None:
    data = text.encode("utf-8", "ignore")
    first, used = decode(data[:cut], last=False)
    rest, _used = decode(data[used:], last=True)
    assert first + rest == data.decode()


def test_decode_of_lone_character_start_stops_waiting() -> None:
    assert decode("日".encode()[:2], last=False) == ("\ufffd", 2)


async def test_tail_begins_at_file_end_but_not_within_character(tmp_path: Path) -> None:
    for left in range(1, 4):
        begun = b"before " + "😀".encode()[:left]
        log = Grown(tmp_path / str(left), begun)
        assert log.tail.head == len(b"before ")
        log.write("😀".encode()[left:])
        assert log.tail.look()
        assert await log.read(log.tail.head - 4) == ("😀", len(b"before ") + 4)


async def test_tail_buffer_is_bounded_and_rest_is_reread(grown: Grown) -> None:
    for number in range(100):
        grown.write(b"%06d " % number + b"x" * 10_000 + b"\n")
        assert grown.tail.look()
    assert grown.tail._kept <= module.KEPT
    text, end = await grown.read()
    assert end == grown.path.stat().st_size
    assert text.encode() == grown.path.read_bytes()


async def test_tail_burst_is_not_buffered_whole(grown: Grown) -> None:
    grown.write(b"y" * (5 * module.HURRY))
    assert grown.tail.look()
    assert grown.tail._kept < 3 * module.SLICE
    text, end = await grown.read()
    assert (len(text), end) == (5 * module.HURRY, 5 * module.HURRY)


async def test_tail_event_size_is_bounded(grown: Grown) -> None:
    grown.write(b"z" * 300_000)
    grown.tail.look()
    for number in range(40):
        grown.write(b"%d\n" % number)
        grown.tail.look()
    offset = 0
    while (frame := await grown.tail.after(offset)) is not None:
        assert frame.end - frame.start <= 2 * module.SLICE
        offset = frame.end


async def test_tail_followers_at_head_share_one_event(grown: Grown) -> None:
    grown.write(b"line\n")
    grown.tail.look()
    first, second = await grown.tail.after(0), await grown.tail.after(0)
    assert first is not None
    assert second is not None
    assert first.event is second.event


async def test_tail_waits_for_shrunken_file(grown: Grown) -> None:
    grown.write(b"0123456789")
    grown.tail.look()
    os.truncate(grown.path, 3)
    assert not grown.tail.look()
    assert await grown.tail.after(5) is None or grown.tail.head == 10
    grown.write(b"x" * 20)
    assert grown.tail.look()


def test_tail_pause_grows_with_silence_and_follower_count() -> None:
    assert pause(True, 0.1, 1) == module.SOONEST_S
    assert module.SOONEST_S < pause(False, module.SOONEST_S, 1) <= module.LATEST_S
    assert pause(False, 10.0, 1) == module.LATEST_S
    assert pause(True, 0.0, 2000) == pytest.approx(0.2)
    assert pause(False, 0.0, 2000) == pytest.approx(0.2)
