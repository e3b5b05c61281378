"""A replica in a container of the machine's engine."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jobs.faults import fault
from jobs.node import command, kernel, trees
from jobs.node.sandbox import engine, housing, laying, lodge, stage, view
from jobs.node.sandbox.housing import limits, own_folders
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import carrying, copying, fetching, git, pip
from jobs.node.staging.provisions import Bound, Code, Data, Kind
from jobs.node.supervisor import layout
from jobs.node.trees import Tree
from jobs.node.wrapper import cgroups
from jobs.node.wrapper.errand import Errand, group_name, setup_name
from jobs.node.wrapper.keeper import Keeper
from jobs.node.wrapper.log_writer import LogWriter
from jobs.node.wrapper.outcome import Cause, Exit
from jobs.node.wrapper.steps import Step, Steps

_PROCESSES: Final = 32_768


class Container:
    """A container of the machine's engine."""

    image_used: bool | None = True

    def __init__(self, errand: Errand, log: LogWriter) -> None:
        self._errand, self._log = errand, log
        self._engine = engine.Engine(errand.plan.house.engine)
        self._name = self._current = group_name(errand.plan, errand.place)
        self._env_file = errand.file("replicas") / layout.ENV
        self._groups = cgroups.from_the_top() if self._engine.podman else ""
        self.group = limits(errand) if self._groups else None
        self.tree: Tree = trees.Contained(lambda: self._engine.first_process(self._current))
        self._stage = errand.file("stage")
        self.commit = ""
        self._staged: dict[int, Bound] = {}
        if stage.works_for(errand.plan.house.engine):
            self._staged = {i: one for i, one in enumerate(errand.plan.bounds) if one.on_this_machine}
        kernel.become_subreaper()

    def prepare(self, keeper: Keeper) -> Exit | None:
        """The replica's own folders and what is in them, and the image."""
        own_folders(self._errand)
        laying.close(laying.opened(self._errand))
        steps = Steps(self._errand, self._log, keeper, self.group)
        trouble = copying.copy_all(self._errand, steps) or self._fetch(steps)
        trouble = trouble or carrying.bring(self._errand, self._site(), steps)
        return trouble or self._pull(steps) or self._install(steps)

    def take_back(self, keeper: Keeper) -> Exit | None:
        """On this machine, in a view like a plain process's: the container is gone."""
        steps = Steps(self._errand, self._log, keeper, self.group)
        return carrying.take_back(self._errand, self._site(), steps)

    def _site(self) -> carrying.Site:
        """Where data is brought from: this machine, into the folders that the container will have."""
        errand, mode = self._errand, Isolation(self._errand.plan.house.isolation)
        tmp = str(errand.file("tmp"))

        def seen(data: Data) -> str:
            return str(laying.own_folder(errand, data.bound))

        if mode is Isolation.NONE:
            return carrying.Site(tmp, tmp, False, seen, seen, self._enter_group)

        def take() -> None:
            folders = [
                view.Laid(
                    errand.plan.bounds[data.bound].path,
                    os.open(seen(data), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW),
                )
                for data in errand.plan.datas
                if errand.plan.bounds[data.bound].kind is not Kind.INNER
            ]
            laid = (*folders, *carrying.laid(errand), *carrying.laid_cache(errand))
            view.take(housing.view_of(errand, mode, laid))

        def wrap(program: command.Command) -> command.Command:
            return replace(program, argv=(), owner=None, instead=lambda: lodge.run(mode, take, program))

        def folder(data: Data) -> str:
            return errand.plan.bounds[data.bound].path

        return carrying.Site(view.TMP, tmp, True, folder, seen, self._enter_group, wrap)

    def _pull(self, steps: Steps) -> Exit | None:
        """Fetch the image unless it is here; what the engine says meanwhile is in the replica's log."""
        image = self._errand.place.role.image
        if self._engine.has_image(image):
            return None
        argv = _resolved(self._engine.pull(image, self._login()))
        return steps.run(Step(Cause.IMAGE, command.Command(argv, dict(os.environ), "/"), image))

    def _fetch(self, steps: Steps) -> Exit | None:
        """Everything that git fetches: on this machine, which has one, in a view like a plain process's."""
        errand = self._errand
        mode = Isolation(errand.plan.house.isolation)
        for index, code in enumerate(errand.plan.codes):
            if code.git:
                trouble = _fetch_one(errand, index, mode, steps, self._enter_group)
                fault("wrapper.fetched")
                if trouble is not None:
                    return trouble
                self.commit = self.commit or git.commit_in(str(laying.own_folder(errand, code.bound)))
        return None

    def _enter_group(self) -> None:
        if self.group:
            self.group.enter()

    def _install(self, steps: Steps) -> Exit | None:
        """The Python packages that the job asks for, in a container like its own."""
        packages = self._errand.plan.packages
        if packages is None:
            return None
        self._current = setup_name(self._errand.plan, self._errand.place)
        cache = carrying.environments(self._errand, viewed=True)
        arguments = tuple(pip.arguments(packages, view.WORK, cache))
        folders = {carrying.CACHE: carrying.cache(self._errand)} if cache else {}
        program = self._run(self._current, arguments, pip.configuration(), folders)
        trouble = steps.run(Step.of_packages(packages, program, self.enter))
        self._engine.remove(self._current)
        self._current = self._name
        fault("wrapper.installed")
        return trouble

    def _run(
        self,
        name: str,
        arguments: tuple[str, ...],
        more: Mapping[str, str],
        besides: Mapping[str, str] = MappingProxyType({}),
    ) -> command.Command:
        """A container of the job; with `arguments` for a shell, not its command, and folders `besides`."""
        errand, role = self._errand, self._errand.place.role
        room = errand.room()
        folders = {view.WORK: str(errand.file("work")), **self._mounts(), **besides}
        if room.peers:
            folders[f"{room.peers}:ro"] = str(errand.path / layout.PEERS)
        env = {**more, **errand.environment(room)}
        inherited = engine.write_env(self._env_file, env)
        box = engine.Box(
            name=name,
            image=role.image,
            command=role.command,
            folders=folders,
            work=view.WORK,
            owner=errand.owner if os.geteuid() == 0 else None,
            groups=f"{self._groups}/{self._name}" if self._groups else "",
            cpu_milli=role.cpu_milli,
            memory_mib=role.memory_mib,
            shm_mib=role.shm_mib,
            pids=errand.plan.house.pids,
            open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
            processes=_PROCESSES,
            gpus=errand.place.slot.gpus if errand.plan.house.gpu_devices else (),
            memory={
                one.path: one.size_mib or role.memory_mib
                for one in errand.plan.bounds
                if one.kind is Kind.MEMORY
            },
            arguments=arguments,
        )
        argv = _resolved(self._engine.run(box, self._env_file, inherited))
        own = {**os.environ, **{name: env[name] for name in inherited}}
        return command.Command(argv, own, "/")

    def command(self) -> command.Command:
        """The engine's command, which stays as long as the container does."""
        return self._run(self._name, (), {})

    def enter(self) -> None:
        """The engine sees to the limits; what it is to mount is put where it finds it."""
        if self._staged:
            stage.take(self._stage, self._staged, self._errand.owner)

    def _mounts(self) -> dict[str, str]:
        """Folders of this machine and of the attempt, by the places where the container has them."""
        pairs = list(enumerate(self._errand.plan.bounds))
        found = {index: bound.source for index, bound in pairs if bound.on_this_machine}
        found |= {
            index: str(laying.own_folder(self._errand, index))
            for index, bound in pairs
            if bound.kind is Kind.EMPTY
        }
        found |= stage.places(self._stage, self._staged)
        bounds = self._errand.plan.bounds
        return {
            f"{bounds[index].path}{':ro' if bounds[index].read_only else ''}": path
            for index, path in found.items()
        }

    def out_of_memory(self) -> bool:
        """By the engine's word, where the limits are its own."""
        return self.group is None and self._engine.ran_out_of_memory(self._name)

    def clean(self, *, failed: bool) -> None:
        """Remove the container, unless a failed one is to be kept."""
        if not (failed and self._errand.plan.keep_failed_s):
            self._engine.remove(self._name)

    def _login(self) -> Path | None:
        login = self._errand.registry
        if not login:
            return None
        path = self._errand.file("replicas") / layout.LOGIN
        engine.write_login(path, login["registry"], login["username"], login["password"])
        return path


