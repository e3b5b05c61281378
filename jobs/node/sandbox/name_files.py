"""Files by which a replica in a network of its own finds the others: `/etc/hosts` and its like.

They are mounted over the host's just before the job's own programs begin, and unmounted after their end: what
stages its code and data runs in the host's network, with the host's names.  Until then a root file system has
them in the console's folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jobs.node import kernel
from jobs.node.network import names
from jobs.node.staging.mount_paths import CONSOLE_FOLDER
from jobs.node.supervisor import layout
from jobs.node.wrapper.launch_arguments import LaunchArguments

_TARGETS: Final = {
    layout.HOSTS: "/etc/hosts",
    layout.RESOLVER: "/etc/resolv.conf",
    layout.HOST_NAME: "/etc/hostname",
}


def write(launch: LaunchArguments) -> None:
    """Write the file that only this replica has."""
    if launch.plan.network is not None:
        path = launch.file("replicas") / layout.HOST_NAME
        path.write_text(f"{names.host_name(launch.plan, launch.place)}\n", encoding="utf-8")
        path.chmod(0o644)


def sources(launch: LaunchArguments) -> dict[str, str]:
    """Return the files for a root file system, by their paths there."""
    if launch.plan.network is None:
        return {}
    shared = {f"{CONSOLE_FOLDER}/{name}": str(launch.path / name) for name in _SHARED}
    return {**shared, f"{CONSOLE_FOLDER}/{layout.HOST_NAME}": str(launch.file("replicas") / layout.HOST_NAME)}


def container_volumes(launch: LaunchArguments) -> dict[str, str]:
    """Return the files for a container, whose engine writes its `/etc/hostname`."""
    if launch.plan.network is None:
        return {}
    return {f"{_TARGETS[name]}:ro": str(launch.path / name) for name in _SHARED}


def mount() -> None:
    """Mount them over the host's, read-only, in the root file system of this process."""
    for source, target in _pairs():
        kernel.make_read_only(source)
        kernel.mount(source, target, flags=kernel.MS_BIND)


def unmount() -> None:
    """Show the host's again."""
    for _source, target in _pairs():
        kernel.unmount(target, kernel.MNT_DETACH)


_SHARED: Final = (layout.HOSTS, layout.RESOLVER)


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield each file, and what it is mounted over: no file is made in the host's folders."""
    for name, target in _TARGETS.items():
        source, found = Path(CONSOLE_FOLDER, name), Path(os.path.realpath(target))
        if source.is_file() and found.is_file():
            yield str(source), str(found)
