"""The order of admission: ranks that admins set, weights of quotas, and limits of single people."""

from __future__ import annotations

from typing import Any

from quotas.admission import Account, HeldResources, Limits, Machine, Snapshot, Waiting, Why, decide, shape_of
from quotas.amounts import Amounts, Part

NOW = 1_000_000.0
CORE = shape_of(Part(1, Amounts(1000, 1024)))


def _ask(holder: str, quota: int = 1, **columns: Any) -> Waiting:
    return Waiting(holder, quota, CORE, since=NOW - 10, **columns)


def _order(*requests: Waiting, held: tuple[HeldResources, ...] = (), weight: int = 1) -> list[str]:
    accounts = {1: Account(1, "A", 1), 2: Account(2, "B", 2), 3: Account(3, "C", 1, weight=weight)}
    machines = [Machine("n1", Amounts(8000, 64 * 1024)), Machine("off", Amounts(8000, 0), usable=False)]
    found = decide(Snapshot(NOW, accounts, machines, held, requests))
    return [each.holder for each in found.decisions]


def test_cluster_rank_goes_before_priority() -> None:
    asked = (_ask("high", priority=9), _ask("first", cluster_rank=2), _ask("second", cluster_rank=1))
    assert _order(*asked) == ["first", "second", "high"]


def test_workspace_rank_takes_only_its_own_workspaces_turns() -> None:
    asked = (
        _ask("own-high", priority=5),
        _ask("own-ranked", priority=1, workspace_rank=1),
        _ask("other", quota=2, priority=3),
    )
    assert _order(*asked) == ["own-ranked", "other", "own-high"]


def test_weight_divides_the_share_of_the_workspace() -> None:
    # Workspace 1 holds half of the cluster, which counts as one priority level against it.
    held = (HeldResources("h", 1, Amounts(8000, 0), (("off", Amounts(8000, 0)),)),)
    asked = (_ask("own", quota=3, priority=3), _ask("other", quota=2, priority=2))
    assert _order(*asked, _ask("low"), held=held, weight=1)[0] != "low"
    asked = (_ask("weighted", quota=3, priority=1), _ask("plain", quota=1, priority=1))
    assert _order(*asked, held=held, weight=1)[0] == "plain"  # the same level: by name
    assert _order(*asked, held=held, weight=4)[0] == "weighted"


def test_running_limit_of_one_person_replaces_that_of_everybody() -> None:
    account = Account(1, "A", 1, person=Limits(jobs=1), people={7: Limits(jobs=2)})
    requests = [Waiting(f"{owner}-{n}", 1, CORE, owner_id=owner) for owner in (6, 7) for n in range(3)]
    machines = [Machine("n1", Amounts(64_000, 64 * 1024))]
    found = decide(Snapshot(NOW, {1: account}, machines, (), requests))
    started = [each.holder for each in found.decisions if each.admitted]
    assert started == ["6-0", "7-0", "7-1"]
    assert {each.why for each in found.decisions if not each.admitted} == {Why.PERSON}
