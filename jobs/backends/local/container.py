"""A replica in a container of the machine's engine."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

from jobs.backends.local import cgroups, command, engine, kernel, laying, layout, stage, trees, view
from jobs.backends.local.errand import Errand, group_name
from jobs.backends.local.housing import limits, own_folder
from jobs.backends.local.keeper import Keeper
from jobs.backends.local.outcome import Cause, Exit, code_of, now
from jobs.backends.local.provisions import Bound, Kind
from jobs.backends.local.trees import Tree

_PROCESSES: Final = 32_768
_SHOWN_BYTES: Final = 1000


class Container:
    """A container of the machine's engine."""

    image_used: bool | None = True

    def __init__(self, errand: Errand, output: int) -> None:
        self._errand, self._output = errand, output
        self._engine = engine.Engine(errand.plan.house.engine)
        self._name = group_name(errand.plan, errand.place)
        self._env_file = errand.file("replicas") / layout.ENV
        self._groups = cgroups.from_the_top() if self._engine.podman else ""
        self.group = limits(errand) if self._groups else None
        self.tree: Tree = trees.Contained(lambda: self._engine.first_process(self._name))
        self._stage = errand.file("stage")
        self._staged: dict[int, Bound] = {}
        if stage.works_for(errand.plan.house.engine):
            self._staged = {i: one for i, one in enumerate(errand.plan.bounds) if one.on_this_machine}
        kernel.become_subreaper()

    def prepare(self, keeper: Keeper) -> Exit | None:
        """Fetch the image unless it is here; what the engine says meanwhile is in the replica's log."""
        image = self._errand.place.role.image
        own_folder(self._errand, "work")
        laying.close(laying.opened(self._errand))
        if self._engine.has_image(image):
            return None
        before = os.lseek(self._output, 0, os.SEEK_END)
        fetch = command.Command(_resolved(self._engine.pull(image, self._login())), dict(os.environ), "/")
        finished = keeper.see_through(command.start(fetch, command.Streams.into(self._output), lambda: None))
        if finished.told:
            return now(Cause.NOT_STARTED)
        code, number = code_of(finished.status)
        if code == 0:
            return None
        said = self._errand.file("logs", ".output").read_bytes()[before:][-_SHOWN_BYTES:]
        return now(Cause.IMAGE, code=code, signal=number, detail=said.decode(errors="replace").strip())

    def command(self) -> command.Command:
        """The engine's command, which stays as long as the container does."""
        errand, role = self._errand, self._errand.place.role
        room = errand.room()
        folders = {view.WORK: str(errand.file("work")), **self._mounts()}
        if room.peers:
            folders[f"{room.peers}:ro"] = str(errand.path / layout.PEERS)
        env = errand.environment(room)
        inherited = engine.write_env(self._env_file, env)
        box = engine.Box(
            name=self._name,
            image=role.image,
            command=role.command,
            folders=folders,
            work=view.WORK,
            owner=(errand.plan.uid, errand.plan.gid) if os.geteuid() == 0 else None,
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
        )
        argv = _resolved(self._engine.run(box, self._env_file, inherited))
        own = {**os.environ, **{name: env[name] for name in inherited}}
        return command.Command(argv, own, "/")

    def enter(self) -> None:
        """The engine sees to the limits; what it is to mount is put where it finds it."""
        if self._staged:
            owner = (self._errand.plan.uid, self._errand.plan.gid)
            stage.take(self._stage, self._staged, owner)

    def _mounts(self) -> dict[str, str]:
        """Folders of this machine and of the attempt, by the places where the container has them."""
        pairs = list(enumerate(self._errand.plan.bounds))
        found = {index: bound.source for index, bound in pairs if bound.on_this_machine}
        found |= {
            index: str(laying.empty_folder(self._errand, index))
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


def _resolved(argv: list[str]) -> list[str]:
    """The program by its path: exec does not look for it."""
    for folder in os.get_exec_path():
        path = Path(folder, argv[0])
        if path.is_file() and os.access(path, os.X_OK):
            return [str(path), *argv[1:]]
    return argv
