"""Filling folders of the job's own with one of this machine, or with what was uploaded: by the job's user,
not more than allowed.
"""

from __future__ import annotations

import os
from typing import Final

from jobs.faults import fault
from jobs.node import measure
from jobs.node.command import Command
from jobs.node.sandbox import laying
from jobs.node.sandbox.opening import Owner, open_bound, rights_of
from jobs.node.staging import unpacking
from jobs.node.staging.provisions import IN_WORK, Bound, Code, Kind
from jobs.node.staging.unpacking import Handover
from jobs.node.wrapper.errand import Errand
from jobs.node.wrapper.outcome import Cause, Exit, now
from jobs.node.wrapper.steps import Step, Steps

_CLOSE: Final = ("/bin/chmod", "-R", "a-w", "--")
_COPY: Final = ("/bin/cp", "-R", "-P", "--preserve=mode,timestamps", "--")


def copy_all(errand: Errand, steps: Steps) -> Exit | None:
    """Fill every place whose code is copied; called before the replica's own view of files is taken."""
    for code in errand.plan.codes:
        if not code.git:
            trouble = (_unpack if code.tree else _copy)(errand, code, steps)
            fault("wrapper.copied")
            if trouble is not None:
                return trouble
    return None


def close(errand: Errand, folder: str, steps: Steps) -> Exit | None:
    """Let nothing in the folder be written to, as far as its owner keeps to that."""
    env = {"LC_ALL": "C.UTF-8", **errand.marked()}
    return steps.run(Step(Cause.CODE, Command([*_CLOSE, folder], env, "/", errand.owner), folder))


def _copy(errand: Errand, code: Code, steps: Steps) -> Exit | None:
    bound = errand.plan.bounds[code.bound]
    try:
        source = open_bound(Bound(bound.path, Kind.FOLDER, code.folder), errand.owner)
        try:
            _check_size(source, code, errand.owner)
            return _copied(errand, code, source, steps)
        finally:
            os.close(source)
    except OSError as error:
        return now(Cause.CODE, detail=f"{code.folder}: {error.strerror}")
    except measure.TooLarge:
        return now(Cause.CODE, detail=f"{code.folder}: larger than {code.most_bytes:,} bytes")


def _unpack(errand: Errand, code: Code, steps: Steps) -> Exit | None:
    """Uploaded code, into its place or the working folder itself."""
    in_work = code.bound == IN_WORK
    folder = errand.file("work") if in_work else laying.own_folder(errand, code.bound)
    target = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    handover = Handover(unpacking.note(errand.path, code.tree), target)
    patience = measure.Patience(code.patience_s, str(folder), code.most_bytes)
    command = Command((), errand.marked(), "/", errand.owner, handover.unpack, (target, handover.place))
    try:
        trouble = steps.run(Step(Cause.CODE, command, code.name, handover.inside, patience))
        return trouble or (None if in_work else _closed(errand, code, steps))
    finally:
        handover.close()
        os.close(target)


def _closed(errand: Errand, code: Code, steps: Steps) -> Exit | None:
    """Keep a place that is only to be read so, where nothing else does."""
    bound = errand.plan.bounds[code.bound]
    if not (bound.read_only and bound.kind is Kind.INNER):
        return None
    folder = str(laying.own_folder(errand, code.bound))
    return close(errand, folder, steps)


def _check_size(source: int, code: Code, owner: Owner) -> None:
    with rights_of(owner):
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=source)
        try:
            measure.size(readable, code.most_bytes)
        finally:
            os.close(readable)


def _copied(errand: Errand, code: Code, source: int, steps: Steps) -> Exit | None:
    folder = laying.own_folder(errand, code.bound)
    target = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    patience = measure.Patience(code.patience_s, str(folder), code.most_bytes)

    def inside() -> None:
        os.set_inheritable(source, True)
        os.set_inheritable(target, True)

    folders = (f"/proc/self/fd/{source}/.", f"/proc/self/fd/{target}/")
    env = {"LC_ALL": "C.UTF-8", **errand.marked()}
    command = Command([*_COPY, *folders], env, "/", errand.owner)
    try:
        trouble = steps.run(Step(Cause.CODE, command, code.name, inside, patience))
        return trouble or _closed(errand, code, steps)
    finally:
        os.close(target)
