"""Slurm's reasons as sentences."""

import pytest

from jobs.backends.slurm.texts import SENTENCES
from jobs.messages.reasons import reason_message


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"slurm": "Resources"}, "Waiting for free resources on the cluster."),
        (
            {"slurm": "Resources", "start": 1795321200},
            "Waiting for free resources on the cluster. Slurm's estimated start: ",
        ),
        (
            {"slurm": "ReqNodeNotAvail, UnavailableNodes:gpu1"},
            "Waiting: eligible nodes are down, drained",
        ),
        (
            {"slurm": "QOSMaxGRESPerUser"},
            "Waiting: Slurm limit QOSMaxGRESPerUser reached. Starts when running jobs",
        ),
        (
            {"slurm": "AssocMaxWallDurationPerJobLimit"},
            "Exceeds Slurm's per-job limit AssocMaxWallDuration",
        ),
        ({"slurm": "OfANewerSlurm"}, "Slurm's reason: OfANewerSlurm."),
    ],
    ids=str,
)
def test_slurm_reason_is_shown_as_sentence_with_advice(params: dict[str, object], sentence: str) -> None:
    assert reason_message("engine_queue", params).startswith(sentence)


def test_slurm_reason_sentences_have_no_placeholders() -> None:
    for word in SENTENCES:
        told = reason_message("engine_queue", {"slurm": word})
        assert told.endswith(".")
        assert "…" not in told
