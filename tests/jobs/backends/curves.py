"""TensorBoard's own files, and what a TensorBoard answers about them."""

from __future__ import annotations

import http.client
import json
import socket
import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

TAG = "training/loss"
TAGS = "/data/plugin/scalars/tags"


def write_curve(folder: Path) -> None:
    """Write a curve of one value into a folder."""
    writer = EventFileWriter(str(folder))
    value = Summary.Value(tag=TAG, simple_value=4321.0)
    writer.add_event(Event(wall_time=time.time(), step=0, summary=Summary(value=[value])))
    writer.close()
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)


def fetch_tags(connection: socket.socket) -> dict[str, Any]:
    """Ask a TensorBoard for the tags of its scalars."""
    connection.settimeout(20)  # which also makes it blocking
    asking = http.client.HTTPConnection("localhost")
    asking.sock = connection
    asking.request("GET", TAGS)
    answer: dict[str, Any] = json.loads(asking.getresponse().read())
    asking.close()
    return answer
