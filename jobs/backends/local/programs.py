"""Which programs jobs find on this machine without an image."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from jobs.node.sandbox import isolation
from jobs.node.sandbox.isolation import Isolation


def found(names: Iterable[str], path: str, mode: Isolation, home: Path) -> tuple[str, ...]:
    """Those of `names` on the search path `path` that a job may start; `home` is the console's."""
    folders = [folder for folder in path.split(":") if folder.startswith("/")]
    hidden = [Path(place).resolve() for place in isolation.hidden(mode, home)]
    return tuple(
        name for name in names if any(_is_there(Path(folder, name), mode, hidden) for folder in folders)
    )


def _is_there(program: Path, mode: Isolation, hidden: Iterable[Path]) -> bool:
    if not os.access(program, os.X_OK) or not program.is_file():
        return False
    real = program.resolve()
    if any(real.is_relative_to(place) for place in hidden):
        return False
    places = [place for each in (program, real) for place in (each, *each.parents)]
    return mode is not Isolation.PERSONS or all(place.stat().st_mode & stat.S_IXOTH for place in places)
