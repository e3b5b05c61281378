"""Numbers, memory and generic resources in the spelling of Slurm's options."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_COUNT: Final = re.compile(r"(\d{1,15})([kKmM]?)", re.ASCII)
_MEMORY: Final = re.compile(r"(\d{1,15})(?:([kKmMgGtT])[bB]?)?", re.ASCII)
_DEVICES: Final = re.compile(
    r"(?:(?P<type>[A-Za-z_][\w.\-]*)(?::(?P<some>\d{1,9}))?|(?P<count>\d{1,9}))", re.ASCII
)
_SOCKETS: Final = re.compile(r"\((?:S:[^)]*|IDX:[^)]*)\)$")
_POWERS: Final = {"": 1, "k": 1024, "m": 1024**2}
_GPU: Final = "gpu"


@dataclass(frozen=True, slots=True)
class Devices:
    """A number of GPUs of one type ("" for any)."""

    count: int = 0
    type: str = ""

    @property
    def written(self) -> str:
        """`4`, or `a100:4`."""
        return f"{self.type}:{self.count}" if self.type else str(self.count)


def count(text: str) -> int | None:
    """Return a count; `2k` is 2048, as in --nodes."""
    match = _COUNT.fullmatch(text)
    return int(match[1]) * _POWERS[match[2].lower()] if match else None


def nodes(text: str) -> tuple[int, int] | None:
    """Return the least and the most of `4`, `2-4`, or `1,2,4`, which is a choice of sizes."""
    if "," in text or ":" in text:
        parts = [count(part) for part in re.split(r"[,:\-]", text)]
        known = [part for part in parts if part is not None]
        return (min(known), max(known)) if len(known) == len(parts) else None
    first, dash, last = text.partition("-")
    least = count(first)
    most = count(last) if dash else least
    if least is None or most is None or most < least:
        return None
    return max(least, 1), most


def memory(text: str) -> int | None:
    """MiB; a number without a unit counts them, and kibibytes are rounded up."""
    match = _MEMORY.fullmatch(text)
    if not match:
        return None
    number, unit = int(match[1]), (match[2] or "m").lower()
    return {"k": -(-number // 1024), "m": number, "g": number * 1024, "t": number * 1024**2}[unit]


def memory_to_text(mib: int) -> str:
    """Return MiB as Slurm reads them: `16G`, or `1536M`."""
    return f"{mib // 1024}G" if mib and mib % 1024 == 0 else f"{mib}M"


def devices(text: str) -> Devices | None:
    """GPUs as in --gpus: `4`, `a100:4`, `a100`, and several types with commas between."""
    return _sum(text.split(","))


def is_type(text: str) -> bool:
    """Return whether a GPU's type can be written so that it is read again."""
    return not text or devices(f"{text}:1") == Devices(1, text)


def gres(text: str) -> tuple[Devices, tuple[str, ...]] | None:
    """Return the GPUs in a value of --gres, and its other parts as they are."""
    ours: list[str] = []
    others: list[str] = []
    for part in map(str.strip, re.split(r",(?![^(]*\))", text)):  # commas in brackets belong to a part
        name, _, rest = part.removeprefix("gres/").removeprefix("gres:").partition(":")
        if name == _GPU:
            ours.append(_SOCKETS.sub("", rest) or "1")
        elif part:
            others.append(part)
    found = _sum(ours) if ours else Devices()
    return (found, tuple(others)) if found else None


def gres_to_text(wanted: Devices, others: tuple[str, ...]) -> str:
    """Return a value of --gres."""
    ours = [f"{_GPU}:{wanted.written}"] if wanted.count else []
    return ",".join((*ours, *others))


def _sum(parts: list[str]) -> Devices | None:
    """Return the GPUs of all parts; of several types none is named."""
    found: list[Devices] = []
    for part in parts:
        match = _DEVICES.fullmatch(part)
        if not match:
            return None
        number = match["count"] or match["some"] or "1"
        found.append(Devices(int(number), match["type"] or ""))
    types = {each.type for each in found}
    return Devices(sum(each.count for each in found), types.pop() if len(types) == 1 else "")
