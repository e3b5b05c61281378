"""Entering a live replica: from a request on a socket to a process among the replica's own.

    helper (this file)      reads the request, opens the doors, goes into the namespaces
      └ leader              sees one session through; looks after all that it starts
          └ the program     as the job's user, under its limits

The helper stays, deaf, as the leader's parent: a leader that nobody buries would keep the first process of
its PID namespace, and with it the job, from ending.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from jobs.node import kernel, processes
from jobs.node.command import Command, session_command
from jobs.node.files import Folder
from jobs.node.network import sockets
from jobs.node.sandbox import running_replica
from jobs.node.sandbox.running_replica import ReplicaUnavailable
from jobs.node.sessions import browsing, leader
from jobs.node.sftp.paths import BrowsableFolders
from jobs.node.sftp.server import serve
from jobs.node.staging import pip
from jobs.node.supervisor import layout
from jobs.node.wrapper import cgroups

LONGEST_REQUEST: Final = 1 << 20
FOLDERS: Final = "folders"
_SPACES: Final = {
    "user": kernel.CLONE_NEWUSER,
    "mnt": kernel.CLONE_NEWNS,
    "pid": kernel.CLONE_NEWPID,
    "ipc": kernel.CLONE_NEWIPC,
    "uts": kernel.CLONE_NEWUTS,
    "cgroup": kernel.CLONE_NEWCGROUP,
}


def main(path: Path, talk: int) -> NoReturn:
    """Serve one session in the attempt at `path`; the descriptor `talk` is a socket to whoever wants it."""
    kernel.set_name("jc-entry")
    kernel.hide_from_peers()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.set_inheritable(talk, False)
    channel = socket.socket(fileno=talk)
    try:
        request = _request(channel)
        entry = _way(path, request)
        entry.join()
        if os.fork() == 0:
            _lead(channel, entry, request)
    except ReplicaUnavailable as error:
        leader.tell(channel, {"barrier": error.barrier, "detail": error.detail})
    except (OSError, ValueError) as error:
        leader.tell(channel, {"barrier": "failed", "detail": str(error)})
    channel.close()
    with contextlib.suppress(ChildProcessError):  # which says that it has ended: its status goes to nobody
        os.wait()
    os._exit(0)


def _way(path: Path, request: Mapping[str, Any]) -> Entry:
    """Into the replica; or, for its folders alone, to what is left of it.  Raises Shut, or OSError."""
    role, index = request["role"], request["index"]
    if request["kind"] != FOLDERS:
        return find(path, role, index)
    from jobs.node.sftp import folder_server  # noqa: F401, PLC0415 for `command`, where nothing can be loaded

    try:
        return find(path, role, index)
    except (ReplicaUnavailable, FileNotFoundError):
        return open_ended(path, role, index)


def _lead(channel: socket.socket, entry: Entry, request: Mapping[str, Any]) -> NoReturn:
    """Nothing may return into the helper's own code."""
    try:
        entry.sign_in()
        entry.check()
        leader.lead(channel, entry.command(request), entry.doors, entry.wrapper, request["terminal"])
        entry.sign_out()
    except ReplicaUnavailable as error:
        leader.tell(channel, {"barrier": error.barrier, "detail": error.detail})
    except BaseException as error:  # noqa: BLE001 whatever it is, nobody else would tell
        leader.tell(channel, {"barrier": "failed", "detail": f"{type(error).__name__}: {error}"})
    os._exit(0)


def _request(channel: socket.socket) -> dict[str, Any]:
    """One line of JSON."""
    line = b""
    while not line.endswith(b"\n"):
        more = channel.recv(65536)
        line += more
        if not more or len(line) > LONGEST_REQUEST:
            raise ValueError("no request")
    request: dict[str, Any] = json.loads(line)
    return request


