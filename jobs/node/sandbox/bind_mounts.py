"""The mounts of a plan, opened for one replica: the last check before they are mounted.

A container engine is told paths, and follows whatever lies there when it comes to it.  So its own process is
put into a mount namespace in which the opened folders lie side by side in a folder that only it has.  That
takes root, and an engine whose command makes the container itself, which docker's does not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from jobs.node import kernel
from jobs.node.files import Folder
from jobs.node.sandbox.folder_access import Owner, make_inner, open_bound
from jobs.node.sandbox.isolation import Isolation
from jobs.node.sandbox.mount_points import bind
from jobs.node.sandbox.root_file_system import BindMount, raising_mount_failed
from jobs.node.staging import mount_paths
from jobs.node.staging.mount_specs import IN_WORK, MountKind, MountSpec
from jobs.node.supervisor.plan import Plan
from jobs.node.wrapper.launch_arguments import LaunchArguments

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW


def open_all(launch: LaunchArguments, *, is_new: bool = True) -> list[BindMount]:
    """Open every mount of the plan; MountFailed for the first that fails.

    In a replica that `is_new` they are made where they are to be made.
    """
    if not is_new:
        return _open(launch, MountKind.INNER)
    linked = launch.mode is Isolation.NONE and not launch.contained
    with Folder.open(launch.file("work")) as work:
        for bound in launch.plan.bounds:
            with raising_mount_failed(bound.path):
                if bound.kind is MountKind.INNER:
                    make_inner(work.fd, bound.path.removeprefix(mount_paths.WORK), launch.owner)
                elif bound.kind is MountKind.JOB and linked:
                    _link(launch, bound, work)
    return _open(launch, MountKind.INNER)


def open_folders(launch: LaunchArguments) -> list[BindMount]:
    """Open the mounts of a replica that has them already, for something beside it; MountFailed."""
    return _open(launch, MountKind.INNER, MountKind.MEMORY)


def _open(launch: LaunchArguments, *others: MountKind) -> list[BindMount]:
    """Open all mounts but those of other kinds."""
    pairs = enumerate(launch.plan.bounds)
    return [_mount(launch, bound, index) for index, bound in pairs if bound.kind not in others]


def read_only_data(plan: Plan) -> list[MountSpec]:
    """Return the read-only mounts into which data, or code by git, is staged first."""
    fetched = [data.bound for data in plan.datas]
    fetched += [code.bound for code in plan.codes if code.git and code.bound != IN_WORK]
    bounds = (plan.bounds[number] for number in fetched)
    return [bound for bound in bounds if bound.read_only]


def own_folder(launch: LaunchArguments, index: int) -> Path:
    """Return the replica's own folder behind a mount that is empty at first, as this machine has it."""
    bound = launch.plan.bounds[index]
    if bound.kind is MountKind.INNER:
        return Path(f"{launch.file('work')}{bound.path.removeprefix(mount_paths.WORK)}")
    return launch.file("empty") / str(index)


def open_source(bound: MountSpec, owner: Owner) -> int:
    """Open a folder of this machine for a mount; MountFailed."""
    with raising_mount_failed(bound.source):
        return open_bound(bound, owner)


def open_folder(folder: Path | str) -> int:
    """Open a folder that the console made; MountFailed."""
    with raising_mount_failed(str(folder)):
        return os.open(folder, _FOLDER)


def _mount(launch: LaunchArguments, bound: MountSpec, index: int) -> BindMount:
    if bound.kind is MountKind.MEMORY:
        return BindMount(bound.path, None, size_mib=bound.size_mib or launch.place.role.memory_mib)
    if bound.on_this_machine:
        source = open_source(bound, launch.owner)
    else:
        folder = own_folder(launch, index)
        with raising_mount_failed(bound.path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.geteuid() == 0:
                os.chown(folder, *launch.owner)
            source = os.open(folder, _FOLDER)
    read_only = bound.read_only and bound not in read_only_data(launch.plan)
    return BindMount(bound.path, source, read_only, anywhere=bound.at_its_own_place)


def _link(launch: LaunchArguments, bound: MountSpec, work: Folder) -> None:
    """Make a link in the replica's own folder, where it has no root file system for mounts."""
    around, _, name = bound.path.removeprefix(mount_paths.WORK).rpartition("/")
    if around:
        make_inner(work.fd, around, launch.owner)
    os.symlink(bound.source, f"{around.strip('/')}/{name}".strip("/"), dir_fd=work.fd)


# --- for a container engine ------------------------------------------------------------------------------


def works_for(engine: Sequence[str]) -> bool:
    """Tell whether folders can be opened beforehand for the engine with this command line."""
    return bool(engine) and engine[0] == "podman" and os.geteuid() == 0


def paths_for_engine(folder: Path, bounds: Mapping[int, MountSpec]) -> dict[int, str]:
    """Return where the engine finds each of the mounts after `enter_engine_namespace`."""
    return {index: str(folder / str(index)) for index in bounds}


def enter_engine_namespace(folder: Path, bounds: Mapping[int, MountSpec], owner: Owner) -> None:
    """Go into a namespace in which the mounts lie in `folder`; for the process that becomes the engine's."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_SLAVE)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kernel.mount("tmpfs", str(folder), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755,size=64k")
    for index, path in paths_for_engine(folder, bounds).items():
        source = open_bound(bounds[index], owner)
        Path(path).mkdir()
        target = os.open(path, os.O_PATH | os.O_DIRECTORY)
        bind(source, target)
        os.close(target)
        os.close(source)
