"""What of a JobSpec survives a dialect, and what survives two of them, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import permutations
from typing import Final

from jobs import dialects
from jobs.dialects.base import Refused, Rendered
from jobs.spec import JobSpec
from tests.reference_pages.paths import holds, values_at
from tests.reference_pages.probes import Probe, probes, spec

TOGETHER: Final = frozenset({"retry"})
"""Parts of which a dialect may be able to say the whole, and not each half."""


class Fate(StrEnum):
    """What became of what a probe says."""

    KEPT = "kept"
    OURS = "kept for Job Console"
    APPROXIMATED = "approximated"
    LOST = "lost"


WHOLE: Final = frozenset({Fate.KEPT, Fate.OURS})
"""Fates of what is read again as it was."""


@dataclass(frozen=True, slots=True)
class Between:
    """A path that two dialects can each say, and that does not get from one to the other."""

    path: str
    source: str
    target: str


_written: Final[dict[tuple[str, str], Rendered]] = {}
"""By dialect and JobSpec: most probes say the same after one conversion, and go through all the others."""


def written(name: str, wanted: JobSpec) -> Rendered:
    """Return `wanted` written in a dialect; nothing of it may be changed."""
    key = name, wanted.model_dump_json()
    if key not in _written:
        _written[key] = dialects.get(name).render(wanted, {})
    return _written[key]


def through(name: str, wanted: JobSpec) -> JobSpec:
    """`wanted` written in a dialect and read again; raises Refused where the text lacks what it needs."""
    return written(name, wanted).document.parsed.spec


def _natively(name: str, wanted: JobSpec) -> JobSpec | None:
    """The same, as the dialect's own system reads it; None where that can't read it."""
    try:
        return dialects.remove_ours(written(name, wanted).document).parsed.spec
    except Refused:
        return None


def fate(probe: Probe, name: str) -> Fate:
    """What becomes of the probe in one dialect."""
    return _fate(probe.path, probe.spec.model_dump_json(), name)


@cache
def _fate(path: str, text: str, name: str) -> Fate:
    """What becomes of the probe at `path` whose JobSpec is `text`."""
    probe = Probe(path, JobSpec.model_validate_json(text))
    wanted = values_at(probe.spec, probe.path)
    try:
        read = through(name, probe.spec)
        said = values_at(read, probe.path)
        bare = values_at(through(name, spec({})), probe.path)
    except Refused:
        return Fate.LOST
    if holds(said, wanted):
        native = _natively(name, probe.spec)
        alone = native is not None and holds(values_at(native, probe.path), wanted)
        return Fate.KEPT if alone else Fate.OURS
    arrived = [value for value in said if value and value not in bare]
    return Fate.APPROXIMATED if arrived or _elsewhere(probe, read) else Fate.LOST


def _elsewhere(probe: Probe, read: JobSpec) -> bool:
    """Whether a role's variable became the job's."""
    own = values_at(probe.spec, probe.path)
    return probe.path == "roles[].env" and all(holds(values_at(read, "env"), [each]) for each in own)


@cache
def fates() -> Mapping[str, Mapping[str, Fate]]:
    """Path → dialect → what becomes of it: kept when every probe is, lost when every probe is."""
    found: dict[str, dict[str, set[Fate]]] = {}
    for probe in probes():
        for name in dialects.NAMES:
            found.setdefault(probe.path, {}).setdefault(name, set()).add(fate(probe, name))
    return {path: {name: _all(each) for name, each in row.items()} for path, row in found.items()}


def _all(several: set[Fate]) -> Fate:
    if several == WHOLE:
        return Fate.OURS
    return several.pop() if len(several) == 1 else Fate.APPROXIMATED


@cache
def lost_between() -> tuple[Between, ...]:
    """What gets lost although both dialects can say it: nothing, or there is a bug."""
    found = []
    for probe in probes():
        wanted = values_at(probe.spec, probe.path)
        able = [name for name in dialects.NAMES if fate(probe, name) in WHOLE]
        for source, target in permutations(able, 2):
            halfway = through(source, probe.spec)
            said = values_at(through(target, halfway), probe.path)
            if not holds(said, wanted) and _is_whole(probe, halfway):
                found.append(Between(probe.path, source, target))
    return tuple(dict.fromkeys(found))


def _is_whole(probe: Probe, halfway: JobSpec) -> bool:
    """Whether what gives the path its meaning got there too: `retry.fancy` depends on the rest of `retry`."""
    around = probe.path.partition(".")[0]
    return around not in TOGETHER or holds(values_at(halfway, around), values_at(probe.spec, around))


def both_keep(source: str, target: str) -> tuple[str, ...]:
    """The paths that get from one dialect to the other in full."""
    lost = {each.path for each in lost_between() if (each.source, each.target) == (source, target)}
    return tuple(
        path
        for path, row in fates().items()
        if row[source] in WHOLE and row[target] in WHOLE and path not in lost
    )


@cache
def added() -> Mapping[str, tuple[str, ...]]:
    """Dialect → the paths at which it says something although a plain job does not."""
    plain = spec({})
    return {
        name: tuple(
            note.pointer for note in dialects.get(name).render(plain, {}).notes if note.code == "added"
        )
        for name in dialects.NAMES
    }
