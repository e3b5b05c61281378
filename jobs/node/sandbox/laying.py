"""What a plan lays into its jobs, opened for one replica: the last look before it is mounted."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from jobs.node.files import Folder
from jobs.node.sandbox.isolation import Isolation
from jobs.node.sandbox.opening import make_inner, open_bound
from jobs.node.sandbox.view import CannotLay, Laid
from jobs.node.staging import targets
from jobs.node.staging.provisions import Bound, Kind
from jobs.node.supervisor.plan import Plan
from jobs.node.wrapper.errand import Errand


def opened(errand: Errand) -> list[Laid]:
    """Everything by its descriptor, made where it is to be made; CannotLay with the first trouble."""
    for bound in errand.plan.bounds:
        if bound.kind is Kind.INNER:
            _make_inner(errand, bound)
    if errand.mode is Isolation.NONE and not errand.contained:
        for bound in errand.plan.bounds:
            if bound.kind is Kind.JOB:
                _link(errand, bound)
    pairs = enumerate(errand.plan.bounds)
    return [_laid(errand, bound, index) for index, bound in pairs if bound.kind is not Kind.INNER]


def close(mounts: Iterable[Laid]) -> None:
    """Let go of what was opened."""
    for laid in mounts:
        if laid.source is not None:
            os.close(laid.source)


def filled_and_shut(plan: Plan) -> list[Bound]:
    """The places that are only to be read, and into which data is brought before."""
    bounds = (plan.bounds[data.bound] for data in plan.datas)
    return [bound for bound in bounds if bound.read_only]


def own_folder(errand: Errand, index: int) -> Path:
    """The replica's own folder behind a place that is empty at first, as this machine has it."""
    bound = errand.plan.bounds[index]
    if bound.kind is Kind.INNER:
        return Path(f"{errand.file('work')}{bound.path.removeprefix(targets.WORK)}")
    return errand.file("empty") / str(index)


def _laid(errand: Errand, bound: Bound, index: int) -> Laid:
    if bound.kind is Kind.MEMORY:
        return Laid(bound.path, None, size_mib=bound.size_mib or errand.place.role.memory_mib)
    try:
        source = _open(errand, bound, index)
    except OSError as error:
        raise CannotLay(f"{bound.source or bound.path}: {error.strerror}") from error
    shut = bound.read_only and bound not in filled_and_shut(errand.plan)
    return Laid(bound.path, source, shut, anywhere=bound.at_its_own_place)


def _make_inner(errand: Errand, bound: Bound) -> None:
    with Folder.open(errand.file("work")) as work:
        try:
            make_inner(work.fd, bound.path.removeprefix(targets.WORK), errand.owner)
        except OSError as error:
            raise CannotLay(f"{bound.path}: {error.strerror}") from error


def _link(errand: Errand, bound: Bound) -> None:
    """A link in the replica's own folder, where it has no view in which something could be laid."""
    around, _, name = bound.path.removeprefix(targets.WORK).rpartition("/")
    with Folder.open(errand.file("work")) as work:
        try:
            if around:
                make_inner(work.fd, around, errand.owner)
            os.symlink(bound.source, f"{around.strip('/')}/{name}".strip("/"), dir_fd=work.fd)
        except OSError as error:
            raise CannotLay(f"{bound.path}: {error.strerror}") from error


def _open(errand: Errand, bound: Bound, index: int) -> int:
    if bound.on_this_machine:
        return open_bound(bound, errand.owner)
    folder = own_folder(errand, index)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(folder, *errand.owner)
    return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
