"""The preparation lock of a replica: of two wrappers, which a crash can bring about, one has it.

What it prepares it first clears away; so nobody may do that beside, or after, the one that starts the
command.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from jobs.node.files import Folder
from jobs.node.processes import Identity
from jobs.node.supervisor import layout

_AGAIN_S: Final = 0.1


@contextlib.contextmanager
def acquire(replica: Folder, me: Identity, is_settled: Callable[[], bool]) -> Iterator[bool]:
    """Wait for the turn, and keep it meanwhile: True; False once it `is_settled` that nobody needs one.

    The kernel takes it back from whoever ends; whoever has it can be read in the file, so that the
    supervisor finds, and thaws, the right one.
    """
    fd = os.open(layout.TURN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=replica.fd)
    try:
        mine = False
        while not is_settled() and not (mine := _try(fd)):
            time.sleep(_AGAIN_S)
        if mine:
            text = json.dumps(me.dump()).encode()
            os.ftruncate(fd, 0)
            os.pwrite(fd, text, 0)
            mine = not is_settled()
        yield mine
    finally:
        os.close(fd)


def is_free(replica: Folder) -> bool:
    """Tell whether nobody prepares the replica now."""
    fd = os.open(layout.TURN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=replica.fd)
    try:
        return _try(fd)
    finally:
        os.close(fd)


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
