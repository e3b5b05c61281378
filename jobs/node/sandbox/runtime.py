"""Runtimes of a replica: plain processes with a root file system of their own, or a container."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobs.faults import fault
from jobs.node import command, folder_removal, kernel, process_trees
from jobs.node.command import Command
from jobs.node.network.replica_network import ReplicaNetwork
from jobs.node.process_trees import Tree
from jobs.node.sandbox import bind_mounts, gpu_devices, name_files, role_credentials, root_file_system
from jobs.node.sandbox.isolation import Isolation
from jobs.node.sandbox.root_file_system import BindMount, RootFileSystem
from jobs.node.staging import code_copy, data_transfer, git, git_fetch, libraries, mount_paths, pip
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import ContainerPlan
from jobs.node.wrapper import attempt_files, cgroups, environment, init_containers, tensorboard
from jobs.node.wrapper.companions import Companion
from jobs.node.wrapper.launch_arguments import LaunchArguments, companion_name, group_name
from jobs.node.wrapper.log_writer import LogWriter
from jobs.node.wrapper.outcome import Cause, Exit
from jobs.node.wrapper.process_reaper import ProcessReaper
from jobs.node.wrapper.steps import StagingSite, StagingStep, StepRunner


class Runtime:
    """Prepares a replica and says how its command is run; `tree` are its processes, `group` its limits.

    `network` is a descriptor of its network namespace, None in the host's.  `site` is where its staging
    programs run, once that is known.
    """

    tree: Tree
    site: StagingSite
    image_used: bool | None = None

    def __init__(self, launch: LaunchArguments, log: LogWriter) -> None:
        self._launch, self._log = launch, log
        self.group: cgroups.ControlGroup | None = None
        self.network: int | None = None
        self._board = launch.tensorboard
        self._board_group: cgroups.ControlGroup | None = None
        self._viewed = Isolation(launch.plan.house.isolation) is not Isolation.NONE
        self.commit = ""
        self._held: list[int] = []
        self._ended = init_containers.count_ended(launch)

    def link_network(self) -> None:
        """Make the replica's network, if it has one, and link it to the attempt's.

        For its only preparing wrapper; that of a plain process is in the router's user namespace already.
        """
        launch, router = self._launch, self._launch.router
        if router is not None and launch.plan.network is not None:
            made = ReplicaNetwork.make(router if launch.contained else router._replace(user=None))
            made.link(launch.plan.network, launch.place.position)
            self.network = made.fd

    def prepare(self, reaper: ProcessReaper) -> Exit | None:
        """Prepare everything before the command counts as started; an Exit when that failed for good."""
        raise NotImplementedError

    def command(self) -> Command:
        """Return the command of the replica."""
        raise NotImplementedError

    def enter(self) -> None:
        """Set up the child that will run the command."""
        raise NotImplementedError

    def sidecars(self) -> Iterator[Companion]:
        """Yield the job's own companions of the command, which start before it."""
        raise NotImplementedError

    def companions(self) -> Iterator[Companion]:
        """Yield what else runs beside the command."""
        raise NotImplementedError

    def out_of_memory(self) -> bool:
        """Tell whether the runtime itself reports an end by want of memory."""
        return False

    def clean(self, *, failed: bool) -> None:
        """Remove what the replica does not need after its end; folders stay until the attempt is removed."""

    def stage_out(self, reaper: ProcessReaper) -> Exit | None:
        """Store what is new in the replica's mounts, once nothing of it runs."""
        return data_transfer.stage_out(self.site, self._step_runner(reaper))

    def dump(self) -> tuple[dict[str, Any], list[int]]:
        """Return what `prepare` found out, as JSON, and what it opened for the command."""
        network = [] if self.network is None else [self.network]
        groups = [group for group in (self.group, self._board_group) if group]
        limits = [[len(each.files), each.v2] for each in groups]
        files = [*network, *(fd for group in groups for fd in group.files), *self._held]
        return {"commit": self.commit, "network": bool(network), "groups": limits}, files

    def load(self, state: Mapping[str, Any], files: Sequence[int]) -> None:
        """Go on from what another process's `dump` returned, in the file system that it has prepared."""
        self.commit = state["commit"]
        groups, rest = [], list(files)
        self.network = rest.pop(0) if state["network"] else None
        for count, v2 in state["groups"]:
            groups.append(cgroups.ControlGroup(rest[:count], v2=v2))
            del rest[:count]
        self.group, self._board_group = [*groups, None, None][:2]
        self._held = rest

    def _step_runner(self, reaper: ProcessReaper) -> StepRunner:
        return StepRunner(self._launch, self._log, reaper, self.group)

    def _stage_in(self, steps: StepRunner) -> Exit | None:
        """Fetch code with git, and data, unless an earlier wrapper has done so."""
        for index, code in enumerate(self._launch.plan.codes):
            if code.git:
                trouble = None if self._ended else git_fetch.fetch(self.site, index, steps)
                fault("wrapper.fetched")
                if trouble is not None:
                    return trouble
                self.commit = self.commit or git.commit_in(self.site.seen(code.bound))
        return None if self._ended else data_transfer.stage_in(self.site, steps)

    def _run_init_containers(self, steps: StepRunner) -> Exit | None:
        """Run those that no earlier wrapper has run to their end, in their order."""
        for number, container in enumerate(self._launch.place.role.init_containers):
            if number < self._ended:
                continue
            if (trouble := self._run_init_container(container, steps)) is not None:
                return trouble
            init_containers.note_end(self._launch, number)
            fault("wrapper.init_ended")
        return None

    def _run_init_container(self, container: ContainerPlan, steps: StepRunner) -> Exit | None:
        raise NotImplementedError

    def _enter_network(self) -> None:
        """Move the calling child into the replica's network; into the host's where that is the replica's."""
        if self.network is not None:
            kernel.join(self.network, kernel.CLONE_NEWNET)

    def _limit(self, group: cgroups.ControlGroup | None) -> None:
        """Hold the replica in a group, and TensorBoard in another one."""
        self.group = group
        self._board_group = tensorboard_limits(self._launch) if self._board and group else None

    def _enter_group(self) -> None:
        if self.group:
            self.group.enter()

    def _enter_beside(self) -> None:
        """Enter TensorBoard's limits and the replica's network."""
        if self._board_group:
            self._board_group.enter()
        self._enter_network()

    def _console_tensorboard(self, *, viewed: bool) -> list[str]:
        """Return the command of the console's own TensorBoard; none where it has none."""
        if self._board is None or not self._board.has_own:
            return []
        program = data_transfer.python(self._launch, viewed=viewed)
        return [*program, "-c", tensorboard.RUN_OWN, data_transfer.libraries(self._launch, viewed=viewed)]


