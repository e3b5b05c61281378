"""The wrapper of a replica: prepares it, starts its command once, waits for its end and records it.

Where PID namespaces are possible it is the first process of one, so that the kernel ends all of the
replica with it.  There a child prepares the replica: else each wrapper would keep a copy of all that this
touches in the memory that it shares with the fork server.

It may be killed at any instruction: before `started` is written another wrapper takes its place, after that
nobody ever starts the command again.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NoReturn

from jobs.faults import fault, hold_folder
from jobs.node import command, kernel, processes
from jobs.node.files import Folder
from jobs.node.frameworks import registry
from jobs.node.network import names
from jobs.node.processes import Identity
from jobs.node.sandbox import isolation, role_credentials
from jobs.node.sandbox.isolation import Isolation
from jobs.node.sandbox.root_file_system import MountFailed
from jobs.node.sandbox.runtime import runtime_of
from jobs.node.supervisor import layout
from jobs.node.wrapper import preparation_lock
from jobs.node.wrapper.companions import Companions
from jobs.node.wrapper.launch_arguments import LaunchArguments
from jobs.node.wrapper.log_times import LogTimes
from jobs.node.wrapper.log_writer import LogWriter, open_log
from jobs.node.wrapper.named_output import NamedOutputs
from jobs.node.wrapper.outcome import NOT_FOUND, Cause, Exit, code_of, judge, now
from jobs.node.wrapper.process_reaper import Finished, ProcessReaper
from jobs.states import ReplicaState

if TYPE_CHECKING:
    from jobs.node.wrapper.credential_companion import CredentialCompanion

_FULL_S: Final = 1.0
"""The pause between two tries to write to a full disk."""

_LONGEST: Final = 64 * 1024
_MOST_FILES: Final = 64
"""Bytes and descriptors that are handed over once a replica is prepared."""


def start(launch: LaunchArguments, leave: Callable[[], None]) -> int:
    """Start a wrapper; return its pid as this process sees it.  Raises OSError.

    The calling process goes into the new namespaces and has to end at once, so that the wrapper is nobody's
    child but the nearest subreaper's.  `leave` closes what the wrapper must not have.
    """
    if launch.mode is not Isolation.NONE:
        isolation.enter(launch.mode, launch.router.user if launch.router else None)
    if launch.router is not None:
        kernel.unshare(kernel.CLONE_NEWUTS)
        socket.sethostname(names.host_name(launch.plan, launch.place))
    pid = os.fork()
    if pid == 0:
        leave()
        _run(launch)
    return pid


def settle(replica: Folder, cause: Cause, *, detail: str = "") -> bool:
    """End a replica whose command nobody has started; False when somebody has."""
    if not replica.publish(layout.STARTED, {layout.NEVER: True}):
        return False
    replica.write(layout.EXIT, now(cause, detail=detail).dump())
    return True


def _run(launch: LaunchArguments) -> NoReturn:
    try:
        kernel.set_name("jc-wrapper")
        os.setsid()
        _Wrapper(launch).run()
    except BaseException as error:  # noqa: BLE001 nothing may return into the fork server's own code
        traceback.print_exc(file=sys.stderr)
        _give_up(launch, error)
    os._exit(0)


def _give_up(launch: LaunchArguments, error: BaseException) -> NoReturn:
    """Settle a replica that was not started; a started one is noticed by its missing exit file."""
    try:
        settle(launch.folder.sub("replicas").sub(launch.place.name), Cause.START, detail=str(error))
    finally:
        os._exit(1)


def _open_credentials(launch: LaunchArguments) -> CredentialCompanion | None:
    """Open the credential server of a replica that needs one; the others do without its modules."""
    if not role_credentials.needs_server(launch):
        return None
    from jobs.node.wrapper.credential_companion import CredentialCompanion  # noqa: PLC0415 see above

    return CredentialCompanion.open(launch)


@dataclass(frozen=True, slots=True)
class _Claim:
    """The right to start the command, at that time, or the end of a replica that is not started."""

    started_at: float
    trouble: Exit | None


class _Wrapper:
    def __init__(self, launch: LaunchArguments) -> None:
        self._credentials = _open_credentials(launch)
        if self._credentials is not None:
            launch = replace(launch, told={**launch.told, **self._credentials.variables})
        self._launch = launch
        self._replica = launch.folder.sub("replicas").sub(launch.place.name)
        self._log = LogWriter(open_log(launch.log), launch.log_limits, launch.output, LogTimes(launch.log))
        self._runtime = runtime_of(launch, self._log)
        self._reaper = ProcessReaper(self._runtime.tree, launch, self._log)

    def run(self) -> None:
        is_first = self._launch.mode is not Isolation.NONE
        claim = self._claim_in_child() if is_first else self._claim(Identity.mine())
        if claim is None:
            return
        fault("wrapper.claimed")
        exit_ = claim.trouble or self._live(claim.started_at)
        self._log.finish()
        fault("wrapper.logged")
        self._tell_end(exit_)
        fault("wrapper.written")

    def _tell_end(self, exit_: Exit) -> None:
        """Write how it ended; wait for room on a full disk, as nobody else will know.

        The wait has no limit of time: without the file the end would be lost.  It ends when there is room,
        when the attempt's folder is removed, and when the process is killed.
        """
        while True:
            try:
                self._replica.write(layout.EXIT, exit_.dump())
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                time.sleep(_FULL_S)
            else:
                return

    def _claim_in_child(self) -> _Claim | None:
        """Have a child prepare the replica and take the claim, and go on in the root that it made.

        The child ends with this process, which is the first one of a PID namespace; this process ends when
        the child does not answer.
        """
        hold_folder()
        os.chdir("/")  # from here the new root is entered with the child
        kernel.hide_from_peers()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = os.fork()
        if child == 0:
            ours.close()
            kernel.become_subreaper()
            self._reaper = ProcessReaper(self._runtime.tree, self._launch, self._log)
            self._hand_over(theirs, self._claim(Identity.of_parent()))
        theirs.close()
        on_poke = signal.signal(processes.POKE, lambda *_: os.kill(child, processes.POKE))
        on_end = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.kill(child, processes.POKE)  # an order may have come before it could be passed on
        with ours:
            answer, files = kernel.receive(ours, _LONGEST, _MOST_FILES)
        signal.signal(processes.POKE, on_poke)
        os.waitpid(child, 0)
        signal.signal(signal.SIGCHLD, on_end)
        if not answer:
            os._exit(1)
        found = json.loads(answer)
        if found is None:
            return None
        self._runtime.load(found["runtime"], files)
        self._log.see_size()
        return _Claim(found["started_at"], Exit.load(found["trouble"]) if found["trouble"] else None)

    def _hand_over(self, parent: socket.socket, claim: _Claim | None) -> NoReturn:
        """Answer the parent, and end."""
        answer: dict[str, object] | None = None
        files: list[int] = []
        if claim is not None:
            self._log.finish()
            state, files = self._runtime.dump()
            trouble = claim.trouble.dump() if claim.trouble else None
            answer = {"started_at": claim.started_at, "trouble": trouble, "runtime": state}
        socket.send_fds(parent, [json.dumps(answer).encode()], files)
        os._exit(0)

    def _claim(self, wrapper: Identity) -> _Claim | None:
        """Prepare the replica, and say once and for all that its command is about to be started, or never
        will be; None when that was said before.
        """
        self._replica.write(layout.WRAPPER, wrapper.dump(), durable=False)
        fault("wrapper.begun")
        with preparation_lock.acquire(self._replica, wrapper, self._is_settled) as mine:
            trouble = self._prepare() if mine else None
            fault("wrapper.moved_in")
            if trouble is None and self._reaper.read_ending() is not None:
                trouble = now(Cause.NOT_STARTED)
            claim = _Claim(time.time(), trouble)
            return claim if self._publish(claim, wrapper) else None

    def _is_settled(self) -> bool:
        """Tell whether there is nothing to prepare any more."""
        return self._replica.exists(layout.STARTED) or self._reaper.read_ending() is not None

    def _prepare(self) -> Exit | None:
        self._runtime.link_network()
        try:
            return self._runtime.prepare(self._reaper)
        except MountFailed as error:
            return now(Cause.MOUNT, detail=str(error))

    def _publish(self, claim: _Claim, wrapper: Identity) -> bool:
        """Publish a claim; False when there is one."""
        mark = {layout.NEVER: True} if claim.trouble is not None else self._mark(claim, wrapper)
        claimed = self._replica.publish(layout.STARTED, mark)
        self._launch.announce()
        return claimed

    def _mark(self, claim: _Claim, wrapper: Identity) -> dict[str, object]:
        return {
            **wrapper.dump(),
            "at": claim.started_at,
            "mono": time.monotonic(),
            "limits": "cgroup" if self._runtime.group else "engine" if self._launch.contained else "watchdog",
            "network": "own" if self._runtime.network is not None else "host",
            "image_used": self._runtime.image_used,
            "commit": self._runtime.commit,
        }

    def _live(self, started_at: float) -> Exit:
        runtime = self._runtime
        outputs = NamedOutputs(self._log, self._launch.owner)
        companions = Companions(outputs, self._launch.plan.grace_s)
        if self._credentials is not None:
            companions.start(self._credentials.companion())
            self._credentials.close()
        for sidecar in runtime.sidecars():
            companions.start(sidecar)
        try:
            main = command.start(runtime.command(), command.Streams.into(self._log.stream), runtime.enter)
        except command.CannotStart as error:
            companions.end()
            return now(Cause.START, started_at=started_at, code=NOT_FOUND, detail=str(error))
        fault("wrapper.running")
        for companion in runtime.companions():
            companions.start(companion)
        has_watchdog = runtime.group is None and not self._launch.contained
        limit = self._launch.place.role.memory_mib << 20 if has_watchdog else None
        alone = registry.ends_by_launcher(self._launch.plan.framework)
        finished = self._reaper.see_through(
            main, runtime.group, limit, companions=companions, is_main_told_alone=alone
        )
        fault("wrapper.ended")
        exit_ = self._take_back(self._exit(finished, started_at))
        runtime.clean(failed=judge(exit_, 0)[0] is ReplicaState.FAILED)
        return exit_

    def _take_back(self, exit_: Exit) -> Exit:
        """Store what it wrote, once no process can be in the replica any more; a command that
        succeeded has failed when that did.
        """
        if not any(data.back for data in self._launch.plan.datas):
            return exit_
        self._replica.write(layout.OVER, {"at": time.time()})
        trouble = self._runtime.stage_out(self._reaper)
        well = exit_.cause is Cause.COMMAND and exit_.code == 0
        return replace(trouble, started_at=exit_.started_at) if trouble is not None and well else exit_

    def _exit(self, finished: Finished, started_at: float) -> Exit:
        code, number = code_of(finished.status)
        cause = Cause.COMMAND
        if finished.told:
            cause = Cause.TOLD
        elif finished.out_of_memory or self._runtime.out_of_memory():
            cause = Cause.MEMORY
        return now(cause, started_at=started_at, code=code, signal=number)
