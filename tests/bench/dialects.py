"""How fast job files are read, checked and written: CPU time, in this process, of one core."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Final

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.spec import JobSpec, Port, RoleSpec
from tests.bench.figures import Figure
from tests.jobs.dialects.hostile import ALIKE
from tests.jobs.dialects.sample_fields import samples

ROUNDS: Final = 15
ROUND_S: Final = 0.1
BESIDE: Final = "json.loads + pydantic"
ROLES: Final = 500
MANY: Final = {"openpai-v1": ("JSON", 100), "openpai-v2": ("YAML", 200)}
"""The dialects that have as many roles as one likes, and what is to be reached in milliseconds."""


def measure() -> list[Figure]:
    """Each dialect's samples; a file of 500 roles; the worst of all hostile texts."""
    every = [figure for name in dialects.NAMES for figure in _samples(name)]
    return [*every, *_many_roles(), *_hostile()]


def _samples(name: str) -> Iterator[Figure]:
    """All samples of a dialect, read, checked, and written anew."""
    texts = [*samples(name).values()]
    plain = [dialects.get(name).parse(Document(text)).spec.model_dump_json() for text in texts]

    def ours() -> None:
        for text in texts:
            _round_trip(name, text)

    def bare() -> None:
        for text in plain:
            json.dumps(json.loads(JobSpec.model_validate_json(text).model_dump_json()))

    yield Figure(
        f"{name}: read, checked and written",
        len(texts) / _seconds(ours),
        "files/s",
        len(texts) / _seconds(bare),
        BESIDE,
    )


def _many_roles() -> Iterator[Figure]:
    roles = tuple(
        RoleSpec(name=f"role_{n}", command="python train.py", image="image", ports=(Port(label="http"),))
        for n in range(ROLES)
    )
    spec = JobSpec(name="many", roles=roles)
    for name, (kind, most_ms) in MANY.items():
        if name not in dialects.NAMES:
            continue
        dialect = dialects.get(name)
        text = dialect.render(spec, {}).text
        assert len(dialect.parse(Document(text)).spec.roles) == ROLES
        taken = 1000 * _seconds(partial(_round_trip, name, text))
        what = f"{ROLES} roles in {kind}, read, checked and written"
        yield Figure(what, taken, "ms", target=f"≤ {most_ms} ms")


def _round_trip(name: str, text: str) -> None:
    dialect = dialects.get(name)
    parsed = dialect.parse(Document(text))
    dialect.render(parsed.spec, parsed.extras)


def _hostile() -> Iterator[Figure]:
    slowest, largest = 0.0, 0
    for name in dialects.NAMES:
        for text in ALIKE.values():
            slowest = max(slowest, min(_refusal(name, text) for _round in range(3)))
            tracemalloc.start()
            _refusal(name, text)
            largest = max(largest, tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    yield Figure("the slowest refusal of a hostile file", 1000 * slowest, "ms", target="≤ 200 ms")
    yield Figure("the largest memory of one", largest / 2**20, "MiB", target="≤ 50 MiB")


def _refusal(name: str, text: str) -> float:
    begun = time.process_time()
    try:
        dialects.get(name).parse(Document(text))
    except Refused:
        return time.process_time() - begun
    raise AssertionError("a hostile file was accepted")


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one turn: the median of several rounds."""
    work()
    begun = time.process_time()
    work()
    turns = max(1, int(ROUND_S / max(time.process_time() - begun, 1e-6)))
    rounds = []
    for _round in range(ROUNDS):
        begun = time.process_time()
        for _turn in range(turns):
            work()
        rounds.append((time.process_time() - begun) / turns)
    return median(rounds)
