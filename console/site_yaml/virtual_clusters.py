"""Virtual clusters of OpenPAI, as its REST API answers `GET /api/v2/virtual-clusters`, made accounts.

Each is an account at the top, with its resources as limits: those that are guaranteed, where the answer tells
them, or else its total.  Memory is in MiB there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from jobs.backends.accounts import Account, AccountLimits, AccountTree

RESOURCES: Final = ("resourcesGuaranteed", "resourcesTotal")
"""Members with a virtual cluster's resources; the first that is there counts."""

AMOUNTS: Final = {"cpus": ("vCores", "cpu"), "memory_mib": ("memory",), "gpus": ("GPUs", "gpu")}
"""Limits of an account, and what the answer calls them."""

RUNNING: Final = "RUNNING"


class WrongAnswer(ValueError):
    """The text is no list of virtual clusters; `problems` are sentences."""

    def __init__(self, *problems: str) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


def parse_virtual_clusters(answer: str) -> AccountTree:
    """Return the virtual clusters as accounts.  Raises WrongAnswer with all problems."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise WrongAnswer(_("This is not JSON: %(error)s.") % {"error": error}) from error
    if not isinstance(found, dict) or not found:
        expected = _(
            'Enter the answer of GET /api/v2/virtual-clusters: {"default": {"resourcesTotal": …}, …}.'
        )
        raise WrongAnswer(expected)
    problems: list[str] = []
    accounts = [_account(name, values, problems) for name, values in found.items()]
    if problems:
        raise WrongAnswer(*problems)
    return AccountTree(tuple(accounts))


def _account(name: str, values: Any, problems: list[str]) -> Account:
    resources = None
    if isinstance(values, dict):
        resources = next((values[key] for key in RESOURCES if key in values), None)
    if not isinstance(resources, dict):
        text = _("%(name)s: no resources. Expected resourcesTotal with vCores, memory and GPUs.")
        problems.append(text % {"name": name})
        return Account(name)
    limits: dict[str, int] = {}
    for limit, names in AMOUNTS.items():
        found = [resources[each] for each in names if resources.get(each) is not None]
        if not found:
            continue
        if not _is_amount(found[0]):
            text = _("%(name)s: %(what)s must be a number that is not negative.")
            problems.append(text % {"name": name, "what": names[0]})
        else:
            limits[limit] = int(found[0])
    return Account(name, all_of_it=_limits(limits), more=tuple(_notes(values)))


def _limits(found: Mapping[str, int]) -> AccountLimits:
    return AccountLimits(found.get("cpus"), found.get("memory_mib"), found.get("gpus"))


def _notes(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a quota does not express, in OpenPAI's words."""
    status = values.get("status", RUNNING)
    if status != RUNNING:
        yield f"status {status}"
    if values.get("dedicated"):
        nodes = values.get("nodeList") or ()
        yield f"dedicated {', '.join(map(str, nodes))}".strip()
    capacity, most = values.get("capacity"), values.get("maxCapacity")
    if most is not None and most != capacity:
        yield f"maxCapacity {most}"


def _is_amount(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value < 2**31
    )
