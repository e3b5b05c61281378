"""The space on the console's disk."""

from typing import Any

from console.monitoring import disk


def test_disk_compares_what_is_free_with_the_floor(settings: Any) -> None:
    settings.CONSOLE_DISK_FLOOR_MIB = 1
    space = disk.measure()
    assert space.free_mib > 1
    assert not space.is_low
    settings.CONSOLE_DISK_FLOOR_MIB = 1 << 40
    assert disk.measure().is_low


def test_disk_without_a_floor_is_never_low() -> None:
    assert not disk.DiskSpace(0, 0).is_low
