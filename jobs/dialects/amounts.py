"""Amounts as the vendors write them, in the units of a JobSpec.

GB, Gi, G and GiB all mean 1024 MiB here, as they do on the pages of all vendors we read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from jobs.dialects.fields import Quantity

_AMOUNT: Final = re.compile(
    r"\s*(?P<number>\d{1,20}(?:\.\d{1,20})?|\.\d{1,20})\s*(?P<unit>[A-Za-z]*)\s*", re.ASCII
)
_MEBIBYTES: Final = {
    "b": Decimal(1) / 2**20,
    "k": Decimal(1) / 1024,
    "m": Decimal(1),
    "g": Decimal(1024),
    "t": Decimal(2**20),
}
_MILLICORES: Final = {"": Decimal(1000), "m": Decimal(1), "c": Decimal(1000), "core": Decimal(1000)}
_MEMORY_UNIT: Final = re.compile(r"(?P<power>[kmgt])(?:i?b?)|b", re.IGNORECASE)

_PROSE: Final = re.compile(
    r"\s*(?P<number>\d{1,20}(?:\.\d{1,20})?|\.\d{1,20}|[A-Za-z]+)\s*(?P<unit>[A-Za-z]*)\s*", re.ASCII
)
_LONGEST_PROSE: Final = 60
_NUMBER_WORDS: Final = {
    word: Decimal(number)
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
}
_MEMORY_WORDS: Final = {
    f"{prefix}{ending}": letter
    for letter, prefixes in (
        ("k", ("kilo", "kibi")),
        ("m", ("mega", "mebi")),
        ("g", ("giga", "gibi")),
        ("t", ("tera", "tebi")),
    )
    for prefix in prefixes
    for ending in ("byte", "bytes")
}
_CORE_WORDS: Final = {"cpu": "core", "vcpu": "core", "vcore": "core", "millicore": "m", "millicpu": "m"}
_COUNT_WORDS: Final = frozenset(
    [
        "gpu",
        "card",
        "task",
        "node",
        "replica",
        "instance",
        "pod",
        "worker",
        "machine",
        "port",
        "time",
        "retry",
        "retrie",
    ]
)
_SECONDS: Final = {
    **dict.fromkeys(("s", "sec", "second"), Decimal(1)),
    **dict.fromkeys(("m", "min", "minute"), Decimal(60)),
    **dict.fromkeys(("h", "hr", "hour"), Decimal(3600)),
    **dict.fromkeys(("d", "day"), Decimal(86_400)),
}
_UNITS: Final[Mapping[str, tuple[Quantity, str, int]]] = {
    "MiB": (Quantity.MEMORY, "m", 1),
    "GiB": (Quantity.MEMORY, "g", 1024),
    "cores": (Quantity.CPU, "core", 1000),
    "milli-CPU": (Quantity.CPU, "m", 1),
}
"""Unit of a whole number → its quantity, the unit of a text without one, and how many make one."""

_TIMES: Final = {"minutes": "m", "seconds": "s", "s": "s"}


def parse(text: str, quantity: Quantity, bare: str = "") -> Decimal | None:
    """Return the amount that `text` says, in the quantity's unit; None when it says none.

    `bare` is the unit of a number without one.
    """
    match = _AMOUNT.fullmatch(text)
    if not match:
        return None
    number, unit = Decimal(match["number"]), match["unit"] or bare
    if quantity is Quantity.MEMORY:
        factor = _memory_factor(unit)
    elif quantity is Quantity.CPU:
        factor = _MILLICORES.get(unit.lower().rstrip("s") if unit != "m" else unit)
    else:
        factor = None if unit else Decimal(1)
    return None if factor is None else number * factor


def parse_prose(text: str, quantity: Quantity, bare: str = "") -> Decimal | None:
    """Return the amount that `text` means though no format writes it so, in the quantity's unit.

    `2 vCPUs`, `eight GB` and `two` mean one thing each.  None where the meaning is not known.
    """
    found = _number_and_unit(text)
    if found is None:
        return None
    number, unit = found
    word = unit.lower().removesuffix("s")
    if quantity is Quantity.MEMORY:
        factor = _memory_factor(_MEMORY_WORDS.get(unit.lower(), unit) or bare)
    elif quantity is Quantity.CPU:
        factor = _MILLICORES.get(_CORE_WORDS.get(word, word if unit != "m" else unit) or bare)
    else:
        factor = Decimal(1) if not unit or word in _COUNT_WORDS else None
    return None if factor is None else number * factor


def whole_in_unit(text: str, unit: str) -> int | None:
    """Return the whole number of `unit` (that of a key) that `text` means, rounded up; None when unknown."""
    if unit in _TIMES:
        found = _number_and_unit(text)
        seconds = _SECONDS.get(found[1].lower().removesuffix("s") or _TIMES[unit]) if found else None
        if found and found[1].lower() == "s":
            seconds = Decimal(1)
        return None if not found or seconds is None else whole(found[0] * seconds / _SECONDS[_TIMES[unit]])
    quantity, bare, of = _UNITS.get(unit, (Quantity.COUNT, "", 1))
    amount = parse_prose(text, quantity, bare)
    return None if amount is None else whole(amount / of)


def to_text(amount: Decimal, quantity: Quantity) -> str:
    """Return an amount in the quantity's unit as the vendors read it."""
    if quantity is Quantity.MEMORY:
        return memory(whole(amount))
    return cores(whole(amount)) if quantity is Quantity.CPU else str(whole(amount))


def whole(amount: Decimal) -> int:
    """Return `amount` in whole units, rounded up."""
    return math.ceil(amount)


def memory(mib: int) -> str:
    """MiB as Kubernetes, DLC and AIHC read them: `16Gi`, or `1536Mi` where no whole number of Gi says it."""
    return f"{mib // 1024}Gi" if mib % 1024 == 0 and mib else f"{mib}Mi"


def cores(milli: int) -> str:
    """Return milli-CPU as a number of cores: `4`, `0.5`."""
    return decimal(Decimal(milli) / 1000)


def decimal(number: Decimal) -> str:
    """Return a decimal number without an exponent and without zeros at its end."""
    return f"{number.normalize():f}"


def _number_and_unit(text: str) -> tuple[Decimal, str] | None:
    match = _PROSE.fullmatch(text) if len(text) <= _LONGEST_PROSE else None
    if match is None:
        return None
    said = match["number"]
    number = _NUMBER_WORDS.get(said.lower()) if said[0].isalpha() else Decimal(said)
    return None if number is None else (number, match["unit"])


def _memory_factor(unit: str) -> Decimal | None:
    match = _MEMORY_UNIT.fullmatch(unit)
    return _MEBIBYTES[(match["power"] or "b").lower()] if match else None
