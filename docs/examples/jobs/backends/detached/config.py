"""Settings of a cluster that runs jobs as detached processes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import Field
from pydantic.dataclasses import dataclass

from jobs.backends.settings import FROZEN, Settings


@dataclass(frozen=True, slots=True, kw_only=True, config=FROZEN)
class DetachedConfig(Settings):
    """Jobs lie in `root`; `nice` is theirs."""

    root: Path
    nice: Annotated[int, Field(strict=True, ge=0, le=19)] = 10

    @classmethod
    def from_settings(cls, home: Path, settings: Mapping[str, Any]) -> Self:
        return cls(**{**settings, "root": home / "jobs"})

    def exposures(self) -> frozenset[str]:
        return frozenset({"files", "sign-ins"})  # jobs run as the console's own user


CONFIG: Final = DetachedConfig