def _fetch_one(
    errand: Errand, index: int, mode: Isolation, steps: Steps, enter: Callable[[], None]
) -> Exit | None:
    code = errand.plan.codes[index]
    bound = errand.plan.bounds[code.bound]
    tmp, path = str(errand.file("tmp")), errand.plan.house.path

    def seen(code: Code) -> str:
        return str(laying.own_folder(errand, code.bound))

    if mode is Isolation.NONE:
        site = fetching.Site(
            *(tmp, str(errand.path), path, seen, seen, enter),
            guard=lambda code: carrying.guard(errand, code, viewed=False),
        )
        return fetching.fetch(errand, index, code.uri or code.folder, site, steps)

    def take() -> None:
        folder = os.open(seen(code), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        tools = carrying.laid(errand, with_site=False)
        laid = (view.Laid(bound.path, folder), *fetching.sources(errand), *tools)
        view.take(housing.view_of(errand, mode, laid))

    def wrap(program: command.Command) -> command.Command:
        return replace(program, argv=(), owner=None, instead=lambda: lodge.run(mode, take, program))

    site = fetching.Site(
        *(view.TMP, view.HOUSE, path, lambda _: bound.path, seen, enter, wrap),
        guard=lambda code: carrying.guard(errand, code, viewed=True),
    )
    return fetching.fetch(errand, index, code.uri or fetching.source_place(index), site, steps)


def _resolved(argv: list[str]) -> list[str]:
    """The program by its path: exec does not look for it."""
    for folder in os.get_exec_path():
        path = Path(folder, argv[0])
        if path.is_file() and os.access(path, os.X_OK):
            return [str(path), *argv[1:]]
    return argv
