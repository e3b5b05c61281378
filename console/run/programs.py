"""The programs, their order of start and stop, and supervisord's configuration file."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Program:
    """One line of the process list. What has the same `stage` starts and ends together; a lower one starts
    earlier and ends later. After `grace` seconds of being asked to end it is killed.
    """

    name: str
    stage: int
    command: Sequence[str]
    grace: int


@dataclass(frozen=True, slots=True)
class Rotation:
    """A program's log is rotated at `mib` MiB; `files` rotated ones are kept."""

    mib: int
    files: int


def programs(
    redis: Sequence[str] | None, workers: Mapping[str, int], web_processes: int = 1
) -> list[Program]:
    """Every program, by stage. `redis` is the private server's command, if any; `workers` maps queues to
    numbers of processes.
    """
    python = sys.executable
    web = ["web", *(f"web-{number}" for number in range(2, web_processes + 1))]
    return [
        *([Program("redis", 1, redis, grace=5)] if redis else []),
        *(Program(name, 2, [python, "-m", "console.server.web"], grace=8) for name in web),
        Program("watch", 2, [python, "-m", "console", "watch"], grace=5),
        Program("shells", 2, [python, "-m", "console", "shells"], grace=8),
        *(Program(f"worker-{queue}", 2, _worker(queue, size), grace=15) for queue, size in workers.items()),
        # Its schedule is all intervals: nothing is worth a file.
        Program(
            "beat", 2, _celery("console.beat", "beat", "-S", "celery.beat:Scheduler", "--pidfile="), grace=5
        ),
    ]


def _worker(queue: str, size: int) -> list[str]:
    named = ("--queues", queue, "--hostname", f"{queue}@%h", "--concurrency", str(size))
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return _celery("console.celery", "worker", *named, *quiet)


def _celery(app: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "celery", "--app", app, "--quiet", *arguments]


def supervisord_config(listed: Sequence[Program], *, checkout: Path, root: bool, rotation: Rotation) -> str:
    """The text of supervisord.conf: no control port, and every program started again without end.

    Its own files and the programs' logs are named relative to its working directory.

    `startsecs = 0` makes each exit an ordinary one, which `autorestart` answers at once and for ever;
    `console.run.child` makes the pause between short lives. What Python would run is not executed but forked
    (`console.run.child_processes`).
    """
    return "\n".join(
        [
            _section(
                "supervisord",
                logfile="supervisord.log",
                logfile_maxbytes="1MB",
                logfile_backups=1,
                pidfile="supervisord.pid",
                nodaemon="true",
                silent="true",
                umask="077",
                **({"user": "root"} if root else {}),
            ),
            *(_group(stage, list(together)) for stage, together in groupby(listed, key=attrgetter("stage"))),
            *(_program(program, checkout, rotation) for program in listed),
        ]
    )


def _group(stage: int, together: Sequence[Program]) -> str:
    return _section(f"group:stage{stage}", programs=",".join(each.name for each in together), priority=stage)


def _program(program: Program, checkout: Path, rotation: Rotation) -> str:
    return _section(
        f"program:{program.name}",
        command=shlex.join(program.command),
        directory=checkout,
        autorestart="true",
        startsecs=0,
        stopsignal="TERM",
        stopwaitsecs=program.grace,
        killasgroup="true",
        redirect_stderr="true",
        stdout_logfile=f"{program.name}.log",
        stdout_logfile_maxbytes=f"{rotation.mib}MB",
        stdout_logfile_backups=rotation.files,
    )


def _section(title: str, **values: object) -> str:
    lines = (f"{key} = {str(value).replace('%', '%%')}\n" for key, value in values.items())
    return f"[{title}]\n{''.join(lines)}"
