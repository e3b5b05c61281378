"""What ready-made sizes (EcsSpec) hold, as far as the vendor's pages say.

The full list, with prices, is the target's own; an admin's catalog may know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Holds:
    """What one machine of a size has; None where the pages don't say."""

    source: str
    cpu_milli: int | None = None
    memory_mib: int | None = None
    gpus: int = 0
    gpu_type: str = ""


INSTANCE_TYPES: Final = {
    "ecs.gn6e-c12g1.3xlarge": Holds("DLC page", cpu_milli=12_000, gpus=1, gpu_type="V100"),
}
"""The size of the CreateJob page's sample: one NVIDIA V100 card; 12 cores by its name."""
