"""Where a container engine finds the folders that it mounts: at paths that nobody can change any more.

An engine is told paths, and follows whatever lies there when it comes to it.  So its own process is put
into a mount namespace in which the opened folders lie side by side in a place that only it has.  That
takes root, and an engine whose command makes the container itself, which docker's does not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from jobs.node import kernel
from jobs.node.sandbox.opening import Owner, open_bound
from jobs.node.sandbox.rooms import lay
from jobs.node.staging.provisions import Bound


def works_for(engine: Sequence[str]) -> bool:
    """Whether folders can be staged for the engine with this command line."""
    return bool(engine) and engine[0] == "podman" and os.geteuid() == 0


def places(stage: Path, bounds: Mapping[int, Bound]) -> dict[int, str]:
    """Where each of them will be found."""
    return {index: str(stage / str(index)) for index in bounds}


def take(stage: Path, bounds: Mapping[int, Bound], owner: Owner) -> None:
    """Go into a namespace in which they lie there; for a process that becomes the engine's."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_SLAVE)
    stage.mkdir(mode=0o700, parents=True, exist_ok=True)
    kernel.mount("tmpfs", str(stage), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755,size=64k")
    for index, place in places(stage, bounds).items():
        source = open_bound(bounds[index], owner)
        Path(place).mkdir()
        target = os.open(place, os.O_PATH | os.O_DIRECTORY)
        lay(source, target)
        os.close(target)
        os.close(source)
