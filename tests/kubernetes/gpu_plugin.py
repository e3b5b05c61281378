"""A device plugin that gives a kubelet pretend GPUs: devices without files, told to pods by their variables.

`gpu_plugin.py COUNT`, run by a Python with grpcio.  It ends when the kubelet's socket is another one.  The
messages of the plugin's API (`k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1`) are few, and written by hand.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # Debian's

FOLDER = Path("/var/lib/kubelet/device-plugins")
RESOURCE = "nvidia.com/gpu"
VARIABLES = ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
"""The first is what NVIDIA's own plugin sets; without its runtime nothing makes the second of it."""


def field(number: int, value: bytes) -> bytes:
    """Return a length-delimited field of a message."""
    return bytes(((number << 3) | 2,)) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the length-delimited fields of a message, which has no others."""
    at = 0
    while at < len(message):
        number, at = message[at] >> 3, at + 1
        length = shift = 0
        while True:
            length |= (message[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if message[at - 1] < 0x80:
                break
        yield number, message[at : at + length]
        at += length


class Plugin(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The service `v1beta1.DevicePlugin`."""

    def __init__(self, count: int) -> None:
        self._count = count

    def service(self, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        if method == "ListAndWatch":
            return grpc.unary_stream_rpc_method_handler(self._list)
        answers = {"GetDevicePluginOptions": lambda _request, _context: b"", "Allocate": self._allocate}
        return grpc.unary_unary_rpc_method_handler(answers[method]) if method in answers else None

    def _list(self, request: bytes, context: Any) -> Iterator[bytes]:
        devices = (field(1, str(index).encode()) + field(2, b"Healthy") for index in range(self._count))
        yield b"".join(field(1, device) for device in devices)
        threading.Event().wait()

    def _allocate(self, request: bytes, context: Any) -> bytes:
        answer = b""
        for _, container in fields(request):
            indexes = ",".join(sorted(value.decode() for _, value in fields(container)))
            pairs = (field(1, name.encode()) + field(2, indexes.encode()) for name in VARIABLES)
            answer += field(1, b"".join(field(1, pair) for pair in pairs))
        return answer


def main() -> None:
    """Register with the kubelet, and serve until it is another one."""
    kubelet, own = FOLDER / "kubelet.sock", FOLDER / "pretend-gpus.sock"
    while not kubelet.exists():
        time.sleep(0.1)
    before = kubelet.stat().st_ino
    own.unlink(missing_ok=True)
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Plugin(int(sys.argv[1])),))
    server.add_insecure_port(f"unix://{own}")
    server.start()
    with grpc.insecure_channel(f"unix://{kubelet}") as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register")
        register(field(1, b"v1beta1") + field(2, own.name.encode()) + field(3, RESOURCE.encode()), timeout=10)
    while own.exists() and kubelet.exists() and kubelet.stat().st_ino == before:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
