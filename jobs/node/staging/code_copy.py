"""Copies of code in folders of the job's own: from a folder of this machine, or from an upload.

They are made by the job's user, and are not larger than allowed.
"""

from __future__ import annotations

import os
from typing import Final

from jobs.faults import fault
from jobs.node import measure
from jobs.node.command import Command
from jobs.node.sandbox import bind_mounts
from jobs.node.sandbox.folder_access import check_folder_size, open_bound
from jobs.node.staging import upload_unpacker
from jobs.node.staging.mount_specs import IN_WORK, CodeSpec, MountKind, MountSpec
from jobs.node.staging.upload_unpacker import Handover
from jobs.node.wrapper.launch_arguments import LaunchArguments
from jobs.node.wrapper.outcome import Cause, Exit, now
from jobs.node.wrapper.steps import StagingStep, StepRunner

_CLOSE: Final = ("/bin/chmod", "-R", "a-w", "--")
_COPY: Final = ("/bin/cp", "-R", "-P", "--preserve=mode,timestamps", "--")


def copy_all(launch: LaunchArguments, steps: StepRunner) -> Exit | None:
    """Copy all code that needs no git, before the replica's own root file system is entered."""
    for code in launch.plan.codes:
        if not code.git:
            trouble = _copy(launch, code, steps)
            fault("wrapper.copied")
            if trouble is not None:
                return trouble
    return None


def close(launch: LaunchArguments, folder: str, steps: StepRunner) -> Exit | None:
    """Make a folder read-only, as far as its owner keeps to that."""
    env = {"LC_ALL": "C.UTF-8", **launch.mark_variables()}
    return steps.run(StagingStep(Cause.CODE, Command([*_CLOSE, folder], env, "/", launch.owner), folder))


def _copy(launch: LaunchArguments, code: CodeSpec, steps: StepRunner) -> Exit | None:
    """Fill the code's mount, or the working folder itself."""
    in_work = code.bound == IN_WORK
    folder = launch.file("work") if in_work else bind_mounts.own_folder(launch, code.bound)
    target = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    patience = measure.StepBudget(code.patience_s, str(folder), code.most_bytes)
    try:
        run = _unpack if code.tree else _copy_folder
        trouble = run(launch, code, target, patience, steps)
    finally:
        os.close(target)
    bound = None if in_work else launch.plan.bounds[code.bound]
    if trouble is None and bound is not None and bound.read_only and bound.kind is MountKind.INNER:
        return close(launch, str(folder), steps)
    return trouble


def _copy_folder(
    launch: LaunchArguments, code: CodeSpec, target: int, patience: measure.StepBudget, steps: StepRunner
) -> Exit | None:
    try:
        source = open_bound(MountSpec("", MountKind.FOLDER, code.folder), launch.owner)
    except OSError as error:
        return now(Cause.CODE, detail=f"{code.folder}: {error.strerror}")

    def make_inheritable() -> None:
        os.set_inheritable(source, True)
        os.set_inheritable(target, True)

    folders = (f"/proc/self/fd/{source}/.", f"/proc/self/fd/{target}/")
    env = {"LC_ALL": "C.UTF-8", **launch.mark_variables()}
    command = Command([*_COPY, *folders], env, "/", launch.owner)
    try:
        check_folder_size(source, code.most_bytes, launch.owner)
        return steps.run(StagingStep(Cause.CODE, command, code.name, make_inheritable, patience))
    except OSError as error:
        return now(Cause.CODE, detail=f"{code.folder}: {error.strerror}")
    except measure.FolderTooLarge:
        return now(Cause.CODE, detail=f"{code.folder}: larger than {code.most_bytes:,} bytes")
    finally:
        os.close(source)


def _unpack(
    launch: LaunchArguments, code: CodeSpec, target: int, patience: measure.StepBudget, steps: StepRunner
) -> Exit | None:
    """Unpack uploaded code."""
    handover = Handover(upload_unpacker.note(launch.path, code.tree), target)
    command = Command(
        (), launch.mark_variables(), "/", launch.owner, handover.unpack, (target, handover.place)
    )
    try:
        return steps.run(StagingStep(Cause.CODE, command, code.name, handover.fork_reader, patience))
    finally:
        handover.close()
