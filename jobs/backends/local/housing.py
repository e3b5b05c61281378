"""How a replica is housed: as plain processes in a view of their own, or in a container."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from jobs.backends.local import cgroups, command, environment, kernel, laying, layout, trees, view
from jobs.backends.local.errand import Errand, group_name
from jobs.backends.local.isolation import Isolation
from jobs.backends.local.keeper import Keeper
from jobs.backends.local.outcome import Exit
from jobs.backends.local.trees import Tree
from jobs.faults import keep_reach


class Housing(Protocol):
    """What the wrapper needs of either."""

    tree: Tree
    group: cgroups.Group | None
    image_used: bool | None

    def prepare(self, keeper: Keeper) -> Exit | None:
        """Make the place, before the command counts as started; an Exit when that failed for good."""

    def command(self) -> command.Command:
        """What to run there."""

    def enter(self) -> None:
        """Called in the child that will run it."""

    def out_of_memory(self) -> bool:
        """What only the housing knows of the end."""

    def clean(self, *, failed: bool) -> None:
        """After the end."""


def housing_of(errand: Errand, output: int) -> Housing:
    """A container for a role that names an image, where there is an engine."""
    if not errand.contained:
        return Plain(errand)
    from jobs.backends.local.container import Container  # noqa: PLC0415 other replicas start without it

    return Container(errand, output)


class Plain:
    """Processes of this machine."""

    def __init__(self, errand: Errand) -> None:
        self._errand = errand
        self._mode = Isolation(errand.plan.house.isolation)
        self._room = environment.Room("", "")
        self.group = limits(errand)
        self.tree: Tree = trees.Namespace()
        self.image_used = False if errand.place.role.image else None
        if self._mode is Isolation.NONE:
            self.tree = trees.Descendants(errand.sessions)
            kernel.become_subreaper()

    def prepare(self, keeper: Keeper) -> None:
        """The replica's own folders, and the file system as it may see it."""
        errand = self._errand
        work, tmp = own_folder(errand, "work"), own_folder(errand, "tmp")
        self._room = errand.room()
        mounts = laying.opened(errand)
        if self._mode is Isolation.NONE:  # they lie where the job is told already
            laying.close(mounts)
            return
        keep_reach()
        view.take(
            view.View(
                work=str(work),
                tmp=str(tmp),
                shm_mib=errand.place.role.shm_mib,
                hide=errand.plan.house.hide,
                show=errand.plan.house.show,
                files={
                    f"{view.HOUSE}/{layout.PEERS}": str(errand.path / layout.PEERS),
                    "/etc/passwd": str(errand.path / layout.PASSWD),
                    "/etc/group": str(errand.path / layout.GROUP),
                },
                read_only=self._mode is Isolation.NAMESPACES,
                mounts=mounts,
                owner=(errand.plan.uid, errand.plan.gid),
            )
        )
        kernel.hide_from_peers()

    def command(self) -> command.Command:
        """The person's line, in a shell."""
        owner = None if self._mode is Isolation.NONE else (self._errand.plan.uid, self._errand.plan.gid)
        argv = command.shell(self._errand.place.role.command)
        return command.Command(argv, self._errand.environment(self._room), self._room.work, owner)

    def enter(self) -> None:
        """Under the limits."""
        if self.group:
            self.group.enter()

    def out_of_memory(self) -> bool:
        """The keeper knows."""
        return False

    def clean(self, *, failed: bool) -> None:
        """Nothing: the folder stays until the attempt is forgotten."""


def limits(errand: Errand) -> cgroups.Group | None:
    """The replica's control groups; None where there can be none."""
    places = cgroups.usable() if errand.plan.house.limits != "watchdog" else None
    if places is None:
        return None
    role = errand.place.role
    amounts = cgroups.Amounts(role.cpu_milli, role.memory_mib, errand.plan.house.pids)
    return cgroups.Group(places, group_name(errand.plan, errand.place), amounts)


def own_folder(errand: Errand, kind: str) -> Path:
    """A folder that belongs to the job."""
    folder = errand.file(kind)
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(folder, errand.plan.uid, errand.plan.gid)
    return folder
