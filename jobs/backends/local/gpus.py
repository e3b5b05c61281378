"""GPUs as NVML tells them, and what a person may call them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from jobs.backends.base import Gpu

_BRACKETS: Final = re.compile(r"\(.*?\)")
_MAKER: Final = re.compile(r"\b(NVIDIA|GEFORCE|TESLA|QUADRO|GRAPHICS DEVICE)\b", re.IGNORECASE)
_MIB: Final = 1024 * 1024


def found() -> tuple[Gpu, ...]:
    """Every GPU of this machine; none where there is no driver."""
    import pynvml  # noqa: PLC0415 a large module that only a look at the hardware needs

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return tuple(
            Gpu(
                index,
                short(pynvml.nvmlDeviceGetName(handle)),
                pynvml.nvmlDeviceGetMemoryInfo(handle).total // _MIB,
            )
            for index, handle in enumerate(handles)
        )
    finally:
        pynvml.nvmlShutdown()


def imagined(counts: Mapping[str, int]) -> tuple[Gpu, ...]:
    """The GPUs that settings say there are: `{"TITANX": 2}`."""
    types = [kind for kind, count in counts.items() for _ in range(count)]
    return tuple(Gpu(index, kind) for index, kind in enumerate(types))


def short(name: str) -> str:
    """The driver's name as people write it: "NVIDIA TITAN X (Pascal)" is a TITANX."""
    return "".join(_MAKER.sub("", _BRACKETS.sub("", name)).split())


def matches(kind: str, wanted: str) -> bool:
    """Whether a GPU of type `kind` will do: P100 is wanted, P100-PCIE-16GB will.  '' wants any."""
    return wanted.casefold() in kind.casefold()
