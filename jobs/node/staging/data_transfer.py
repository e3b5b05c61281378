"""Stage-in and stage-out of data: runs `jobs.data_mover` as the job's user.

It runs where git does: in the replica's own root file system, or for a container in one like a plain job's.
Secrets reach it in a file that only the job's user can read and that is removed once it was read.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jobs import data_mover
from jobs.node import kernel
from jobs.node.command import Command
from jobs.node.measure import StepBudget
from jobs.node.sandbox.bind_mounts import open_folder
from jobs.node.sandbox.root_file_system import BindMount, MountFailed
from jobs.node.staging import mount_paths
from jobs.node.staging.mount_specs import CodeSpec, DataMoverRuntime
from jobs.node.wrapper.launch_arguments import LaunchArguments
from jobs.node.wrapper.outcome import Cause, Exit
from jobs.node.wrapper.steps import StagingSite, StagingStep, StepRunner

PROGRAM: Final = f"{mount_paths.CONSOLE_FOLDER}/carrier"
PYTHON: Final = f"{mount_paths.CONSOLE_FOLDER}/python"
SITE: Final = f"{mount_paths.CONSOLE_FOLDER}/site"
CACHE: Final = f"{mount_paths.CONSOLE_FOLDER}/cache"
"""Where a replica's root file system has them."""

_ENV: Final = "/usr/bin/env"
_LIBRARIES: Final = "LD_LIBRARY_PATH"
"""A Python that was built with a library of its own does not find it where it is mounted."""

_OWN_FOLDER: Final = str(Path(data_mover.__file__).parent)
_MAIN: Final = "main.py"
_ORDER: Final = ".order"
_VISIBLE_ANYWAY: Final = ("/usr", "/usr/local")
_LIBRARY: Final = "fsspec"


def tools() -> DataMoverRuntime:
    """Return this console's own Python and libraries."""
    found = importlib.util.find_spec(_LIBRARY)
    site = Path(found.origin).parents[1] if found and found.origin else Path(sys.prefix)
    python, base = os.path.realpath(sys.executable), os.path.realpath(sys.base_prefix)
    return DataMoverRuntime(python, "" if base in _VISIBLE_ANYWAY else base, str(site))


def _program(launch: LaunchArguments, *, viewed: bool) -> list[str]:
    """Return how a command line of the data mover begins."""
    return [*python(launch, viewed=viewed), f"{PROGRAM if viewed else _OWN_FOLDER}/{_MAIN}"]


def python(launch: LaunchArguments, *, viewed: bool) -> list[str]:
    """Return how a command line of the console's own Python begins."""
    found = launch.plan.tools
    assert found is not None
    if not (viewed and found.base):
        return [found.python, "-I", "-S"]
    moved = f"{PYTHON}/{os.path.relpath(found.python, found.base)}"
    return [_ENV, f"{_LIBRARIES}={PYTHON}/lib", moved, "-I", "-S"]


def libraries(launch: LaunchArguments, *, viewed: bool) -> str:
    """Return the folder of the console's libraries."""
    assert launch.plan.tools is not None
    return SITE if viewed else launch.plan.tools.site


def guard(launch: LaunchArguments, code: CodeSpec, *, viewed: bool) -> Sequence[str]:
    """Return the words before git that keep it to the addresses that were checked."""
    if launch.plan.tools is None:  # of a plan that an earlier release made
        return ()
    return [*_program(launch, viewed=viewed), "--git", code.uri, "1" if code.inside else "0"]


def mounts(launch: LaunchArguments) -> list[BindMount]:
    """Open what the data mover needs in a root file system, and the person's cache; MountFailed.

    The cache can be written to; `hide_cache` removes it before the command starts.
    """
    opened = tool_mounts(launch)
    if launch.plan.cache:
        opened.append(BindMount(CACHE, open_folder(cache(launch)), anywhere=True))
    return opened


def tool_mounts(launch: LaunchArguments) -> list[BindMount]:
    """Open the console's Python and libraries for a root file system; MountFailed."""
    found, folders = launch.plan.tools, {}
    if found is not None:
        folders[PROGRAM] = _OWN_FOLDER
        if found.base:
            folders[PYTHON] = found.base
        if launch.plan.datas or launch.plan.tensorboard:
            folders[SITE] = found.site
    return [BindMount(path, open_folder(folder), True, anywhere=True) for path, folder in folders.items()]


def cache(launch: LaunchArguments) -> str:
    """Return the person's cache on this machine, made if needed; no other person's job can reach it."""
    path = Path(launch.plan.cache)
    path.parent.mkdir(mode=0o711, exist_ok=True)
    return make_own_folder(path, launch.owner)


def make_own_folder(path: Path, owner: tuple[int, int]) -> str:
    """Make a folder of the job's user if it is not there yet; MountFailed for one of somebody else's."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    # Only root makes anything there: what is root's was made a moment ago, or by a process that died over it.
    if os.geteuid() == 0 and path.lstat().st_uid == 0:
        os.chown(path, *owner, follow_symlinks=False)
    about = path.lstat()
    if path.is_symlink() or (os.geteuid() == 0 and about.st_uid != owner[0]):
        raise MountFailed(f"{path} does not belong to the job's user")
    return str(path)


def hide_cache(launch: LaunchArguments) -> None:
    """Unmount the cache: the command must not change what other jobs will find."""
    if launch.plan.cache:
        kernel.unmount(CACHE, kernel.MNT_DETACH)


def stage_in(site: StagingSite, steps: StepRunner) -> Exit | None:
    """Fetch all data, one mount after the other; the Exit of the first that failed."""
    for index, data in enumerate(site.launch.plan.datas):
        if data.look or data.bring:
            trouble = _run(site, index, "look" if data.look else "fetch", steps)
            if trouble is not None:
                return trouble
    return None


def stage_out(site: StagingSite, steps: StepRunner) -> Exit | None:
    """Store what is new in mounts that can be written to; the Exit of the first that failed."""
    trouble = None
    for index, data in enumerate(site.launch.plan.datas):
        if data.back and not data.look:
            trouble = _run(site, index, "store", steps) or trouble
    return trouble


def _run(site: StagingSite, index: int, do: str, steps: StepRunner) -> Exit | None:
    launch, data = site.launch, site.launch.plan.datas[index]
    order = {
        **_login(launch, index),
        "do": do,
        "name": data.name,
        "uri": data.uri,
        "endpoint": data.endpoint,
        "region": data.region,
        "addressing": data.addressing,
        "inside": data.inside,
        "folder": site.folder(data.bound),
        "cache": (CACHE if site.viewed else cache(launch)) if launch.plan.cache and do == "fetch" else "",
        "most": data.most_bytes,
        "unpack": data.is_code,
        "cache_most": data.cache_bytes,
        "site": libraries(launch, viewed=site.viewed),
    }
    most = data.most_bytes if do == "fetch" else 0
    patience = StepBudget(data.patience_s, site.seen(data.bound) if most else "", most)
    owner = launch.owner if site.viewed else None
    with site.private_file(_ORDER, json.dumps(order)) as path:
        argv = [*_program(launch, viewed=site.viewed), path]
        command = site.wrap(Command(argv, site.environment(), "/", owner))
        cause = Cause.CODE if data.is_code else Cause.DATA
        return steps.run(StagingStep(cause, command, data.name, site.inside, patience))


def _login(launch: LaunchArguments, index: int) -> dict[str, Any]:
    known = launch.secrets.get("data") or []
    return dict(known[index]) if index < len(known) else {"user": "", "password": ""}
