"""Steps before a replica's command: one program after the other, each run to its end.

None of them counts as the start of the command.  A wrapper that is killed in between leaves nothing that the
next one does not remove first; that one begins again.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from jobs.node.command import CannotStart, Command, Streams, start
from jobs.node.measure import StepBudget
from jobs.node.staging import pip
from jobs.node.staging.mount_specs import PackageSpec
from jobs.node.wrapper import cgroups
from jobs.node.wrapper.companions import Companions
from jobs.node.wrapper.launch_arguments import LaunchArguments
from jobs.node.wrapper.log_writer import LogWriter
from jobs.node.wrapper.named_output import NamedOutputs, prefix
from jobs.node.wrapper.outcome import Cause, Exit, code_of, now
from jobs.node.wrapper.process_reaper import ProcessReaper

_SHOWN_BYTES: Final = 1000


@dataclass(frozen=True, slots=True)
class StagingSite:
    """How staging programs of a replica are run, and the paths that they see.

    `viewed` says whether they have a root file system of their own.  `tmp` is the replica's temporary folder
    as they find it and `real_tmp` as this process does; `folder` is the path of a mount, by its number, as
    they find it and `seen` as this process does.  `inside` is called in the child that runs one; `wrap` makes
    of a command one that runs there.
    """

    launch: LaunchArguments
    viewed: bool
    tmp: str
    real_tmp: str
    folder: Callable[[int], str]
    seen: Callable[[int], str]
    inside: Callable[[], None]
    wrap: Callable[[Command], Command] = lambda command: command

    def environment(self) -> dict[str, str]:
        """Return the variables that every staging program gets."""
        own = {"HOME": self.tmp, "TMPDIR": self.tmp, "PATH": self.launch.plan.house.path, "LANG": "C.UTF-8"}
        return {**own, **self.launch.mark_variables()}

    @contextlib.contextmanager
    def private_file(self, name: str, text: str) -> Iterator[str]:
        """Have a file in the temporary folder that only the job's user can read; its path for a program."""
        path = Path(self.real_tmp, name)
        path.unlink(missing_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            if os.geteuid() == 0:
                os.fchown(fd, *self.launch.owner)
        try:
            yield f"{self.tmp}/{name}"
        finally:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class StagingStep:
    """One program.  `cause` names its failure, and `about` its subject for people.

    `inside` is called in the child; `patience` bounds its time and the size of what it makes.  The output of
    a `container` is in the log behind its name.
    """

    cause: Cause
    command: Command
    about: str
    inside: Callable[[], None] = lambda: None
    patience: StepBudget | None = None
    container: str = ""

    def begin(self) -> None:
        """Prepare the child that runs it; no single file grows beyond what all of them may be."""
        self.inside()
        if self.patience and self.patience.most:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.patience.most, self.patience.most))

    @classmethod
    def of_packages(cls, packages: PackageSpec, command: Command, inside: Callable[[], None]) -> Self:
        """Return the step that installs Python packages."""
        patience = StepBudget(packages.patience_s, "", 0)
        return cls(Cause.PACKAGES, command, pip.about(packages), inside, patience)


class StepRunner:
    """Runs the steps of one replica; their output is in its log.

    The kernel enforces the limits of the steps that enter its groups; while `has_watchdog` the watchdog does,
    which needs a /proc with nothing but the replica.
    """

    def __init__(
        self,
        launch: LaunchArguments,
        log: LogWriter,
        reaper: ProcessReaper,
        group: cgroups.ControlGroup | None,
    ) -> None:
        self._launch, self._log, self._reaper, self._group = launch, log, reaper, group
        self.has_watchdog = False

    def run(self, step: StagingStep) -> Exit | None:
        """Run a step to its end; return an Exit when the replica has thereby ended."""
        self._launch.tell({"step": step.cause, "about": step.about})
        before = self._log.size()
        limit = self._launch.place.role.memory_mib << 20 if self.has_watchdog else None
        outputs = NamedOutputs(self._log, self._launch.owner)
        stream = outputs.open(step.container) if step.container else os.dup(self._log.stream)
        try:
            main = start(step.command, Streams.into(stream), step.begin)
        except CannotStart as error:
            return now(step.cause, detail=str(error), container=step.container)
        finally:
            os.close(stream)
        enough = step.patience.is_spent if step.patience else None
        finished = self._reaper.see_through(main, self._group, limit, enough, Companions(outputs))
        code, number = code_of(finished.status)
        if finished.told:
            return now(Cause.NOT_STARTED)
        if finished.out_of_memory:
            return now(Cause.MEMORY, code=code, signal=number)
        if step.patience and (finished.had_enough or step.patience.went_too_far(code)):
            return now(step.cause, detail=step.patience.words)
        if code == 0:
            return None
        detail = self._last_output(before).replace(prefix(step.container), "")
        return now(step.cause, code=code, signal=number, detail=detail, container=step.container)

    def _last_output(self, since: int) -> str:
        """Return the end of what it wrote.  By the attempt's opened folder: its path may be gone."""
        with self._launch.folder.sub("logs") as logs:
            fd = os.open(f"{self._launch.place.name}.output", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=logs.fd)
        try:
            size = os.fstat(fd).st_size
            begin = max(since, size - _SHOWN_BYTES)
            text = os.pread(fd, size - begin, begin).decode(errors="replace")
            return (text if begin == since else text.partition("\n")[2] or text).strip()
        finally:
            os.close(fd)
