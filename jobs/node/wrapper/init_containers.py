"""Init containers that have ended well: a wrapper that takes a killed one's place does not run them again."""

from __future__ import annotations

import time

from jobs.node import processes
from jobs.node.supervisor import layout
from jobs.node.wrapper.launch_arguments import LaunchArguments


def count_ended(launch: LaunchArguments) -> int:
    """Return how many of the replica's have ended well in this boot; what they made is still there then."""
    with launch.folder.sub("replicas") as replicas, replicas.sub(launch.place.name) as mine:
        for number in range(len(launch.place.role.init_containers)):
            ended = mine.read(f"{layout.INIT}.{number}")
            if ended is None or ended["boot"] != processes.boot_id():
                return number
    return len(launch.place.role.init_containers)


def note_end(launch: LaunchArguments, number: int) -> None:
    """Note that one of them has ended well."""
    with launch.folder.sub("replicas") as replicas, replicas.sub(launch.place.name) as mine:
        mine.write(f"{layout.INIT}.{number}", {"boot": processes.boot_id(), "at": time.time()})
