"""Start of a job's own command: a child of the wrapper gives up every right, then execs."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from jobs.node import kernel
from jobs.node.sandbox import seccomp
from jobs.node.wrapper.outcome import NOT_FOUND

SHELLS: Final = ("/bin/bash", "/bin/sh")
_OPEN_FILES: Final = 65536
_OOM_SCORE: Final = 300
"""When the machine itself runs out of memory, jobs go before the console."""


class CannotStart(Exception):
    """The command never ran; carries the system's words for why."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program, its user and its folder.  `owner` (uid, gid) None keeps the caller's.

    With `instead` that function is called in place of a program: it has stdin, stdout, stderr and `files`, no
    other descriptor, and the process ends when it returns.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: str
    owner: tuple[int, int] | None = None
    instead: Callable[[], None] | None = None
    files: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Streams:
    """The descriptors that become stdin (None: nothing to read), stdout and stderr."""

    stdin: int | None
    stdout: int
    stderr: int

    @classmethod
    def into(cls, output: int) -> Self:
        """Nothing in, everything out to the same place."""
        return cls(None, output, output)


def own_shell() -> str:
    """The shell of the file system that this process sees."""
    return next((path for path in SHELLS if Path(path).exists()), SHELLS[-1])


def shell(command: str) -> list[str]:
    """The argv for a command line: the person's text is one argument."""
    return [own_shell(), "-c", command]


def session_command(
    request: Mapping[str, Any],
    env: Mapping[str, str],
    folder: str,
    owner: tuple[int, int] | None,
    served: Mapping[str, Callable[[], None]],
    files: Sequence[int] = (),
) -> Command:
    """Return the command of a `sessions.Wanted`, as JSON; called in the replica's own file system.

    `served` has the kinds that no program is run for; they are left `files` open.
    """
    env = {**request["env"], **env}
    if request["terminal"]:
        env["TERM"] = request["terminal"]["name"]
    match request["kind"]:
        case kind if kind in served:
            return Command((), env, folder, owner, served[kind], files)
        case "shell":
            argv = [own_shell()]
        case "line":
            argv = shell(request["line"])
        case "program":
            argv = list(request["argv"])
        case other:
            raise ValueError(other)
    return Command([find_program(argv[0], env), *argv[1:]], env, folder, owner)


def find_program(program: str, env: Mapping[str, str]) -> str:
    """Return the program's path: exec does not look for it."""
    if "/" in program:
        return program
    places = (Path(folder, program) for folder in os.get_exec_path(env))
    return next((str(path) for path in places if path.is_file() and os.access(path, os.X_OK)), program)


def start(command: Command, streams: Streams, inside: Callable[[], None]) -> int:
    """Fork and exec; answers the pid once the exec has happened.

    `inside` is called in the child first, which leads a session of its own by then.  Raises CannotStart.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(command, streams, inside, parent, writer)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8", errors="replace") as file:
        trouble = file.read()
    if trouble:
        os.waitpid(pid, 0)
        raise CannotStart(trouble)
    return pid


def _become(
    command: Command, streams: Streams, inside: Callable[[], None], parent: int, writer: int
) -> NoReturn:
    try:
        os.setsid()
        inside()
        _inherit(streams)
        _give_up_rights(command.owner)
        kernel.die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(NOT_FOUND)
        os.chdir(command.folder)
        if command.instead is not None:
            _close_all_but(command.files)
            command.instead()
            os._exit(0)
        os.execve(command.argv[0], list(command.argv), dict(command.env))  # noqa: S606 the shell is argv[0]
    except BaseException as error:  # noqa: BLE001 whatever it is, nobody else would tell
        os.write(writer, f"{type(error).__name__}: {error}".encode()[:4000])
    os._exit(NOT_FOUND)


def _close_all_but(files: Sequence[int]) -> None:
    first = 3
    for fd in sorted(files):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def _inherit(streams: Streams) -> None:
    """Files, limits and signals as a fresh process has them."""
    stdin = os.open(os.devnull, os.O_RDONLY) if streams.stdin is None else streams.stdin
    for source, target in ((stdin, 0), (streams.stdout, 1), (streams.stderr, 2)):
        os.dup2(source, target)
    os.umask(0o077)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE), encoding="utf-8")
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _give_up_rights(owner: tuple[int, int] | None) -> None:
    kernel.new_session_keyring()
    if owner is not None:
        kernel.drop_capabilities()
        uid, gid = owner
        if uid != os.geteuid():
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
    kernel.gain_no_privileges()
    if owner is not None:
        seccomp.forbid_user_namespaces()
