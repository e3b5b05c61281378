"""Words are those of `shlex.split`, in linear time."""

import json
import shlex
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects import shell_words
from jobs.dialects.document import Document
from tests.fuzz.target import MOST_CPU_S
from tests.jobs.dialects.test_expansion_limit import v2

LONG = 900_000


@given(st.text(st.sampled_from("ab \t\n'\"\\#;$")))
@example("'' a''b \"\\\"\\a\\\\\" \\ c")
def test_split_matches_shlex_words(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"quotation"):
            shell_words.split(text)
    else:
        assert shell_words.split(text) == expected


def test_split_of_long_word_stays_within_cpu_limit() -> None:
    begun = time.process_time()
    assert shell_words.split("x" * LONG + " '" + "y" * LONG + "'") == ["x" * LONG, "y" * LONG]
    assert time.process_time() - begun < MOST_CPU_S


def test_openpai_v2_reads_long_exported_value_within_cpu_limit() -> None:
    job = json.loads(v2(1, 1))
    job["taskRoles"]["main"]["commands"] = [f"export A={'x' * LONG}", "run"]
    begun = time.process_time()
    spec = dialects.get("openpai-v2").parse(Document(json.dumps(job))).spec
    assert time.process_time() - begun < 5 * MOST_CPU_S
    assert {**spec.env, **spec.roles[0].env} == {"A": "x" * LONG}
