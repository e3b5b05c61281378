"""Every reason for which a backend refuses a job has a sentence."""

import re
from pathlib import Path

import pytest

from jobs import backends
from jobs.messages.refusals import _SENTENCES, refusal
from jobs.messages.sentences import needs

FOLDER = Path(backends.__file__).parent
WORD = re.compile(r'(?:refus(?:al|e)\(\s*|"why":\s*)"([a-z_]+)"')

LOCAL = [
    (
        {"why": "field", "field": "nodes"},
        (
            "Refused: this cluster does not support the job's setting “nodes”. Remove it, or use "
            "another cluster."
        ),
    ),
    (
        {"why": "only_slurm", "nodes": 2},
        (
            "Refused: Slurm runs this script only on the first of its 2 nodes and reaches the "
            "others with srun, which this cluster does not support. Use a Slurm cluster, or "
            "request one node (--nodes=1)."
        ),
    ),
    (
        {"why": "mount_not_allowed", "place": "/data", "workspace": "vision", "setting": "folders"},
        (
            "Refused: jobs of vision can't use /data on this machine. An admin can allow it in the "
            "cluster's settings (folders)."
        ),
    ),
    (
        {"why": "mount_no_folder", "place": "/data", "error": "Permission denied"},
        "Refused: the job's user can't use /data as a folder: Permission denied",
    ),
    (
        {"why": "auth_file", "place": "/auth", "error": None},
        "Refused: /auth must contain three values: image registry, user name and password.",
    ),
]


def test_refusal_reasons_in_code_all_have_a_sentence() -> None:
    used = {name for path in FOLDER.rglob("*.py") for name in WORD.findall(path.read_text())}
    assert {"mount_over", "code_ref", "no_secret"} <= used
    assert used <= _SENTENCES.keys()


def test_refusal_sentence_names_place_or_setting() -> None:
    """The job file's own words for a place or a name, or the setting that an admin has to change."""
    for why, templates in _SENTENCES.items():
        assert needs(templates[0]), why


@pytest.mark.parametrize(("params", "sentence"), LOCAL)
def test_refusal_sentence_names_cause_and_remedy(params: dict[str, object], sentence: str) -> None:
    assert refusal(params) == sentence
