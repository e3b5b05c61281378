"""Device nodes of a replica's own GPUs.

An index counts the GPUs in the order of their PCI addresses, as NVML does: NVIDIA's, then AMD's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_NVIDIA_COMMON: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
_AMD: Final = "0x1002"
_AMD_COMMON: Final = ("kfd",)


def nodes_of(gpus: Iterable[int], host: Path = Path("/")) -> tuple[str, ...]:
    """Return the device nodes that a replica with these GPUs needs; none for a GPU that is not found."""
    known = [*_nvidia(host), *_amd(host)]
    nodes = [node for index in sorted(gpus) if index < len(known) for node in known[index]]
    return tuple(node for node in dict.fromkeys(nodes) if (host / node.removeprefix("/")).exists())


def _nvidia(host: Path) -> Iterator[list[str]]:
    """Yield the nodes of each GPU of NVIDIA's driver: its minor number is not its index."""
    for folder in sorted(host.glob("proc/driver/nvidia/gpus/*")):
        said = _fields(folder / "information")
        minor = said.get("Device Minor", "")
        if said.get("GPU Excluded") == "Yes":
            continue
        own = [f"nvidia{minor}", *_mig_capabilities(host, minor)] if minor.isdigit() else []
        yield _below_dev(*own, *_render_nodes(host, folder.name), *(_NVIDIA_COMMON if own else ()))


def _mig_capabilities(host: Path, minor: str) -> Iterator[str]:
    """Yield the nodes through which the MIG instances of a GPU are reached."""
    for path in sorted(host.glob(f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi*/**/access")):
        number = _fields(path).get("DeviceFileMinor", "")
        if number.isdigit():
            yield f"nvidia-caps/nvidia-cap{number}"


def _amd(host: Path) -> Iterator[list[str]]:
    """Yield the nodes of each GPU of AMD's: all share one for computing, and have one each for memory."""
    devices = {path.resolve().name: path for path in host.glob("sys/class/drm/renderD*/device")}
    for address, device in sorted(devices.items()):
        if _text(device / "vendor").strip() == _AMD:
            yield _below_dev(*_AMD_COMMON, *_render_nodes(host, address))


def _render_nodes(host: Path, address: str) -> Iterator[str]:
    for path in sorted(host.glob("sys/class/drm/renderD*")):
        if (path / "device").resolve().name == address:
            yield f"dri/{path.name}"


def _below_dev(*names: str) -> list[str]:
    return [f"/dev/{name}" for name in names]


def _fields(path: Path) -> dict[str, str]:
    """Return the lines `name: value` of a file; none where it can't be read."""
    pairs = (line.partition(":") for line in _text(path).splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
