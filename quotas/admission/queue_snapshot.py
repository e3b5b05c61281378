"""The last result of admission on a cluster, stored so that every page shows the same.

Written under the cluster's lock by each pass that changed anything; read by whoever shows a queue.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from quotas.admission import Decision, Outcome, Why
from quotas.admission.values import Params
from quotas.amounts import Amounts
from quotas.models import QueueSnapshot


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a holder waits; `position` counts from 1 among those in line, None for who stands apart.

    For who waits for a limit the line is that of its own quota.
    """

    holder: str
    quota_id: int
    gpus: int
    why: Why
    params: Params
    position: int | None


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A waiting holder, and its position in the cluster's queue and in its quota's; None outside of them."""

    holder: str
    quota_id: int
    on_cluster: int | None
    in_quota: int | None


@dataclass(frozen=True, slots=True)
class Queue:
    """A cluster's queue in its order, and what nobody holds or waits for, by node."""

    verdicts: Mapping[str, Verdict]
    room: Sequence[tuple[str, Amounts]]

    def ahead_of(self, holder: str) -> list[Verdict]:
        """Return the holders that wait for capacity ahead of `holder`, the next one first."""
        mine = self.verdicts.get(holder)
        if mine is None or mine.position is None:
            return []
        before = list(self.verdicts.values())[: list(self.verdicts).index(holder)]
        if mine.why in OF_A_QUOTA:
            return [each for each in before if each.quota_id == mine.quota_id and each.position is not None]
        return [each for each in before if each.why in IN_THE_WAY]

    def holders_of_capacity(self, holder: str = "") -> list[str]:
        """Return whoever keeps room of its limits, those before `holder` where that is in the queue."""
        holders = list(self.verdicts)
        first = holders[: holders.index(holder)] if holder in self.verdicts else holders
        return [each for each in first if self.verdicts[each].why in IN_THE_WAY | OF_A_QUOTA]


APART = frozenset(
    {
        Why.HELD,
        Why.OTHERS,
        Why.NOT_YET,
        Why.MAINTENANCE,
        Why.EXCEEDS_QUOTA,
        Why.EXCEEDS_CLUSTER,
        Why.NO_SUCH_GPU,
        Why.NO_SUCH_NODE,
    }
)
"""Who can't start whatever others do has no place in line."""

IN_THE_WAY = frozenset({Why.CAPACITY, Why.TURN, Why.COMING, Why.IDLE})

OF_A_QUOTA = frozenset({Why.QUOTA, Why.QUOTA_TURN, Why.PERSON, Why.HOURS})
"""Who waits for a limit stands in the line of its own quota."""
EMPTY = Queue({}, ())

Row = tuple[str, int, int, str, Params]


def record(cluster_id: int, outcome: Outcome, before: Queue) -> tuple[dict[str, Verdict], bool]:
    """Store the result of a pass.

    Answers the verdicts that differ from `before` in more than their numbers, and whether anything differs.
    """
    rows: list[Row] = [_row(each) for each in outcome.decisions if each.why is not None]
    now = _verdicts(rows)
    room = [[name, amounts.to_json()] for name, amounts in outcome.room]
    moved = list(now.values()) != list(before.verdicts.values()) or outcome.room != tuple(before.room)
    if moved:
        QueueSnapshot.objects.update_or_create(cluster_id=cluster_id, defaults={"queue": rows, "room": room})
    changed = {
        holder: verdict
        for holder, verdict in now.items()
        if (earlier := before.verdicts.get(holder)) is None or stored_part(earlier) != stored_part(verdict)
    }
    return changed, moved


def _row(decision: Decision) -> Row:
    assert decision.why is not None
    return (decision.holder, decision.quota_id, decision.gpus, decision.why.value, decision.params)


VOLATILE = frozenset({"free", "used", "ahead", "ahead_gpus", "fits_now", "gpus_now", "position", "pending"})


def stored_part(verdict: Verdict) -> tuple[Why, Params]:
    """Return the part of a verdict that is stored with the job; figures of the moment are left out."""
    return verdict.why, {key: value for key, value in verdict.params.items() if key not in VOLATILE}


def queue_of(cluster_id: int) -> Queue:
    """The queue as the last pass left it; empty when there was none."""
    return queues_of([cluster_id]).get(cluster_id, EMPTY)


def queues_of(cluster_ids: Collection[int]) -> dict[int, Queue]:
    """The queues of several clusters; one query."""
    rows = QueueSnapshot.objects.filter(cluster__in=cluster_ids).values_list("cluster_id", "queue", "room")
    return {
        cluster_id: Queue(
            _verdicts(queue), tuple((name, Amounts.from_json(amounts)) for name, amounts in room)
        )
        for cluster_id, queue, room in rows
    }


def _verdicts(rows: Sequence[Row]) -> dict[str, Verdict]:
    found = {}
    line = Positions()
    for holder, quota_id, gpus, word, params in rows:
        why = Why(word)
        found[holder] = Verdict(holder, quota_id, gpus, why, params, line.next(why, quota_id))
    return found


def places_in(queue: Queue) -> list[QueuePlace]:
    """Return who waits: those in line first, in the order of admission."""
    line: list[QueuePlace] = []
    apart: list[QueuePlace] = []
    in_quota: dict[int, int] = {}
    for each in queue.verdicts.values():
        if each.position is None:
            apart.append(QueuePlace(each.holder, each.quota_id, None, None))
            continue
        number = in_quota[each.quota_id] = in_quota.get(each.quota_id, 0) + 1
        line.append(QueuePlace(each.holder, each.quota_id, len(line) + 1, number))
    return [*line, *apart]


class Positions:
    """Counts the places in the queue, and in the line of each quota."""

    def __init__(self) -> None:
        self._all = 0
        self._in_quota: dict[int, int] = {}

    def next(self, why: Why | None, quota_id: int) -> int | None:
        """Return the place of the next one that waits; None for who stands apart, or does not wait."""
        if why is None or why in APART:
            return None
        self._all += 1
        here = self._in_quota[quota_id] = self._in_quota.get(quota_id, 0) + 1
        return here if why in OF_A_QUOTA else self._all