@dataclass(frozen=True, slots=True)
class Entry:
    """The way into one replica: `target` is a pidfd of a process in its namespaces, `flags` those that are
    not the caller's, `network` the replica's network namespace unless that is the host's, `wrapper` a pidfd
    of the process with which the replica ends, `list_` a folder for the leader to be found by where no
    namespace tells, `state` the folder in which the wrapper writes how far the replica is, None for one that
    has ended.
    """

    wrapper: int
    target: int
    flags: int
    network: int | None
    doors: tuple[int, ...]
    env: Mapping[str, str]
    folder: str
    owner: tuple[int, int] | None
    list_: Path | None
    state: Folder | None
    site: BrowsableFolders

    def sign_in(self) -> None:
        """The caller leads a session."""
        if self.list_ is not None:
            self.list_.mkdir(mode=0o700, exist_ok=True)
            with Folder.open(self.list_) as folder:
                folder.write(str(os.getpid()), processes.Identity.mine().dump(), durable=False)

    def check(self) -> None:
        """Raise Shut if the replica's command has ended since the replica was found.

        The wrapper says so first, then ends every process in the replica, and only then handles secrets
        again.  So it has to be asked by a process that is in the replica already: one that came before is
        ended, one that comes later sees what was said.
        """
        if self.state is None:
            return
        with self.state as state:
            if any(state.exists(name) for name in running_replica.ENDED):
                raise ReplicaUnavailable("not_running")

    def sign_out(self) -> None:
        """It is over."""
        if self.list_ is not None:
            (self.list_ / str(os.getpid())).unlink(missing_ok=True)

    def join(self) -> None:
        """Go into the namespaces; the next child is in the replica's PID namespace.

        From here on no module is loaded: what lies under our own paths there is the job's.
        """
        sys.meta_path.clear()
        if self.flags:
            kernel.join(self.target, self.flags)
        if self.network is not None:
            kernel.join(self.network, kernel.CLONE_NEWNET)

    def command(self, request: Mapping[str, Any]) -> Command:
        """Return the requested command; called in the replica's own file system."""
        served = {"files": serve, FOLDERS: self._serve_folders}
        return session_command(request, self.env, self.folder, self.owner, served, self.site.fds)

    def _serve_folders(self) -> None:
        from jobs.node.sftp.folder_server import serve as serve_folders  # noqa: PLC0415 only they need it

        serve_folders(self.site)


def find(path: Path, role: str, index: int) -> Entry:
    """The way into a replica.  Raises Shut, or OSError."""
    replica = running_replica.find_running(path, role, index)
    launch = replica.launch
    wrapper = replica.wrapper.hold()
    pid = replica.first
    if replica.alone and not launch.contained:
        pid = _approachable(replica.wrapper.pid, pid)
    target = processes.hold(pid)
    if wrapper is None or target is None:
        raise ReplicaUnavailable("not_running")
    try:
        doors = () if replica.limits == "watchdog" else tuple(cgroups.open_process_lists(replica.first))
    except OSError as error:
        raise ReplicaUnavailable("limits", str(error)) from error
    room = launch.room()
    with Folder.open(path) as folder:
        env = replace(launch, folder=folder).environment(room)
    if launch.contained:
        box, name = replica.container()
        env = pip.on_path({**box.variables(name), **env})
    owner = (launch.plan.uid, launch.plan.gid) if replica.alone else None
    flags = leader.foreign_namespaces(pid, _SPACES) if replica.alone else 0
    list_ = None if replica.alone else launch.file("replicas") / layout.SESSIONS
    state = Folder.open(launch.file("replicas"))
    network = _open_network(replica.first) if launch.plan.network else None
    site = browsing.live(launch)
    return Entry(wrapper, target, flags, network, doors, env, room.work, owner, list_, state, site)


def open_ended(path: Path, role: str, index: int) -> Entry:
    """The way to what is left of an ended replica, which is in no namespace any more and under no limits.

    It is over when the helper is: nothing else that the replica had is there to end with.
    """
    site, owner = browsing.find_ended(path, role, index)
    return Entry(os.pidfd_open(os.getpid()), -1, 0, None, (), {}, "/", owner, None, None, site)


def _open_network(pid: int) -> int:
    """Open the network namespace of a replica's first process, unless that has not entered it yet."""
    try:
        return sockets.open_foreign(pid)
    except (FileNotFoundError, ProcessLookupError):
        raise ReplicaUnavailable("not_running") from None


def _approachable(wrapper: int, child: int) -> int:
    """The wrapper, if its namespaces may be joined; it lets nobody of its own user look at it."""
    try:
        Path(f"/proc/{wrapper}/ns/pid").stat()
    except OSError:
        return child
    return wrapper
