"""The part of a local cluster's agent that makes sockets in replicas' networks, in a thread."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.node.network.replica_sockets import REQUEST, SocketMaker
from jobs.node.supervisor.layout import AGENT_SOCKET, Layout


@contextmanager
def socket_agent(root: Path) -> Iterator[None]:
    """Serve at the cluster's root."""
    root.mkdir(parents=True, exist_ok=True)
    path = root / AGENT_SOCKET
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        folder = os.open(root, os.O_PATH)
        listening.bind(f"/proc/self/fd/{folder}/{AGENT_SOCKET}")
        os.close(folder)
        listening.listen()
        thread = threading.Thread(target=_serve, args=(listening, SocketMaker(Layout(root))))
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            path.unlink()


def _serve(listening: socket.socket, maker: SocketMaker) -> None:
    while True:
        try:
            connection, _address = listening.accept()
        except OSError:  # it was shut down
            return
        with connection:
            answer, files = maker.answer(json.loads(connection.recv(65536))[REQUEST])
            socket.send_fds(connection, [json.dumps(answer).encode()], files)
            for file in files:
                os.close(file)
