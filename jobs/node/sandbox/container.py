"""The runtime of a replica in a container of the machine's engine."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from jobs.faults import fault
from jobs.node import kernel, process_trees
from jobs.node.command import Command, find_program, own_shell
from jobs.node.network import names
from jobs.node.sandbox import bind_mounts, engine, name_files, root_file_system, sandbox_exec
from jobs.node.sandbox.isolation import Isolation
from jobs.node.sandbox.root_file_system import BindMount
from jobs.node.sandbox.runtime import Runtime, limits, make_own_folders, root_of
from jobs.node.staging import code_copy, data_transfer, git_fetch, libraries, mount_paths, pip
from jobs.node.staging.mount_specs import IN_WORK, MountKind
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import ContainerPlan, TensorBoardPlan
from jobs.node.wrapper import cgroups, environment, tensorboard
from jobs.node.wrapper.companions import Companion
from jobs.node.wrapper.environment import ReplicaPaths
from jobs.node.wrapper.launch_arguments import LaunchArguments, companion_name, group_name, setup_name
from jobs.node.wrapper.log_writer import LogWriter
from jobs.node.wrapper.outcome import Cause, Exit
from jobs.node.wrapper.process_reaper import ProcessReaper
from jobs.node.wrapper.steps import StagingSite, StagingStep, StepRunner


@dataclass(frozen=True, slots=True)
class _Box:
    """A container of the replica, as far as it may differ from the others, in the control group `group`.

    With `arguments`, a shell script and what follows it, those are run instead of the command; with an
    `entrypoint` that and its arguments, or the image's own for an empty one.
    """

    name: str
    group: str
    image: str
    command: str
    cpu_milli: int
    memory_mib: int
    gpus: tuple[int, ...]
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] | None = None
    work: str = mount_paths.WORK


class ContainerRuntime(Runtime):
    """A container of the machine's engine."""

    image_used = True

    def __init__(self, launch: LaunchArguments, log: LogWriter) -> None:
        self._engine = engine.Engine(launch.plan.house.engine)
        self._groups = cgroups.from_the_top() if self._engine.podman else ""
        super().__init__(launch, log)
        self._limit(limits(launch) if self._groups else None)
        self._name = self._current = group_name(launch.plan, launch.place)
        self.tree = process_trees.Contained(lambda: self._engine.first_process(self._current))
        self.site = self._make_site()
        self._opened_for_engine = launch.file("stage")
        bounds = enumerate(launch.plan.bounds) if bind_mounts.works_for(launch.plan.house.engine) else ()
        self._opened = {index: bound for index, bound in bounds if bound.on_this_machine}
        kernel.become_subreaper()

    def prepare(self, reaper: ProcessReaper) -> Exit | None:
        """Make the replica's folders, fill them, pull images, install packages, and run init containers."""
        steps = self._step_runner(reaper)
        trouble = None if self._ended else self._fill_folders(steps)
        trouble = trouble or self._stage_in(steps) or self._pull_all(steps)
        if not self._ended:
            trouble = trouble or self._install(steps)
        return trouble or self._run_init_containers(steps)

    def _fill_folders(self, steps: StepRunner) -> Exit | None:
        make_own_folders(self._launch)
        root_file_system.close(bind_mounts.open_all(self._launch))
        return code_copy.copy_all(self._launch, steps)

    def _make_site(self) -> StagingSite:
        """Return the site: this machine, in a root file system like a plain process's."""
        launch, bounds = self._launch, self._launch.plan.bounds
        mode, tmp = Isolation(launch.plan.house.isolation), str(launch.file("tmp"))

        def folder(bound: int) -> str:
            return str(bind_mounts.own_folder(launch, bound))

        if mode is Isolation.NONE:
            return StagingSite(launch, False, tmp, tmp, folder, folder, self._enter_group)

        def enter() -> None:
            filled = {code.bound for code in launch.plan.codes if code.bound != IN_WORK}
            filled |= {data.bound for data in launch.plan.datas}
            folders = (
                BindMount(bounds[bound].path, bind_mounts.open_folder(folder(bound)))
                for bound in sorted(filled)
                if bounds[bound].kind is not MountKind.INNER
            )
            mounts = (*folders, *git_fetch.mounts(launch), *data_transfer.mounts(launch))
            root_file_system.enter(root_of(launch, mounts))

        def wrap(program: Command) -> Command:
            return replace(
                program, argv=(), owner=None, instead=lambda: sandbox_exec.run(mode, enter, program)
            )

        return StagingSite(
            *(
                launch,
                True,
                mount_paths.TMP,
                tmp,
                lambda bound: bounds[bound].path,
                folder,
                self._enter_group,
                wrap,
            )
        )

    def _pull_all(self, steps: StepRunner) -> Exit | None:
        """Pull the images of all containers of the replica."""
        role = self._launch.place.role
        others = (each.image for each in (*role.init_containers, *role.sidecars) if each.image)
        for image in dict.fromkeys((role.image, *others)):
            if (trouble := self._pull(image, steps)) is not None:
                return trouble
        return None

    def _pull(self, image: str, steps: StepRunner) -> Exit | None:
        """Pull an image unless it is here; the engine's output goes to the replica's log."""
        if self._engine.has_image(image):
            return None
        argv = self._engine.pull(image, self._login())
        argv[0] = find_program(argv[0], os.environ)
        return steps.run(StagingStep(Cause.IMAGE, Command(argv, dict(os.environ), "/"), image))

    def _login(self) -> Path | None:
        login = self._launch.registry
        if not login:
            return None
        path = self._launch.file("replicas") / layout.LOGIN
        engine.write_login(path, login["registry"], login["username"], login["password"])
        return path

    def _install(self, steps: StepRunner) -> Exit | None:
        """Install the job's Python packages, in a container like its own."""
        packages = self._launch.plan.packages
        if packages is None:
            return None
        self._current = setup_name(self._launch.plan, self._launch.place)
        store = libraries.store(self._launch)
        folders = {libraries.FOLDER: store} if store else {}
        arguments = tuple(pip.arguments(packages, mount_paths.WORK, *folders, copies=True))
        configuration = {**pip.configuration(), **self._launch.environment(self._launch.room())}
        box = replace(
            self._own_box(), name=self._current, arguments=arguments, env=configuration, folders=folders
        )
        program = self._run(box)
        trouble = steps.run(StagingStep.of_packages(packages, program, self.enter))
        self._engine.remove(self._current)
        self._current = self._name
        fault("wrapper.installed")
        return trouble

    def _run_init_container(self, container: ContainerPlan, steps: StepRunner) -> Exit | None:
        box = self._box_of(container)
        self._current = box.name
        step = StagingStep(Cause.INIT, self._run(box), container.name, self.enter, container=container.name)
        trouble = steps.run(step)
        self._engine.remove(box.name)
        self._current = self._name
        return trouble

    def sidecars(self) -> Iterator[Companion]:
        """Yield the role's sidecars, each a container in the limits and the network of the replica."""
        for each in self._launch.place.role.sidecars:
            box = self._box_of(each)
            remove = partial(self._engine.remove, box.name)
            yield Companion(each.name, self._run(box), self.enter, remove, is_sidecar=True)

    def _box_of(self, container: ContainerPlan) -> _Box:
        """Return an init container or a sidecar; without an image of its own it has the role's."""
        own = self._own_box(container.name)
        return replace(
            own,
            group=self._name,
            image=container.image or own.image,
            entrypoint=container.command,
            arguments=container.args,
            env=self._launch.container_environment(container, self._launch.room()),
            work=container.folder,
            gpus=(),
        )

    def companions(self) -> Iterator[Companion]:
        """Yield TensorBoard: the image's own, or else the console's.

        Docker's containers are no descendants of this process, by which a port is known for the replica's.
        """
        if self._board is None:
            return
        console = self._console_tensorboard(viewed=True) if self.site.viewed else []
        image = self._launch.place.role.image
        if console and not (self._engine.podman and self._engine.has_program(image, tensorboard.NAME)):
            yield self._tensorboard_of_console(self._board, console)
            return
        box = replace(
            self._own_box(tensorboard.NAME),
            arguments=(self._board.command, tensorboard.NAME),
            env=environment.companion_variables(tensorboard.NAME),
            cpu_milli=tensorboard.CPU_MILLI,
            memory_mib=tensorboard.MEMORY_MIB,
            gpus=(),
        )
        yield Companion(
            tensorboard.NAME, self._run(box), self.enter, end=lambda: self._engine.remove(box.name)
        )

    def _tensorboard_of_console(self, board: TensorBoardPlan, console: Sequence[str]) -> Companion:
        """Return the console's TensorBoard, in a root file system like a plain process's."""
        launch, room = self._launch, ReplicaPaths(mount_paths.WORK, mount_paths.TMP)

        def enter() -> None:
            root_file_system.enter(
                root_of(launch, (*bind_mounts.open_folders(launch), *data_transfer.tool_mounts(launch)))
            )

        argv = [own_shell(), "-c", board.command, tensorboard.NAME, *console]
        env = {**launch.environment(room), **environment.companion_variables(tensorboard.NAME)}
        program = Command(argv, env, room.work, launch.owner)
        mode = Isolation(launch.plan.house.isolation)
        outside = replace(
            program,
            argv=(),
            folder="/",
            owner=None,
            instead=lambda: sandbox_exec.run(mode, enter, program),
        )
        return Companion(tensorboard.NAME, outside, self._enter_beside)

    def _own_box(self, companion: str = "") -> _Box:
        """Return a container like the replica's own, of that name."""
        launch, role = self._launch, self._launch.place.role
        name = companion_name(launch.plan, launch.place, companion) if companion else self._name
        gpus = launch.place.slot.gpus if launch.plan.house.gpu_devices else ()
        return _Box(name, name, role.image, role.command, role.cpu_milli, role.memory_mib, gpus)

    def _run(self, own: _Box) -> Command:
        """Return what runs a container of the job."""
        launch, role = self._launch, self._launch.place.role
        room = launch.room()
        folders = {mount_paths.WORK: str(launch.file("work")), **self._mounts(), **own.folders}
        folders |= name_files.container_volumes(launch)
        if room.peers:
            folders[f"{room.peers}:ro"] = str(launch.path / layout.PEERS)
        env = {**launch.environment(room), **own.env}
        env_file = launch.file("replicas") / layout.ENV
        if own.name not in (self._name, self._current):
            env_file = env_file.with_name(f"{layout.ENV}.{own.name}")
        inherited = engine.write_env(env_file, env)
        box = engine.ContainerSpec(
            name=own.name,
            image=own.image,
            command=own.command,
            folders=folders,
            work=own.work,
            owner=launch.owner if os.geteuid() == 0 else None,
            groups=f"{self._groups}/{own.group}" if self._groups else "",
            cpu_milli=own.cpu_milli,
            memory_mib=own.memory_mib,
            shm_mib=role.shm_mib,
            pids=launch.plan.house.pids,
            open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
            cores=launch.place.slot.cores,
            gpus=own.gpus,
            memory={
                one.path: one.size_mib or role.memory_mib
                for one in launch.plan.bounds
                if one.kind is MountKind.MEMORY
            },
            arguments=own.arguments,
            entrypoint=own.entrypoint,
            network=f"ns:/proc/{os.getpid()}/fd/{self.network}" if self.network is not None else "host",
            host_name=names.host_name(launch.plan, launch.place) if launch.plan.network else "",
        )
        argv = self._engine.run(box, env_file, inherited)
        argv[0] = find_program(argv[0], os.environ)
        return Command(argv, {**os.environ, **{name: env[name] for name in inherited}}, "/")

    def command(self) -> Command:
        """Return the engine's command, which stays as long as the container does."""
        return self._run(self._own_box())

    def enter(self) -> None:
        """Put opened mounts where the engine finds them; it enforces the limits itself.

        Podman's containers have the cores of what started them, Docker's those that its options name.
        """
        self._launch.pin_to_cores()
        if self._opened:
            bind_mounts.enter_engine_namespace(self._opened_for_engine, self._opened, self._launch.owner)

    def _mounts(self) -> dict[str, str]:
        """Return folders of this machine and of the attempt, by their paths in the container."""
        opened = bind_mounts.paths_for_engine(self._opened_for_engine, self._opened)
        mounts = {}
        for index, bound in enumerate(self._launch.plan.bounds):
            path = opened.get(index) or bound.source
            if bound.kind is MountKind.EMPTY:
                path = str(bind_mounts.own_folder(self._launch, index))
            if path:
                mounts[f"{bound.path}{':ro' if bound.read_only else ''}"] = path
        return mounts

    def out_of_memory(self) -> bool:
        """Ask the engine, where it enforces the limits."""
        return self.group is None and self._engine.ran_out_of_memory(self._name)

    def clean(self, *, failed: bool) -> None:
        """Remove the container, unless a failed one is to be kept."""
        if not (failed and self._launch.plan.keep_failed_s):
            self._engine.remove(self._name)
