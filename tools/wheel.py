"""The console's wheel: what lies beside the packages in a checkout, put into them.

`pyproject.toml` names this class, so that `pip wheel .` and `pip install .` make a whole console.  An
editable installation uses the checkout's own files.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from setuptools.command.build_py import build_py

ROOT: Final = Path(__file__).resolve().parents[1]
RESOURCES: Final = ("docs", "static", "templates")
"""Folders that the console finds below `console/resources` (`console.home`)."""


class BuildWithResources(build_py):  # type: ignore[misc]  # published without types
    """Copy the resources, the translations and the command line's own wheel into the packages."""

    def run(self) -> None:
        """Build the packages, then add to them."""
        super().run()
        if not self.editable_mode:
            _add_resources(Path(self.build_lib))


def _add_resources(packages: Path) -> None:
    for name in RESOURCES:
        target = packages / "console" / "resources" / name
        shutil.rmtree(target, ignore_errors=True)  # an earlier build's
        shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (ROOT / "locale").glob("*/LC_MESSAGES/*.mo"):
        target = packages / "jobs" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    sys.path.insert(0, str(ROOT))
    from jobs.client import wheel_builder  # noqa: PLC0415  # of this checkout

    (packages / "jobs" / "client" / wheel_builder.file_name()).write_bytes(wheel_builder.wheel())
