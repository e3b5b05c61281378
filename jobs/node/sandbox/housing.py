"""How a replica is housed: as plain processes in a view of their own, or in a container."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from jobs.faults import fault, keep_reach
from jobs.node import clearing, command, kernel, trees
from jobs.node.sandbox import laying, view
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import carrying, copying, fetching, git, pip
from jobs.node.staging.provisions import Code, Data
from jobs.node.supervisor import layout
from jobs.node.trees import Tree
from jobs.node.wrapper import cgroups, environment, python_shim
from jobs.node.wrapper.errand import Errand, group_name
from jobs.node.wrapper.keeper import Keeper
from jobs.node.wrapper.log_writer import LogWriter
from jobs.node.wrapper.outcome import Exit
from jobs.node.wrapper.steps import Step, Steps


class Housing(Protocol):
    """What the wrapper needs of either."""

    tree: Tree
    group: cgroups.Group | None
    image_used: bool | None
    commit: str

    def prepare(self, keeper: Keeper) -> Exit | None:
        """Make the place, before the command counts as started; an Exit when that failed for good."""

    def command(self) -> command.Command:
        """What to run there."""

    def enter(self) -> None:
        """Called in the child that will run it."""

    def out_of_memory(self) -> bool:
        """What only the housing knows of the end."""

    def take_back(self, keeper: Keeper) -> Exit | None:
        """Once nothing of it runs: what is new in its places goes to where they are."""

    def clean(self, *, failed: bool) -> None:
        """After the end."""


def housing_of(errand: Errand, log: LogWriter) -> Housing:
    """A container for a role that names an image, where there is an engine."""
    if not errand.contained:
        return Plain(errand, log)
    from jobs.node.sandbox.container import Container  # noqa: PLC0415 other replicas start without it

    return Container(errand, log)


class Plain:
    """Processes of this machine."""

    def __init__(self, errand: Errand, log: LogWriter) -> None:
        self._errand, self._log = errand, log
        self._mode = Isolation(errand.plan.house.isolation)
        self._room = environment.Room("", "")
        self.group = limits(errand)
        self.tree: Tree = trees.Namespace()
        self.image_used = False if errand.place.role.image else None
        self.commit = ""
        if self._mode is Isolation.NONE:
            self.tree = trees.Descendants(errand.sessions)
            kernel.become_subreaper()

    def prepare(self, keeper: Keeper) -> Exit | None:
        """The replica's own folders, the file system as it may see it, and what is in it beforehand."""
        errand = self._errand
        own_folders(errand)
        self._room = errand.room()
        steps = Steps(errand, self._log, keeper, self.group)
        mounts = laying.opened(errand)
        trouble = copying.copy_all(errand, steps)
        if trouble is not None or self._mode is Isolation.NONE:  # they lie where the job is told already
            laying.close(mounts)
        else:
            keep_reach()
            tools = (*python_shim.mounts(errand.path), *carrying.laid(errand), *carrying.laid_cache(errand))
            view.take(view_of(errand, self._mode, (*mounts, *fetching.sources(errand), *tools)))
            kernel.hide_from_peers()
        steps.watched = self.group is None
        trouble = trouble or self._fetch(steps) or self._bring(steps) or self._install(steps)
        if trouble is None and self._mode is not Isolation.NONE:
            carrying.put_away(errand)
        return trouble

    def _fetch(self, steps: Steps) -> Exit | None:
        """Everything that git fetches, as the job's user, where the command will run."""
        errand, room = self._errand, self._room
        alone = self._mode is not Isolation.NONE
        house = view.HOUSE if alone else str(errand.path)

        def folder(code: Code) -> str:
            return room.inside(errand.plan.bounds[code.bound].path)

        site = fetching.Site(
            *(room.tmp, house, errand.plan.house.path, folder, folder, self.enter),
            guard=lambda code: carrying.guard(errand, code, viewed=alone),
        )
        for index, code in enumerate(errand.plan.codes):
            if code.git:
                source = code.uri or (fetching.source_place(index) if alone else code.folder)
                trouble = fetching.fetch(errand, index, source, site, steps)
                fault("wrapper.fetched")
                if trouble is not None:
                    return trouble
                self.commit = self.commit or git.commit_in(folder(code))
        return None

    def _bring(self, steps: Steps) -> Exit | None:
        """The data that is fetched; what is only to be read is closed afterwards."""
        trouble = carrying.bring(self._errand, self._site(), steps)
        if trouble is None and self._mode is not Isolation.NONE:
            for bound in laying.filled_and_shut(self._errand.plan):
                kernel.make_read_only(bound.path)
        elif trouble is None:
            for bound in laying.filled_and_shut(self._errand.plan):
                trouble = trouble or copying.close(self._errand, self._room.inside(bound.path), steps)
        return trouble

    def _site(self) -> carrying.Site:
        def folder(data: Data) -> str:
            return self._room.inside(self._errand.plan.bounds[data.bound].path)

        tmp, viewed = self._room.tmp, self._mode is not Isolation.NONE
        return carrying.Site(tmp, tmp, viewed, folder, folder, self.enter)

    def take_back(self, keeper: Keeper) -> Exit | None:
        """By the job's user, in the view that the command had."""
        self.tree.signal(signal.SIGKILL)
        steps = Steps(self._errand, self._log, keeper, self.group)
        steps.watched = self.group is None
        return carrying.take_back(self._errand, self._site(), steps)

    def _install(self, steps: Steps) -> Exit | None:
        """The Python packages that the job asks for, with the environment that its command will have."""
        packages, room = self._errand.plan.packages, self._room
        if packages is None:
            return None
        packages = replace(packages, directory=room.inside(packages.directory))
        env = {**pip.configuration(), **self._errand.environment(room)}
        cache = carrying.environments(self._errand, viewed=self._mode is not Isolation.NONE)
        argv = [command.own_shell(), "-c", *pip.arguments(packages, room.work, cache)]
        program = command.Command(argv, env, room.work, self._owner)
        trouble = steps.run(Step.of_packages(packages, program, self.enter))
        fault("wrapper.installed")
        return trouble

    @property
    def _owner(self) -> tuple[int, int] | None:
        return None if self._mode is Isolation.NONE else self._errand.owner

    def command(self) -> command.Command:
        """The person's line, in a shell."""
        argv = command.shell(self._errand.place.role.command)
        return command.Command(argv, self._errand.environment(self._room), self._room.work, self._owner)

    def enter(self) -> None:
        """Under the limits."""
        if self.group:
            self.group.enter()
        elif self._mode is not Isolation.NONE:  # else the limit would count all processes of the user
            most = self._errand.plan.house.pids
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))

    def out_of_memory(self) -> bool:
        """The keeper knows."""
        return False

    def clean(self, *, failed: bool) -> None:
        """Nothing: the folder stays until the attempt is forgotten."""


