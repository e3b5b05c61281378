"""Single options that say something neutral ↔ what they say; None where only Slurm knows what is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects.variables import is_usable
from jobs.spec import After, EndSignal, Mount, MountPurpose, When

_SIGNAL: Final = re.compile(
    r"(?P<to>[RB]{0,2}):?(?P<signal>[A-Za-z]+[12]?|\d{1,2})(?:@(?P<before>\d{1,5}))?", re.ASCII
)
_NUMBERS: Final = {"1": "HUP", "2": "INT", "10": "USR1", "12": "USR2", "15": "TERM"}
_SIGNALS: Final = frozenset(_NUMBERS.values())
_DEFAULT_BEFORE: Final = 60
_MOST_BEFORE: Final = 65_535
_DEPENDENCIES: Final = {"afterok": When.SUCCEEDED, "afterany": When.ENDED, "afternotok": When.FAILED}
_JOB: Final = re.compile(r"[^\s:,?+]{1,300}")
ANY_OF: Final = "?"
"""What separates jobs of which Slurm waits for one alone."""
_HAS: Final = "true"
_FEATURE: Final = re.compile(r"[^\s&|\[\]()*,:=]+")
_REGISTRY: Final = re.compile(r"(?P<host>[^/#@]+)/(?P<rest>.+)")
_SCHEME: Final = re.compile(r"[a-z]+://")


@dataclass(frozen=True, slots=True)
class Export:
    """A value of --export: ALL, NONE or NIL, names of the submitter's variables, variables with values."""

    names: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def written(self) -> str:
        """Return the option's value."""
        return ",".join((*self.names, *map(_pair, self.variables.items())))


def signal(text: str) -> EndSignal | None:
    """`[R|B:]signal[@seconds]`."""
    match = _SIGNAL.fullmatch(text)
    if not match:
        return None
    name = match["signal"].upper().removeprefix("SIG")
    name = _NUMBERS.get(name, name)
    before = int(match["before"] or _DEFAULT_BEFORE)
    return (
        EndSignal(signal=name, seconds_before=before) if name in _SIGNALS and before <= _MOST_BEFORE else None
    )


def is_signal(text: str) -> bool:
    """Return whether Slurm could read a signal there, be it one that a JobSpec has no word for."""
    match = _SIGNAL.fullmatch(text)
    return bool(match and int(match["before"] or 0) <= _MOST_BEFORE)


def signal_to_text(end: EndSignal, *, to_shell: bool) -> str:
    """Return the option's value; `to_shell` where the commands run in the batch shell itself."""
    return f"{'B:' if to_shell else ''}{end.signal}@{min(end.seconds_before, _MOST_BEFORE)}"


def dependency(text: str) -> tuple[After, ...] | None:
    """`afterok:id[:id…]` and its kin, all of them with commas between; None for what only Slurm knows."""
    found: list[After] = []
    for part in text.split(","):
        kind, *ids = part.split(":")
        when = _DEPENDENCIES.get(kind)
        if when is None or not ids or not all(map(_JOB.fullmatch, ids)):
            return None
        found += [After(job=job, when=when) for job in ids]
    return tuple(found)


def dependency_to_text(after: Sequence[After]) -> str:
    """Return the option's value, with those jobs that it can name."""
    kinds = {when: kind for kind, when in _DEPENDENCIES.items()}
    return ",".join(f"{kinds[each.when]}:{each.job}" for each in after if _JOB.fullmatch(each.job))


def features(text: str) -> dict[str, str] | None:
    """Features that all nodes must have, `a100&ib` or `a100,ib`; None for any choice among them.

    A feature is a label that is `true`.
    """
    found = re.split(r"[&,]", text)
    return dict.fromkeys(found, _HAS) if all(map(_FEATURE.fullmatch, found)) else None


def features_to_text(labels: Mapping[str, str]) -> str:
    """Write the labels that a feature can say."""
    return "&".join(name for name, value in labels.items() if value == _HAS and _FEATURE.fullmatch(name))


def export(text: str) -> Export | None:
    """Read a value of --export; None when it holds something else."""
    names: list[str] = []
    variables: dict[str, str] = {}
    for part in _parts(text):
        name, equals, value = part.partition("=")
        if equals and is_usable(name):
            variables[name] = value
        elif not equals:
            names.append(name)
        else:
            return None
    return Export(tuple(names), variables)


def _parts(text: str) -> Iterable[str]:
    """Yield the parts between commas outside of quotes, without the quotes."""
    part: list[str] = []
    quote = ""
    for mark in text:
        if mark in "'\"" and quote in ("", mark):
            quote = "" if quote else mark
        elif mark == "," and not quote:
            yield "".join(part)
            part = []
        else:
            part.append(mark)
    yield "".join(part)


def _pair(variable: tuple[str, str]) -> str:
    """One variable; its value in quotes where it holds what would end it."""
    name, value = variable
    if not set(value) & set(",'\""):
        return f"{name}={value}"
    quoted = value.replace("'", "'\"'\"'")
    return f"{name}='{quoted}'"


def image(text: str) -> str:
    """Return an image as everybody else writes it: Pyxis has `#` behind the registry."""
    return text.removeprefix("docker://").replace("#", "/", 1)


def image_to_text(name: str) -> str:
    """Return an image as Pyxis reads it: a file, or `registry#name`."""
    match = _REGISTRY.fullmatch(name)
    if not match or name.startswith(("/", "./")) or _SCHEME.match(name):
        return name
    host = match["host"]
    is_registry = "." in host or ":" in host or host == "localhost"
    return f"{host}#{match['rest']}" if is_registry else name


def mounts(text: str) -> tuple[Mount, ...] | None:
    """`/from:/to[:flags]` with commas between."""
    found = []
    for part in text.split(","):
        source, *rest = part.split(":")
        flags = rest[1].split("+") if len(rest) == 2 else []
        if not source.startswith("/") or len(rest) > 2 or not set(flags) <= {"ro", "rw"}:
            return None
        target = rest[0] if rest and rest[0] else source
        found.append(Mount(uri=source, path=target, read_only="ro" in flags))
    return tuple(found)


def mounts_to_text(places: Sequence[Mount]) -> str:
    """Write the mounts that are folders of the nodes; one without a path is mounted where it is."""
    return ",".join(
        f"{place.uri}:{place.path or place.uri}{':ro' if place.read_only else ''}"
        for place in places
        if place.purpose is MountPurpose.DATA
        and place.uri.startswith("/")
        and (place.path or place.uri).startswith("/")
        and not (place.id or place.options)
        and not set(",:") & set(place.uri + place.path)
    )
