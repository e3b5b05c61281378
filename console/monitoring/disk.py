"""The space on the console's own disk, and the floor below which nothing new is started."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from jobs.node import disk


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The free space on the console's disk, and what has to stay free (0: nothing); in MiB."""

    free_mib: int
    floor_mib: int

    @property
    def is_low(self) -> bool:
        """Whether less is free than the floor."""
        return self.free_mib < self.floor_mib


def measure() -> DiskSpace:
    """Measure the space where CONSOLE_HOME lies.  Raises OSError."""
    return DiskSpace(disk.free_mib(settings.CONSOLE_HOME), settings.CONSOLE_DISK_FLOOR_MIB)