def view_of(errand: Errand, mode: Isolation, mounts: Sequence[view.Laid]) -> view.View:
    """The file system as a plain process of the replica may see it."""
    files = (layout.PEERS, git.CONFIG)
    return view.View(
        work=str(errand.file("work")),
        tmp=str(errand.file("tmp")),
        shm_mib=errand.place.role.shm_mib,
        hide=errand.plan.house.hide,
        show=errand.plan.house.show,
        files={
            **{f"{view.HOUSE}/{name}": str(errand.path / name) for name in files},
            "/etc/passwd": str(errand.path / layout.PASSWD),
            "/etc/group": str(errand.path / layout.GROUP),
        },
        read_only=mode is Isolation.NAMESPACES,
        mounts=mounts,
        owner=errand.owner,
    )


def limits(errand: Errand) -> cgroups.Group | None:
    """The replica's control groups; None where there can be none."""
    places = cgroups.usable() if errand.plan.house.limits != "watchdog" else None
    if places is None:
        return None
    role = errand.place.role
    amounts = cgroups.Amounts(role.cpu_milli, role.memory_mib, errand.plan.house.pids)
    return cgroups.Group(places, group_name(errand.plan, errand.place), amounts)


def own_folders(errand: Errand) -> None:
    """The folders that belong to the replica, without anything that an earlier wrapper left in them."""
    for kind in ("work", "tmp", "empty"):
        clearing.clear(errand.file(kind))
    for kind in ("work", "tmp"):
        _own_folder(errand.file(kind), errand.owner)


def _own_folder(folder: Path, owner: tuple[int, int]) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(folder, *owner)
