"""Searches of logs by regular expressions, done by `grep -E`.

grep takes time in proportion to the log, whatever the expression.  Python's own engine would not, and an
expression comes from whoever may read the log, or submits a job.  What grep does not bound itself is bounded
here: its memory, its time, and the number of searches at a time.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import IO, Final

from jobs.logs import log_search
from jobs.logs.log_search import EXCERPT, SEARCH_S, Match, Matches
from jobs.models import LogStream

MOST_MEMORY: Final = 512 * 1024 * 1024
"""Bytes of address space of one search."""

MOST_REPETITIONS: Final = 255
PATIENCE_S: Final = 3.0
"""Seconds after the end of a search in which grep has to be done with what it was given."""

WALL_S: Final = 30.0
"""Seconds for the lines of a running job, which a busy machine must not lose: MOST_CPU_S bounds the work."""

MOST_CPU_S: Final = 5
"""Seconds of processor time of one grep."""

_SLOTS: Final = threading.BoundedSemaphore(max(2, (os.cpu_count() or 1) // 2))
"""Searches at a time in this process; the others go on from where they began."""

LEVELS: Final = {
    "error": r"\b(error|critical|fatal|exception|traceback|panic|segmentation fault|out of memory)\b"
    r"|[A-Za-z](Error|Exception)\b",
    "warning": r"\b(warn|warning|error|critical|fatal|exception|traceback|panic|segmentation fault"
    r"|out of memory)\b|[A-Za-z](Error|Exception|Warning)\b",
}
"""Lines of a level and of worse ones, by the words that programs write."""


class BadPattern(ValueError):
    """The regular expression can't be used; the text says why."""


class PatternTooSlow(Exception):
    """The expression took too long on a part of the log."""


def search(stream: LogStream, pattern: str, start: int, limit: int, seconds: float = SEARCH_S) -> Matches:
    """Find the lines from `start` on that match an extended regular expression, ignoring the case.

    It returns after about `seconds`, or `limit` matches.  Raises BadPattern, PatternTooSlow.
    """
    expression = translate(pattern)
    if not _SLOTS.acquire(timeout=seconds):
        return Matches([], start)
    try:
        return _search(stream, expression, start, limit, time.monotonic() + seconds)
    finally:
        _SLOTS.release()


def _search(stream: LogStream, expression: str, start: int, limit: int, deadline: float) -> Matches:
    fed = _FedBlocks()
    with _grep([expression], limit, deadline + PATIENCE_S, ignores_case=True) as grep:
        assert grep.stdin is not None
        next_offset: int | None = None
        with suppress(BrokenPipeError), grep.stdin as feed:
            for offset, block in log_search.blocks(stream, start, overlap=0):
                fed.add(offset, block)
                feed.write(block)
                if not block.endswith(b"\n"):
                    feed.write(b"\n")
                if time.monotonic() > deadline:
                    next_offset = offset + len(block)
                    break
        lines = grep.lines()
    if len(lines) >= limit:
        next_offset = fed.offset_of(lines[-1].end)
    matches = [Match(fed.offset_of(line.start), line.text.decode("utf-8", "replace")) for line in lines]
    return Matches(matches, next_offset)


def find_first(
    parts: Iterable[bytes], patterns: Sequence[str], seconds: float = SEARCH_S
) -> tuple[int, str] | None:
    """Return the first line that matches one of the expressions, and the number of its part; None for none.

    The parts are whole lines, and case counts.  Parts that are not reached in `seconds` are not taken.

    Raises BadPattern, PatternTooSlow.
    """
    expressions = [translate(pattern) for pattern in patterns]
    rest = iter(parts)
    first = next(rest, None)
    if first is None or not expressions:
        return None
    if not _SLOTS.acquire(timeout=seconds + WALL_S):
        raise PatternTooSlow
    try:
        return _find_first(chain((first,), rest), expressions, seconds)
    finally:
        _SLOTS.release()


def _find_first(parts: Iterable[bytes], expressions: Sequence[str], seconds: float) -> tuple[int, str] | None:
    deadline, starts, size = time.monotonic() + seconds, list[int](), 0
    with _grep(expressions, 1, deadline + WALL_S, ignores_case=False) as grep:
        assert grep.stdin is not None
        with suppress(BrokenPipeError), grep.stdin as feed:
            for part in parts:
                starts.append(size)
                ended = part if part.endswith(b"\n") else part + b"\n"
                size += feed.write(ended)
                if time.monotonic() > deadline:
                    break
        lines = grep.lines()
    if not lines:
        return None
    found = lines[0]
    return bisect_right(starts, found.start) - 1, found.text.decode("utf-8", "replace").strip()


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """A matching line: the number of the block that it begins in, its position there, and its text."""

    block: int
    position: int
    text: str


def search_blocks(blocks: Iterable[bytes], pattern: str, most: int, seconds: float) -> list[BlockMatch]:
    """Find at most `most` lines that match, ignoring the case; a line may go on in the next block.

    Raises BadPattern, PatternTooSlow.
    """
    expression = translate(pattern)
    if not _SLOTS.acquire(timeout=seconds + PATIENCE_S):
        raise PatternTooSlow
    try:
        return _search_blocks(blocks, expression, most, time.monotonic() + seconds + PATIENCE_S)
    finally:
        _SLOTS.release()


