"""The device by which `pasta` connects a network, for tests that run as an ordinary user."""

import os
import stat
from pathlib import Path

from jobs.node import kernel


def permit() -> None:
    """Let everybody use the device, as udev does, in this process and what it starts, and nowhere else.

    For a process of root with one thread; a machine without udev has the device for root only.
    """
    before = Path("/dev/net/tun").stat()
    if before.st_mode & 0o006 == 0o006:
        return
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", "/dev/net", "tmpfs", options="mode=0755,size=64k")
    os.mknod("/dev/net/tun", stat.S_IFCHR | 0o600, before.st_rdev)
    Path("/dev/net/tun").chmod(0o666)