def runtime_of(launch: LaunchArguments, log: LogWriter) -> Runtime:
    """Return a container runtime for a role that names an image, where there is an engine."""
    if not launch.contained:
        return PlainRuntime(launch, log)
    from jobs.node.sandbox.container import ContainerRuntime  # noqa: PLC0415 other replicas start without it

    return ContainerRuntime(launch, log)


class PlainRuntime(Runtime):
    """Processes of this machine."""

    def __init__(self, launch: LaunchArguments, log: LogWriter) -> None:
        super().__init__(launch, log)
        self._room = room = launch.room()
        self._owner = launch.owner if self._viewed else None
        self._store = (
            libraries.FOLDER if libraries.store(launch) and self._viewed else libraries.store(launch)
        )
        self.image_used = False if launch.place.role.image else None

        def folder(bound: int) -> str:
            return room.resolve_inside(launch.plan.bounds[bound].path)

        self.site = StagingSite(launch, self._viewed, room.tmp, room.tmp, folder, folder, self._enter_limits)
        if self._viewed:
            self.tree = process_trees.Namespace()
        else:
            self.tree = process_trees.Descendants(launch.sessions)
            kernel.become_subreaper()

    def prepare(self, reaper: ProcessReaper) -> Exit | None:
        """Make the replica's folders, enter its root file system, and fill it."""
        launch = self._launch
        devices = None
        if launch.plan.house.isolation == Isolation.PERSONS:  # in a user namespace they can't be denied
            devices = root_file_system.list_devices(gpu_devices.nodes_of(launch.place.slot.gpus))
        self._limit(limits(launch, devices))
        if not self._ended:
            make_own_folders(launch)
        mounts = bind_mounts.open_all(launch, is_new=not self._ended)
        steps = self._step_runner(reaper)
        trouble = None if self._ended else code_copy.copy_all(launch, steps)
        if trouble is not None or not self._viewed:  # they lie where the job is told already
            root_file_system.close(mounts)
        else:
            more = (
                *git_fetch.mounts(launch),
                *attempt_files.mounts(launch.path),
                *data_transfer.mounts(launch),
                *libraries.mounts(launch),
            )
            root_file_system.enter(root_of(launch, (*mounts, *more)))
        steps.has_watchdog = self.group is None
        trouble = trouble or self._stage_in(steps) or self._protect(steps)
        if launch.plan.network is not None:
            name_files.mount()
        if not self._ended:
            trouble = trouble or self._install(steps)
        if trouble is None and self._viewed:
            data_transfer.hide_cache(launch)
        if trouble is None and self._store:
            self._share_libraries()
        return trouble or self._run_init_containers(steps)

    def _protect(self, steps: StepRunner) -> Exit | None:
        """Let nothing be written to read-only mounts that were filled by now."""
        trouble = None
        for bound in bind_mounts.read_only_data(self._launch.plan):
            if self._viewed:
                kernel.make_read_only(bound.path)
            else:
                trouble = trouble or code_copy.close(
                    self._launch, self._room.resolve_inside(bound.path), steps
                )
        return trouble

    def stage_out(self, reaper: ProcessReaper) -> Exit | None:
        """Store what is new, by the job's user, in the root file system that the command had."""
        self.tree.signal(signal.SIGKILL)
        if self._launch.plan.network is not None:
            name_files.unmount()
        steps = self._step_runner(reaper)
        steps.has_watchdog = self.group is None
        return data_transfer.stage_out(self.site, steps)

    def _install(self, steps: StepRunner) -> Exit | None:
        """Install the job's Python packages, with the environment that its command will have."""
        packages, room = self._launch.plan.packages, self._room
        if packages is None:
            return None
        packages = replace(packages, directory=room.resolve_inside(packages.directory))
        env = {**pip.configuration(), **self._launch.environment(room)}
        argv = [command.own_shell(), "-c", *pip.arguments(packages, room.work, self._store)]
        program = Command(argv, env, room.work, self._owner)
        trouble = steps.run(StagingStep.of_packages(packages, program, self.enter))
        fault("wrapper.installed")
        return trouble

    def _share_libraries(self) -> None:
        """Leave the command nothing of the store but the environment that it uses, and keep that."""
        key = libraries.key_in(self._room.work)
        if key:
            self._held = libraries.hold(self._store, key)
        if self._viewed:
            libraries.show_only(key)

    def command(self) -> Command:
        """Return the role's command line, in a shell."""
        argv = command.shell(self._launch.place.role.command)
        return Command(argv, self._launch.environment(self._room), self._room.work, self._owner)

    def enter(self) -> None:
        """Enter the limits, the replica's cores and its network."""
        self._enter_limits()
        self._launch.pin_to_cores()
        self._enter_network()

    def _run_init_container(self, container: ContainerPlan, steps: StepRunner) -> Exit | None:
        program = self._program_of(container)
        return steps.run(
            StagingStep(Cause.INIT, program, container.name, self.enter, container=container.name)
        )

    def sidecars(self) -> Iterator[Companion]:
        """Yield the role's sidecars, as processes beside the command."""
        for each in self._launch.place.role.sidecars:
            yield Companion(each.name, self._program_of(each), self.enter, is_sidecar=True)

    def _program_of(self, container: ContainerPlan) -> Command:
        env = self._launch.container_environment(container, self._room)
        program, *rest = container.command
        argv = [command.find_program(program, env), *rest, *container.args]
        return Command(argv, env, self._room.resolve_inside(container.folder), self._owner)

    def companions(self) -> Iterator[Companion]:
        """Yield TensorBoard, of the job's own PATH or else the console's."""
        if self._board is None:
            return
        own = self._console_tensorboard(viewed=self._viewed)
        argv = [command.own_shell(), "-c", self._board.command, tensorboard.NAME, *own]
        variables = environment.companion_variables(tensorboard.NAME)
        env = {**self._launch.environment(self._room), **variables}
        program = Command(argv, env, self._room.work, self._owner)
        yield Companion(tensorboard.NAME, program, self._enter_beside, memory_mib=tensorboard.MEMORY_MIB)

    def _enter_limits(self) -> None:
        """Enter the limits, and stay in the host's network, from where code and data are fetched."""
        self._enter_group()
        if self.group is None and self._viewed:  # else the limit would count all processes of the user
            most = self._launch.plan.house.pids
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def root_of(launch: LaunchArguments, mounts: Sequence[BindMount]) -> RootFileSystem:
    """Return the root file system of a plain process of the replica."""
    files = (layout.PEERS, git.CONFIG)
    return RootFileSystem(
        work=str(launch.file("work")),
        tmp=str(launch.file("tmp")),
        shm_mib=launch.place.role.shm_mib,
        hide=launch.plan.house.hide,
        show=launch.plan.house.show,
        files={
            **{f"{mount_paths.CONSOLE_FOLDER}/{name}": str(launch.path / name) for name in files},
            "/etc/passwd": str(launch.path / layout.PASSWD),
            "/etc/group": str(launch.path / layout.GROUP),
            **name_files.sources(launch),
        },
        read_only=launch.plan.house.isolation == Isolation.NAMESPACES,
        mounts=mounts,
        owner=launch.owner,
        devices=gpu_devices.nodes_of(launch.place.slot.gpus),
    )


