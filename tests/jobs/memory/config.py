"""It has no settings."""

from typing import ClassVar, Final

from pydantic.dataclasses import dataclass

from jobs.backends.settings import FROZEN, Settings


@dataclass(frozen=True, slots=True, kw_only=True, config=FROZEN)
class MemoryConfig(Settings):
    """No settings, but assets are tried there."""

    tries_assets: ClassVar[bool] = True


CONFIG: Final = MemoryConfig
