"""Amounts as the vendors write them, in the units of a JobSpec.

GB, Gi, G and GiB all mean 1024 MiB here, as they do on the pages of all vendors we read.
"""

from __future__ import annotations

import math
import re
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


def read(text: str, quantity: Quantity, bare: str = "") -> Decimal | None:
    """The amount that `text` says, in the quantity's unit; None when it says none.

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


def whole(amount: Decimal) -> int:
    """`amount` in whole units, rounded up."""
    return math.ceil(amount)


def memory(mib: int) -> str:
    """MiB as Kubernetes, DLC and AIHC read them: `16Gi`, or `1536Mi` where no whole number of Gi says it."""
    return f"{mib // 1024}Gi" if mib % 1024 == 0 and mib else f"{mib}Mi"


def cores(milli: int) -> str:
    """Milli-CPU as a number of cores: `4`, `0.5`."""
    return decimal(Decimal(milli) / 1000)


def decimal(number: Decimal) -> str:
    """A decimal number without an exponent and without zeros at its end."""
    return f"{number.normalize():f}"


def _memory_factor(unit: str) -> Decimal | None:
    match = _MEMORY_UNIT.fullmatch(unit)
    return _MEBIBYTES[(match["power"] or "b").lower()] if match else None