def limits(launch: LaunchArguments, devices: Sequence[str] | None = None) -> cgroups.ControlGroup | None:
    """Make the replica's control groups, which permit `devices` alone; None where there can be none."""
    role = launch.place.role
    amounts = cgroups.GroupLimits(role.cpu_milli, role.memory_mib, launch.plan.house.pids, devices)
    return _make_group(launch, group_name(launch.plan, launch.place), amounts)


def tensorboard_limits(launch: LaunchArguments) -> cgroups.ControlGroup | None:
    """Make the control groups of TensorBoard beside the replica, which permit no GPU."""
    persons = (
        launch.plan.house.isolation == Isolation.PERSONS and not launch.contained
    )  # the engine denies them
    devices = root_file_system.list_devices(()) if persons else None
    amounts = cgroups.GroupLimits(
        tensorboard.CPU_MILLI, tensorboard.MEMORY_MIB, launch.plan.house.pids, devices
    )
    return _make_group(launch, companion_name(launch.plan, launch.place, tensorboard.NAME), amounts)


def _make_group(
    launch: LaunchArguments, name: str, amounts: cgroups.GroupLimits
) -> cgroups.ControlGroup | None:
    places = cgroups.usable() if launch.plan.house.limits != "watchdog" else None
    return cgroups.ControlGroup.make(places, name, amounts) if places else None


def make_own_folders(launch: LaunchArguments) -> None:
    """Make the folders of the replica, without what an earlier wrapper left in them, and write its name."""
    name_files.write(launch)
    for kind in ("work", "tmp", "empty"):
        folder_removal.remove_folder(launch.file(kind))
    for kind in ("work", "tmp"):
        launch.file(kind).mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(launch.file(kind), *launch.owner)
    role_credentials.write_token(launch)
