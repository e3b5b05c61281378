"""How amounts are typed and shown."""

from __future__ import annotations

import pytest

from jobs.form.measures import InvalidValue, MemorySize


@pytest.mark.parametrize(
    ("typed", "mib"),
    [
        ("64 MiB", 64),
        ("2 GiB", 2048),
        ("2", 2048),
        ("0.5", 512),
        ("0,5", 512),
        ("16Gi", 16_384),
        ("512M", 512),
    ],
)
def test_memory_measure_reads_amounts_with_and_without_a_unit(typed: str, mib: int) -> None:
    assert MemorySize(named=True).read(typed) == mib
    assert MemorySize().read(typed) == mib


@pytest.mark.parametrize(("mib", "shown"), [(64, "64 MiB"), (1536, "1536 MiB"), (2048, "2 GiB"), (None, "")])
def test_memory_measure_with_unit_round_trips_shown_amount(mib: int | None, shown: str) -> None:
    measure = MemorySize(named=True, optional=True)
    assert measure.show(mib) == shown
    assert measure.read(shown) == mib


@pytest.mark.parametrize("typed", ["much", "2 apples", "-1"])
def test_memory_measure_rejects_invalid_amount(typed: str) -> None:
    with pytest.raises(InvalidValue):
        MemorySize().read(typed)
