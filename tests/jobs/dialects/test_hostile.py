"""Hostile texts get a clear refusal, soon and within little memory, from every dialect."""

import time
from collections.abc import Iterator

import pytest

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from tests.fuzz.cost import cost
from tests.jobs.dialects.hostile import ALIKE, spoilt
from tests.jobs.dialects.sample_fields import samples

MOST_CPU_S = 5.0
"""Five times what is asked for: a busy machine is no failure (`make bench` has the figure)."""
MOST_MEMORY = 50 * 2**20


def refusals(name: str, text: str) -> tuple[str, ...]:
    with pytest.raises(Refused) as caught:
        dialects.get(name).parse(Document(text))
    assert caught.value.problems
    for problem in caught.value.problems:
        assert problem.code == "more_problems" or (problem.line, problem.column) != (None, None)
    return tuple(problem.code for problem in caught.value.problems)


def every_spoilt() -> Iterator[tuple[str, str, str]]:
    for name in dialects.NAMES:
        for file_name, text in [*samples(name).items()][:1]:
            yield from ((name, f"{what} in {file_name}", made) for what, made in spoilt(text))


SPOILT = list(every_spoilt())
HARMLESS = {"sbatch": 1}
"""In a script the last of two equal options counts, as in Slurm."""


@pytest.mark.parametrize("what", ALIKE)
@pytest.mark.parametrize("name", dialects.NAMES)
def test_hostile_text_is_refused_within_time_and_memory_limits(name: str, what: str) -> None:
    refusals(name, "")  # what is imported and compiled at first use is no part of it
    cpu_s, memory = cost(lambda: refusals(name, ALIKE[what]))
    assert cpu_s < MOST_CPU_S
    assert memory < MOST_MEMORY


@pytest.mark.parametrize("what", ALIKE)
def test_dialect_detection_of_hostile_text_is_fast(what: str) -> None:
    begun = time.process_time()
    found = Document(ALIKE[what]).candidates
    assert time.process_time() - begun < MOST_CPU_S
    assert all(1 <= each.confidence <= 100 for each in found)


@pytest.mark.parametrize(
    ("name", "what", "text"), SPOILT, ids=[f"{name}: {what}" for name, what, _ in SPOILT]
)
def test_good_file_with_one_impossible_value_is_refused(name: str, what: str, text: str) -> None:
    assert refusals(name, text)


@pytest.mark.parametrize("name", dialects.NAMES)
def test_hostile_samples_cover_every_kind_of_impossible_value(name: str) -> None:
    assert len([each for each in SPOILT if each[0] == name]) == 4 - HARMLESS.get(name, 0)
