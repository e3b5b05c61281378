"""`python -m tests.fuzz [--seconds N] [--keep] [DIALECT …]`: look for texts that parse badly.

One dialect after the other, in equal parts of the time, and a part for what texts of 1 MiB cost.
Starts from the samples, the seeds' files and the corpus; what stops it is printed and left in the current
folder.  With --keep, the corpus becomes the smallest texts that together reach what was reached.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jobs import dialects
from tests.fuzz.target import corpus, keep
from tests.jobs.dialects.sample_fields import samples

SEEDS: Final = Path(__file__).parents[1] / "data" / "seeds"
LONGEST: Final = 4096
"""Bytes of one text: a longer one reaches nothing that a shorter one does not."""
MOST_KEPT: Final = 32_000
"""Bytes of one dialect's corpus."""

_EXECUTED: Final = re.compile(r"number_of_executed_units:\s*(\d+)")


def main() -> int:
    """Every dialect asked for; 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("dialects", nargs="*", metavar="DIALECT", help=", ".join(dialects.NAMES))
    parser.add_argument("--seconds", type=int, default=600, help="for all together")
    parser.add_argument("--keep", action="store_true", help="save the smallest corpus that reaches as much")
    options = parser.parse_args()
    names = options.dialects or dialects.NAMES
    each = options.seconds // (len(names) + 1)
    found = [_fuzz(name, each, keeping=options.keep) for name in names]
    print(f"{sum(tried for tried, _failed in found):,} texts in all", flush=True)
    cost = [sys.executable, "-m", "tests.fuzz.cost", "--seconds", str(each), *names]
    is_costly = subprocess.run(cost, check=False).returncode != 0
    return int(is_costly or any(failed for _tried, failed in found))


def _fuzz(name: str, seconds: int, *, keeping: bool) -> tuple[int, bool]:
    """How many texts were tried, and whether one of them was bad."""
    with tempfile.TemporaryDirectory() as folder:
        reached, words, again = (Path(folder) / name for name in ("reached", "words", "again"))
        reached.mkdir()
        again.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.fuzz.one "$0" {name} "$@"\n')
        again.chmod(0o700)
        for number, text in enumerate(_start(name)):
            (reached / f"start-{number}").write_text(text)
        words.write_text("".join(f'"{word}"\n' for word in _words(name)))
        done = _run(again, str(reached), f"-max_total_time={seconds}", f"-dict={words}", "-timeout=10")
        counted = _EXECUTED.search(done.stderr)
        tried = int(counted[1]) if counted else 0
        print(f"{name}: {tried:,} texts, {'FAILED' if done.returncode else 'nothing found'}", flush=True)
        if done.returncode:
            print(done.stdout[-4000:], done.stderr[-4000:])
        if keeping:
            keep(name, _smallest(again, reached, Path(folder) / "smallest"))
        return tried, bool(done.returncode)


def _run(again: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = (f"-max_len={LONGEST}", "-print_final_stats=1", "-verbosity=1")
    return subprocess.run(
        [str(again), *arguments, *options],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _start(name: str) -> Iterator[str]:
    """Texts to begin with."""
    yield from corpus(name)
    yield from samples(name).values()
    yield from (path.read_text() for path in SEEDS.iterdir())


def _words(name: str) -> list[str]:
    """Keys of the dialect, which chance would not spell."""
    keys = {each.rpartition("/")[2] for row in dialects.fields(name) for each in (row.spelling, *row.aliases)}
    return sorted(key for key in keys if re.fullmatch(r"[A-Za-z0-9_\-.]+", key))


def _smallest(again: Path, reached: Path, smallest: Path) -> list[str]:
    """The texts that add to what is reached, the shortest first, as many as there is room for."""
    smallest.mkdir()
    _run(again, str(smallest), str(reached), "-merge=1")
    texts = sorted((path.read_bytes().decode(errors="replace") for path in smallest.iterdir()), key=len)
    kept: list[str] = []
    for text in texts:
        if sum(map(len, kept)) + len(text) <= MOST_KEPT:
            kept.append(text)
    return kept


if __name__ == "__main__":
    sys.exit(main())