def _search_blocks(blocks: Iterable[bytes], expression: str, most: int, deadline: float) -> list[BlockMatch]:
    starts, size = list[int](), 0
    with _grep([expression], most, deadline, ignores_case=True) as grep:
        assert grep.stdin is not None
        with suppress(BrokenPipeError), grep.stdin as feed:
            for block in blocks:
                starts.append(size)
                size += feed.write(block)
        lines = grep.lines()
    found = []
    for line in lines:
        number = bisect_right(starts, line.start) - 1
        found.append(BlockMatch(number, line.start - starts[number], line.text.decode("utf-8", "replace")))
    return found


def escape(text: str) -> str:
    """Return the expression that matches a text as it is."""
    return _SPECIAL.sub(r"\\\g<0>", text)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that grep found, by its bytes among those that it was given."""

    start: int
    end: int
    text: bytes


class _FedBlocks:
    """Where the bytes that grep was given lie in the log: bytes are left out of a log, and newlines added."""

    def __init__(self) -> None:
        self._fed: list[int] = []
        self._offsets: list[int] = []
        self._size = 0

    def add(self, offset: int, block: bytes) -> None:
        self._fed.append(self._size)
        self._offsets.append(offset)
        self._size += len(block) + (not block.endswith(b"\n"))

    def offset_of(self, position: int) -> int:
        """Return the offset in the log of a position among the bytes given."""
        at = bisect_right(self._fed, position) - 1
        return self._offsets[at] + position - self._fed[at]


class _Grep:
    """A running grep: its output is read as it comes, so that it never waits for a reader."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.stdin = process.stdin
        self._lines: list[_Line] = []
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, output: IO[bytes]) -> None:
        for line in output:
            number, _colon, text = line.partition(b":")
            start = int(number)
            self._lines.append(_Line(start, start + len(text), text.rstrip(b"\n")[:EXCERPT]))

    def close(self) -> None:
        """End it, and wait for that."""
        self._process.kill()
        self._reader.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def lines(self) -> list[_Line]:
        """Wait for its end, and return what it found.  Raises BadPattern, PatternTooSlow."""
        self._reader.join()
        error = self._process.stderr.read() if self._process.stderr else b""
        status = self._process.wait()
        if status < 0:
            raise PatternTooSlow
        if status > 1:
            raise BadPattern(error.decode("utf-8", "replace").partition(": ")[2].strip()[:200])
        return self._lines


@contextmanager
def _grep(expressions: Sequence[str], limit: int, deadline: float, *, ignores_case: bool) -> Iterator[_Grep]:
    command = ["grep", "--extended-regexp", "--text", "--byte-offset", f"--max-count={limit}"]
    process = subprocess.Popen(
        [
            *command,
            *(["--ignore-case"] if ignores_case else []),
            *(f"--regexp={expression}" for expression in expressions),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
    )
    killer = threading.Timer(max(0.0, deadline - time.monotonic()), process.kill)
    killer.start()
    grep = _Grep(process)
    try:
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
        yield grep
    finally:
        killer.cancel()
        grep.close()


# --- expressions -----------------------------------------------------------------------------------------

_TOKEN: Final = re.compile(
    r"\\(?P<escape>.)|(?P<group>\(\?:?)|\[(?P<negated>\^?)(?P<set>\]?(?:\\.|\[:\w+:\]|[^\]\\])*)\]"
    r"|\{(?P<low>\d+)?(?:,(?P<high>\d*))?\}",
    re.DOTALL,
)
_SPECIAL: Final = re.compile(r"[\\.^$*+?(){}|\[]")
_ESCAPES: Final = {"d": "[0-9]", "D": "[^0-9]", "t": "\t"}
_IN_SETS: Final = {"d": "0-9", "w": "[:alnum:]_", "s": "[:space:]", "t": "\t"}


def translate(pattern: str) -> str:
    r"""Return an expression as people write it, in grep's words: `\d`, `(?:…)` and escapes in sets.

    Raises BadPattern for what can't be searched for in bounded time.
    """
    if "\n" in pattern or "\0" in pattern:
        raise BadPattern("a line end can't be searched for")
    return _TOKEN.sub(_translate_token, pattern)


def _translate_token(found: re.Match[str]) -> str:
    if (escape := found["escape"]) is not None:
        if escape in "123456789":
            raise BadPattern("back-references (\\1) are not supported")
        return _ESCAPES.get(escape, found[0])
    if found["group"] == "(?:":
        return "("
    if found["group"] is not None:
        raise BadPattern("look-around and flags (?…) are not supported")
    if found["set"] is not None:
        return f"[{found['negated']}{_translate_set(found['set'])}]"
    if any(
        len(each or "") > 3 or int(each or 0) > MOST_REPETITIONS for each in (found["low"], found["high"])
    ):
        raise BadPattern(f"at most {MOST_REPETITIONS} repetitions are supported")
    return found[0]


def _translate_set(members: str) -> str:
    """Return a set without escapes, which mean themselves there: `]` has to be first, and `-` last."""
    escaped = re.findall(r"\\(.)", members, re.DOTALL)
    rest = re.sub(r"\\(.)", lambda each: "" if each[1] in "]-" else _IN_SETS.get(each[1], each[1]), members)
    return "]" * ("]" in escaped) + rest + "-" * ("-" in escaped)
