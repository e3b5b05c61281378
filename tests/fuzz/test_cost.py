"""What may be done with a text of up to 1 MiB takes little time and memory, whatever the text.

`make fuzz` tries many more texts and acts, without the margin for a busy machine.
"""

import pytest

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from tests.fuzz.cost import cost, too_costly
from tests.fuzz.hostile import hostile, shared_variable

MARGIN = 5


@pytest.mark.parametrize(
    ("what", "conversion"),
    [
        ("parameter in commands", "openpai-v1"),
        ("aliases of kubeflow", "sbatch"),
        ("misspelt long keys v2", "dlc"),
        ("roles that share variables", "openpai-v2"),
        ("deep flow yaml", "kubeflow"),
        ("site unknown", "aihc"),
        ("jupyter", "dlc"),
    ],
)
def test_hostile_text_is_checked_fixed_and_converted_cheaply(what: str, conversion: str) -> None:
    text = hostile()[what]()
    names = ("check", "fix", "sweep", "difference", "site.yaml", f"convert to {conversion}")
    assert too_costly(text, margin=MARGIN, only=names) == []


@pytest.mark.parametrize(
    "what", ["dotenv", "dotenv blanks", "dotenv comments", "dotenv names", "dotenv quotes", "params"]
)
def test_hostile_variable_list_is_accepted_or_refused_cheaply(what: str) -> None:
    text = hostile()[what]()
    assert too_costly(text, margin=MARGIN, only=("environment", "short environment")) == []


def test_conversion_exceeding_the_length_limit_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        dialects.convert(Document(shared_variable()), "openpai-v2")
    assert [each.code for each in caught.value.problems] == ["expands_too_far"]


def test_cost_counts_cpu_time_and_peak_memory() -> None:
    cpu_s, memory = cost(lambda: (bytearray(200 * 2**20), sum(range(5_000_000))))
    assert cpu_s > 0.01
    assert memory > 150 * 2**20
