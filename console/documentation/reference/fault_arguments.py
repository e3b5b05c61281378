"""The page of fault tolerance's arguments: each one's type, unit, default and source."""

from __future__ import annotations

from typing import Final

from console.documentation.reference.table import cell, code, table
from jobs.dialects.aihc import keys as aihc
from jobs.dialects.fault_arguments import ARGUMENTS, ArgumentKind, FaultArgument, Vendor
from jobs.dialects.kubeflow import keys as kubeflow
from jobs.dialects.openpai_v1 import keys as openpai_v1
from jobs.dialects.openpai_v2 import keys as openpai_v2
from jobs.dialects.sbatch.options import RULES

KEYS_HEAD: Final = ("key", "format", "field of the job", "meaning")
KEYS_TITLE: Final = """
# Keys of other formats

Restarts that a format says by keys of its own fill the same policy. A conversion names what the other format
can't say. `--max-restarts` in a command is torchrun's own, and acts as written; where `roles[].restart.limit`
differs, the check of the job says so. The job protocols of OpenPAI have no `retryPolicy`, which it makes
of `retryCount` for its launcher (`maxRetryCount`; `fancyRetryPolicy` is off with -2 alone).

"""
_KEYS: Final = {
    "Kubeflow": (kubeflow.RESTART_POLICY, kubeflow.BACKOFF, kubeflow.MAX_RESTARTS),
    "OpenPAI v1": (openpai_v1.RETRY_COUNT,),
    "OpenPAI v2": (openpai_v2.RETRY_COUNT, openpai_v2.TASK_RETRY_COUNT),
    "sbatch": tuple(rule for rule in RULES if rule.path == "retry.fancy"),
    "AIHC v1": aihc.FAULT_CONFIG.keys,
}
HEAD: Final = ("argument", "of", "type", "unit", "default", "source", "effect here")
TITLE: Final = """# Arguments of fault tolerance

Every argument that a vendor documents or uses, as it is read here (`jobs/dialects/fault_arguments.py`). Where
the vendor publishes no default, the page "Automatic fault tolerance" says what counts here.

"""
_VENDORS: Final = {Vendor.DLC: "PAI-DLC", Vendor.AIHC: "AIHC"}
_TYPES: Final = {
    ArgumentKind.FLAG: "`true` or `false`",
    ArgumentKind.COUNT: "whole number",
    ArgumentKind.SECONDS: "whole number",
    ArgumentKind.MINUTES: "whole number",
    ArgumentKind.TEXT: "text",
}
_UNITS: Final = {ArgumentKind.SECONDS: "seconds", ArgumentKind.MINUTES: "minutes"}


def page() -> str:
    """Return the whole page."""
    keys = (
        (code(rule.key), name, code(rule.path), cell(rule.help))
        for name, rules in _KEYS.items()
        for rule in rules
    )
    return TITLE + table(HEAD, map(_row, ARGUMENTS)) + KEYS_TITLE + table(KEYS_HEAD, keys)


def _row(each: FaultArgument) -> tuple[str, ...]:
    return (
        code(f"--{each.name}"),
        _VENDORS[each.vendor],
        " or ".join(map(code, each.words)) or _TYPES[each.kind],
        _UNITS.get(each.kind, "–"),
        code(each.default) or "not published",
        cell(each.source),
        "acts" if each.acts else "none; kept for export",
    )
