"""What a job asks for: the one function by which it is counted, priced, shown, reserved and started.

The ledger, the panel beside the form and every backend take the amounts from here, so that what is reserved
is what is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.spec import JobSpec


@dataclass(frozen=True, slots=True)
class Ask:
    """One role: so many replicas, and what each of them is given.  `gpu_type` empty is any type."""

    role: str
    replicas: int
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_type: str

    @property
    def by_type(self) -> Mapping[str, int]:
        """The GPUs of one replica by their type; empty without any."""
        return {self.gpu_type: self.gpus} if self.gpus else {}


def asked(spec: JobSpec) -> tuple[Ask, ...]:
    """What each role of the job asks for, in their order."""
    return tuple(
        Ask(
            role.name,
            role.replicas,
            role.resources.cpu_milli,
            role.resources.memory_mib,
            role.resources.gpus,
            role.resources.gpu_type,
        )
        for role in spec.roles
    )
