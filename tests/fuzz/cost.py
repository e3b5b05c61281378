"""`python -m tests.fuzz.cost [--seconds N] [DIALECT …]`: look for texts of up to 1 MiB that cost too much.

Tries the hostile texts, then pieces of samples and corpus repeated, and stops at the first that costs an
act more than MOST_CPU_S or MOST_MEMORY.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import django

from console.configuration import keys
from jobs import dialects
from jobs.dialects import sweep_words
from jobs.dialects.checks import apply_all_fixes, check
from jobs.dialects.document import Document
from jobs.dialects.pasted.commands import job_file
from jobs.submission.differences import line_difference
from tests.fuzz.hostile import grown, hostile
from tests.fuzz.target import MOST_CPU_S, MOST_MEMORY, corpus
from tests.jobs.dialects.sample_fields import samples


def acts(text: str) -> dict[str, Callable[[], object]]:
    """Return what pages, API and command line do with a text, by name; needs Django's settings."""
    from console.site_yaml import parser as site  # noqa: PLC0415
    from jobs.form import file_form as form  # noqa: PLC0415
    from jobs.form.envfile import MAX_CHARACTERS  # noqa: PLC0415
    from jobs.messages.findings import of_note  # noqa: PLC0415
    from jobs.submission.checks.findings import conversion, problems_of  # noqa: PLC0415
    from jobs.submission.sweeps import arrays  # noqa: PLC0415

    def checked() -> object:
        found = check(Document(text))
        return problems_of(text, found.problems), tuple(map(of_note, found.notes))

    def read_site() -> object:
        try:
            return site.read(text)
        except site.Wrong as wrong:
            return str(wrong)

    known = check(Document(text))
    made: dict[str, Callable[[], object]] = {
        "check": checked,
        "fix": lambda: apply_all_fixes(known),
        "form": lambda: form.read(Document(text)),
        "array": lambda: arrays.of(Document(text)),
        "sweep": lambda: sweep_words.notes(known.parsed.spec) if known.parsed else None,
        "difference": lambda: line_difference(text.splitlines(), text[::-1].splitlines()),
        "environment": lambda: form.apply(Document(job_file("true")), {form.ENV_PASTE: text}),
        "short environment": lambda: form.apply(
            Document(job_file("true")), {form.ENV_PASTE: text[:MAX_CHARACTERS]}
        ),
        "site.yaml": read_site,
    }
    for name in dialects.NAMES:
        made[f"convert to {name}"] = lambda to=name: conversion(Document(text), to)  # type: ignore[misc]
    return made


def cost(act: Callable[[], object]) -> tuple[float, int]:
    """Return seconds of CPU, and bytes by which the process grew meanwhile."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, begun = _memory("VmRSS"), time.process_time()
    act()
    return time.process_time() - begun, _memory("VmHWM") - before


def _memory(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def too_costly(text: str, *, margin: float = 1, only: Collection[str] | None = None) -> list[str]:
    """Return the acts on `text` that cost too much, with what they cost."""
    found = []
    for name, act in acts(text).items():
        if only is None or name in only:
            cpu_s, memory = cost(act)
            if cpu_s > margin * MOST_CPU_S:
                cpu_s = min(cpu_s, cost(act)[0])  # other work on the machine slows it too
            if cpu_s > margin * MOST_CPU_S or memory > MOST_MEMORY:
                found.append(f"{name}: {cpu_s:.1f} s, {memory // 2**20} MiB")
    return found


def main() -> int:
    """Try texts until the time is over; 1 when one cost too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.cost", description=__doc__)
    parser.add_argument("dialects", nargs="*", metavar="DIALECT", help=", ".join(dialects.NAMES))
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    with TemporaryDirectory() as home:
        _set_up(Path(home))
        return _search(options.dialects or dialects.NAMES, options.seconds)


def _search(names: Sequence[str], seconds: int) -> int:
    end, tried = time.monotonic() + seconds, 0
    for what, text in _texts(names):
        if time.monotonic() > end:
            break
        tried += 1
        if found := too_costly(text):
            Path("costly.txt").write_text(text, errors="surrogatepass")
            print(f"FAILED: {what} (saved as costly.txt)", *found, sep="\n  ")
            return 1
    print(f"cost: {tried:,} texts of up to 1 MiB, nothing found")
    return 0


def _texts(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from ((what, make()) for what, make in hostile().items())
    chance = Random()
    short = [text for name in names for text in (*corpus(name), *samples(name).values()) if text]
    while True:
        yield "a repeated piece", grown(chance.choice(short), chance)


def _set_up(home: Path) -> None:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "console.settings", "CONSOLE_HOME": str(home)}
    keys.ensure(home)
    django.setup()
    logging.disable()


if __name__ == "__main__":
    sys.exit(main())
