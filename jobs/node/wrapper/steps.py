"""What is done for a replica before its command: one program after the other, seen through to its end.

None of it counts as the start of the command.  Whoever is killed in between leaves nothing that the next
wrapper does not clear away first, and it begins again.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from jobs.node.command import CannotStart, Command, Streams, start
from jobs.node.measure import Patience
from jobs.node.staging import pip
from jobs.node.staging.provisions import Packages
from jobs.node.wrapper import cgroups
from jobs.node.wrapper.errand import Errand
from jobs.node.wrapper.keeper import Keeper
from jobs.node.wrapper.log_writer import LogWriter
from jobs.node.wrapper.outcome import Cause, Exit, code_of, now

_SHOWN_BYTES: Final = 1000


@dataclass(frozen=True, slots=True)
class Step:
    """One program.  `cause` is what its failure is called, `about` what it is told to be about; `inside` is
    called in the child that runs it.
    """

    cause: Cause
    command: Command
    about: str
    inside: Callable[[], None] = lambda: None
    patience: Patience | None = None

    def begin(self) -> None:
        """Called in the child; no single file grows beyond what all of them may be."""
        self.inside()
        if self.patience and self.patience.most:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.patience.most, self.patience.most))

    @classmethod
    def of_packages(cls, packages: Packages, command: Command, inside: Callable[[], None]) -> Self:
        """The one that installs Python packages."""
        patience = Patience(packages.patience_s, "", 0)
        return cls(Cause.PACKAGES, command, pip.about(packages), inside, patience)


class Steps:
    """Runs the steps of one replica; what they write is in its log.

    The kernel holds the limits of the steps that enter its groups; while `watched` the watchdog does, which
    needs a /proc with nothing but the replica.
    """

    def __init__(self, errand: Errand, log: LogWriter, keeper: Keeper, group: cgroups.Group | None) -> None:
        self._errand, self._log, self._keeper, self._group = errand, log, keeper, group
        self.watched = False

    def run(self, step: Step) -> Exit | None:
        """See the step through; an Exit when the replica has thereby ended."""
        self._errand.tell({"step": step.cause, "about": step.about})
        before = self._log.size()
        limit = self._errand.place.role.memory_mib << 20 if self.watched else None
        try:
            main = start(step.command, Streams.into(self._log.stream), step.begin)
        except CannotStart as error:
            return now(step.cause, detail=str(error))
        enough = step.patience.spent if step.patience else None
        finished = self._keeper.see_through(main, self._group, limit, enough)
        code, number = code_of(finished.status)
        if finished.told:
            return now(Cause.NOT_STARTED)
        if finished.out_of_memory:
            return now(Cause.MEMORY, code=code, signal=number)
        if step.patience and (finished.had_enough or step.patience.went_too_far(code)):
            return now(step.cause, detail=step.patience.words)
        if code == 0:
            return None
        return now(step.cause, code=code, signal=number, detail=self._said(before))

    def _said(self, since: int) -> str:
        """The end of what it wrote.  By the attempt's folder as it was opened: its path may be gone."""
        with self._errand.folder.sub("logs") as logs:
            fd = os.open(f"{self._errand.place.name}.output", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=logs.fd)
        try:
            size = os.fstat(fd).st_size
            begin = max(since, size - _SHOWN_BYTES)
            text = os.pread(fd, size - begin, begin).decode(errors="replace")
            return (text if begin == since else text.partition("\n")[2] or text).strip()
        finally:
            os.close(fd)
