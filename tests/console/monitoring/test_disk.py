"""The space on the console's disk."""

from typing import Any

from console.monitoring import disk


def test_disk_space_below_the_minimum_is_low(settings: Any) -> None:
    settings.CONSOLE_DISK_FLOOR_MIB = 1
    space = disk.measure()
    assert space.free_mib > 1
    assert not space.is_low
    settings.CONSOLE_DISK_FLOOR_MIB = 1 << 40
    assert disk.measure().is_low


def test_disk_space_without_a_minimum_is_never_low() -> None:
    assert not disk.DiskSpace(0, 0).is_low
