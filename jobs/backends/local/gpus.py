"""GPUs as NVML tells them, and what a person may call them."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Gpu

_BRACKETS: Final = re.compile(r"\(.*?\)")
_MAKER: Final = re.compile(r"\b(NVIDIA|GEFORCE|TESLA|QUADRO|GRAPHICS DEVICE)\b", re.IGNORECASE)
_MIB: Final = 1024 * 1024


_RECENT_US: Final = 60_000_000
"""How far back a GPU's own record of who used it is looked at."""


class GpuReader:
    """Reads how busy GPUs are, while NVML is open; without a driver it knows nothing."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml

    def devices(self) -> tuple[Gpu, ...]:
        """Return every GPU of this machine."""
        nvml = self._nvml
        if nvml is None:
            return ()
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return tuple(
            Gpu(
                index,
                short(nvml.nvmlDeviceGetName(handle)),
                nvml.nvmlDeviceGetMemoryInfo(handle).total // _MIB,
            )
            for index, handle in enumerate(handles)
        )

    def buses(self) -> dict[int, str]:
        """Return the bus address of each GPU by its index."""
        nvml = self._nvml
        if nvml is None:
            return {}
        try:
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
            return {index: str(nvml.nvmlDeviceGetPciInfo(each).busId) for index, each in enumerate(handles)}
        except nvml.NVMLError:
            return {}

    def busy(self, index: int, pids: Collection[int]) -> int | None:
        """Percent of the GPU's time that the processes `pids` took of late; None when that can't be told.

        Where the driver does not tell whose use it was, or names a process that can't be seen from here,
        all of it counts as theirs: what is not known is never idle.
        """
        if self._nvml is None:
            return None
        try:
            device = self._nvml.nvmlDeviceGetHandleByIndex(index)
            whole = int(self._nvml.nvmlDeviceGetUtilizationRates(device).gpu)
        except self._nvml.NVMLError:
            return None
        samples = self._samples(device)
        if any(pid not in pids and not Path(f"/proc/{pid}").exists() for pid, _percent in samples):
            return max([whole, *(percent for _pid, percent in samples)])
        mine = [percent for pid, percent in samples if pid in pids]
        return max(mine, default=0) if samples else whole

    def _samples(self, device: Any) -> list[tuple[int, int]]:
        """(process, percent) as the driver has recorded it; nothing where it records nothing."""
        since = time.time_ns() // 1000 - _RECENT_US
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(device, since)
        except self._nvml.NVMLError:
            return []
        return [(sample.pid, sample.smUtil) for sample in samples if sample.timeStamp >= since]


@contextmanager
def open_reader() -> Iterator[GpuReader]:
    """NVML, open; a reader that knows nothing where there is no driver."""
    import pynvml  # noqa: PLC0415 a large module that only a look at the hardware needs

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield GpuReader(None)
        return
    try:
        yield GpuReader(pynvml)
    finally:
        pynvml.nvmlShutdown()


def find_gpus() -> tuple[Gpu, ...]:
    """Return every GPU of this machine; none where there is no driver."""
    with open_reader() as reader:
        return reader.devices()


def from_counts(counts: Mapping[str, int]) -> tuple[Gpu, ...]:
    """The GPUs that settings say there are: `{"TITANX": 2}`."""
    types = [kind for kind, count in counts.items() for _ in range(count)]
    return tuple(Gpu(index, kind) for index, kind in enumerate(types))


def short(name: str) -> str:
    """The driver's name as people write it: "NVIDIA TITAN X (Pascal)" is a TITANX."""
    return "".join(_MAKER.sub("", _BRACKETS.sub("", name)).split())


def matches(kind: str, wanted: str) -> bool:
    """Tell whether a GPU of type `kind` will do: P100 is wanted, P100-PCIE-16GB will.  '' wants any."""
    return wanted.casefold() in kind.casefold()
