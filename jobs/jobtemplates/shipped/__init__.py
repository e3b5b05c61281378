"""Built-in templates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jobs.jobtemplates.template import JobTemplate, load

ORDER: Final = (
    "helloworld",
    "jupyterlab",
    "jupyter",
    "vscode",
    "tensorboard",
    "shell",
    "pytorch-ddp",
    "tensorflow-ps",
    "mpi",
    "ray",
    "sweep",
)

SHIPPED: Final[Mapping[str, JobTemplate]] = {
    name: load(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")) for name in ORDER
}
"""By their ids, in the order in which they are offered."""
