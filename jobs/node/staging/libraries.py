"""The environments of libraries that a person's jobs on this machine share.

While a replica is prepared its user may add to them; its command sees its own one alone, and can't change it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path
from typing import Final

from jobs.node import kernel
from jobs.node.sandbox.bind_mounts import open_folder
from jobs.node.sandbox.root_file_system import BindMount
from jobs.node.staging import data_transfer, mount_paths, pip
from jobs.node.wrapper.launch_arguments import LaunchArguments

FOLDER: Final = f"{mount_paths.CONSOLE_FOLDER}/libraries"
"""Where a replica's root file system has them."""

_IN_CACHE: Final = "packages"
_KEY: Final = re.compile("[0-9a-f]{64}")
_HARMLESS: Final = kernel.MS_NOSUID | kernel.MS_NODEV


def store(launch: LaunchArguments) -> str:
    """Return the person's store on this machine, made if needed; "" where nothing is kept."""
    if not launch.plan.cache or launch.plan.packages is None:
        return ""
    return data_transfer.make_own_folder(Path(data_transfer.cache(launch), _IN_CACHE), launch.owner)


def mounts(launch: LaunchArguments) -> list[BindMount]:
    """Open the store for a root file system; MountFailed."""
    found = store(launch)
    return [BindMount(FOLDER, open_folder(found), anywhere=True)] if found else []


def key_in(work: str) -> str:
    """Return the name of the environment in the store that a replica uses; "" for none.

    `work` is its own folder, of which everything belongs to the job's user.
    """
    try:
        name = os.path.basename(os.readlink(f"{pip.own_folder(work)}/{pip.ENVIRONMENT}"))  # noqa: PTH115, PTH119
    except OSError:
        return ""
    return name if _KEY.fullmatch(name) else ""


def hold(folder: str, key: str) -> list[int]:
    """Keep the environment from being removed, as far as its file system locks.

    Return the descriptor that does so as long as it is open; none where there is none.
    """
    try:
        fd = os.open(f"{folder}/{key}.lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return [fd]


def show_only(key: str) -> None:
    """Cover the store, in this root file system, by the one environment; "" for none."""
    fd = os.open(f"{FOLDER}/{key}", os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC) if key else -1
    kernel.mount("tmpfs", FOLDER, "tmpfs", _HARMLESS, "mode=0755,size=64k")
    if key:
        place = f"{FOLDER}/{key}"
        Path(place).mkdir(0o755)
        kernel.mount(f"/proc/self/fd/{fd}", place, flags=kernel.MS_BIND)
        kernel.make_harmless(place)
        kernel.make_read_only(place)
        os.close(fd)
    kernel.make_read_only(FOLDER)
