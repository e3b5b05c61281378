"""Admission: who starts next, who gives back, and why the others wait.

Pure functions over a snapshot; `quotas.ledger` has the rows and the lock, `quotas.admission.snapshot` makes
the one of the other.  The rules are described in docs/quotas.md.
"""

from quotas.admission.decisions import decide
from quotas.admission.values import (
    Account,
    Bid,
    Decision,
    HeldResources,
    Limits,
    Machine,
    Outcome,
    Price,
    ResourceShape,
    Snapshot,
    TakeBack,
    Waiting,
    Why,
    Window,
    shape_of,
)

__all__ = [
    "Account",
    "Bid",
    "Decision",
    "HeldResources",
    "Limits",
    "Machine",
    "Outcome",
    "Price",
    "ResourceShape",
    "Snapshot",
    "TakeBack",
    "Waiting",
    "Why",
    "Window",
    "decide",
    "shape_of",
]
