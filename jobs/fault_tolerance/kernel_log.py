"""GPU faults in a kernel's log: NVIDIA's Xid lines, of `/dev/kmsg`, `dmesg` or a journal.

The meaning of the numbers is that of NVIDIA's catalogue of Xid errors (docs.nvidia.com/deploy/xid-errors).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from jobs.fault_tolerance.error_catalogue import Origin

_XID: Final = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]{7,16})[^)]*\): (?P<number>\d{1,4})\b,? ?(?P<rest>.*)"
)
_BUS: Final = re.compile(r"NVRM: GPU (?:at )?(?P<pci>[0-9a-fA-F:.]{7,16})[^:]*has fallen off the bus")
_KMSG: Final = re.compile(r"\d+,\d+,(?P<us>\d+),[^;]*;")
_PID: Final = re.compile(r"\bpid='?(?P<pid>\d+)")

_MEMORY: Final = (48, 63, 64, 92, 94, 95, 140, 171, 172)
_DEVICE: Final = (62, 74, 79, 110, 119, 120, 136, 143, 149, 151, 154, 155, 156)
_PROGRAM: Final = (8, 13, 31, 32, 43, 45, 68, 69, 109)

KINDS: Final[Mapping[int, tuple[str, Origin]]] = MappingProxyType(
    {
        **dict.fromkeys(_MEMORY, ("gpu_ecc", Origin.PLATFORM)),
        **dict.fromkeys(_DEVICE, ("gpu_lost", Origin.PLATFORM)),
        **dict.fromkeys(_PROGRAM, ("gpu_kernel", Origin.UNKNOWN)),
    }
)
"""Code in the catalogue and origin, by number; others are a GPU program's errors of unknown origin."""


@dataclass(frozen=True, slots=True)
class GpuFault:
    """A fault of the GPU at `pci`, a bus number in lower case.

    `at_s` is the seconds since the machine started, None where the line does not tell; `pid` 0: not told.
    """

    pci: str
    number: int
    code: str
    origin: Origin
    line: str
    pid: int = 0
    at_s: float | None = None


def parse_line(line: str) -> GpuFault | None:
    """Return the GPU fault that a line of a kernel's log shows, None for any other line."""
    record = _KMSG.match(line)
    at_s = int(record["us"]) / 1e6 if record else None
    text = line[record.end() :] if record else line
    if (found := _XID.search(text)) is not None:
        number = int(found["number"])
        pid = _PID.search(found["rest"])
        code, origin = KINDS.get(number, ("gpu_kernel", Origin.UNKNOWN))
        return GpuFault(
            normalize_bus(found["pci"]),
            number,
            code,
            origin,
            text.strip(),
            int(pid["pid"]) if pid else 0,
            at_s,
        )
    if (found := _BUS.search(text)) is not None:
        return GpuFault(normalize_bus(found["pci"]), 79, *KINDS[79], text.strip(), at_s=at_s)
    return None


def normalize_bus(pci: str) -> str:
    """Return domain, bus and device of an address, as NVML and the kernel both tell them in the end."""
    domain, _, rest = pci.lower().partition(":")
    return f"{domain[-4:]:0>4}:{rest.partition('.')[0]}"
