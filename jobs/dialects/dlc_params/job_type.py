"""The job type of a parameter file: it stands on the command line, so that the file only hints at it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from jobs.dialects.dlc.job_types import JOB_TYPES

NAMES: Final = {job_type.name.lower(): job_type.name for job_type in JOB_TYPES}
"""The name of a job type for `dlc submit` → its name in a request."""

COMMENT: Final = re.compile(r"\bdlc\s+submit\s+(?P<name>[A-Za-z]+)")

_BY_KEY: Final = (
    ("RayJob", ("heads",)),
    ("TFJob", ("ps", "chief", "evaluators", "graphlearns", "success_policy")),
    ("PyTorchJob", ("masters",)),
)
_BY_WORD: Final = (
    ("TFJob", re.compile(r"tensorflow|tfjob|(?<![a-z])tf(?![a-z])")),
    ("XGBoostJob", re.compile(r"xgboost")),
    ("OneFlowJob", re.compile(r"oneflow")),
    ("RayJob", re.compile(r"(?<![a-z])ray(?![a-z])")),
    ("MPIJob", re.compile(r"(?<![a-z])mpi")),
    ("PyTorchJob", re.compile(r"torch")),
)
_DEFAULT: Final = "PyTorchJob"
_NOT_THERE: Final = frozenset({"", "0", "false"})


def guess_job_type(values: Mapping[str, str], comments: Iterable[str]) -> tuple[str, str]:
    """Return the job type of a file with these keys and comments, and the code of why.

    The codes are `comment`, `keys`, `words` and `default`.
    """
    for comment in comments:
        match = COMMENT.search(comment)
        if match and match["name"].lower() in NAMES:
            return NAMES[match["name"].lower()], "comment"
    for name, keys in _BY_KEY:
        if any(values.get(key, "").lower() not in _NOT_THERE for key in keys):
            return name, "keys"
    hints = " ".join(
        value for key, value in values.items() if key == "name" or key.endswith("_image")
    ).lower()
    for name, word in _BY_WORD:
        if word.search(hints):
            return name, "words"
    return _DEFAULT, "default"
