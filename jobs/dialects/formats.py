"""The file suffix and the syntax of each dialect, for downloads and editors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Format:
    """`suffix` of a file's name, `syntax` that an editor colours: json, yaml, shell or properties."""

    suffix: str
    syntax: str


FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        "openpai-v1": Format("json", "json"),
        "openpai-v2": Format("yaml", "yaml"),
        "dlc": Format("json", "json"),
        "dlc-params": Format("params", "properties"),
        "aihc": Format("json", "json"),
        "kubeflow": Format("yaml", "yaml"),
        "sbatch": Format("sbatch", "shell"),
    }
)
"""By the dialect's name."""
