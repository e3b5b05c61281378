"""Files of an attempt.  The format has a number; an agent touches no other than its own.

<root>/.lock                    held while resources are given out
<root>/.agent.{lock,json,sock,log}
                                the agent that looks after the attempts now
<root>/.live/<key>              what a live attempt holds of the machine
<root>/.forgotten/<month>/<key> keys that must never start again
<root>/<job id>/checkpoints/    what the job saves for its next attempt; goes with its last one
<root>/<job id>/<attempt>/
    plan.json                   what to run and what it was given; exists = accepted
    limits.json                 how much its replicas may write, and on how many ports they may listen
    trees/<id>                  what an uploaded tree holds, and where that lies
    resumed.json                the checkpoint that it resumes from, if any; chosen once
    secrets.json                values for the environment, until the end
    origin.json                 what it was submitted as (jobs.backends.origins); for the console alone
    supervisor.{lock,log}       held by who looks after it; what there is to say about that
    supervisor.json             who that is, where it is a supervisor of an earlier release
    router.json                 the process that keeps the router of its own network
    pasta.pid                   the process that connects the router, where the console is not root
    status.json                 what `observe` reads, rewritten at every change
    stop.json                   somebody asked for the end
    extension.json              somebody asked for a later end
    hosts, resolv.conf          how its replicas find each other by name, in a network of their own
    bin/python                  starts python3, for where there is no python
    warning.json, ending.json   the agent's orders to the wrappers
    restart.<name>.<n>          whether a replica whose run number n failed is started again, decided once
    end.json                    exists = over, and nothing is left running
    replicas/<name>/wrapper.json
                                who prepares the replica now
    replicas/<name>/turn        held by the wrapper that prepares the replica; says who that is
    replicas/<name>/step.json   what is being done for it before its command
    replicas/<name>/init.<n>    its init container number n has ended well, in this boot
    replicas/<name>/started     exists = the command was started, once and for all
    replicas/<name>/hostname    what it is called, in a network of its own
    replicas/<name>/env, env.<container>, config.json
                                for the container engine, until the end
    replicas/<name>/sessions/<pid>
                                who leads a session beside it, where only this file tells
    replicas/<name>/over        its command has ended, and nobody enters it any more
    replicas/<name>/exit.json   how it ended
    replicas/<name>~<n>/        the same files of its run number n, which failed; another one followed
    logs/<name>.output, .times  what it wrote, and when (jobs.node.wrapper.log_times)
    work/<name>/, tmp/<name>/   all that the job itself can write to, besides
    empty/<name>/<number>/      what lies behind places that are empty at first
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FORMAT: Final = 1

FORMAT_WITH_PROVISIONS: Final = 2
"""Of a plan that says what is laid into its replicas: a release that does not know that leaves it alone."""

FORMAT_WITH_TREES: Final = 3
"""Of a plan with uploaded code in it, likewise."""

FORMAT_WITH_DATA: Final = 4
"""Of a plan that has data fetched, or a cache: likewise."""

FORMAT_WITH_NETWORK: Final = 5
"""Of a plan whose replicas have a network of their own: likewise."""

FORMAT_WITH_SOURCES: Final = 6
"""Of a plan with submodules, code by the data mover, or an environment of libraries: likewise."""

FORMAT_WITH_COMPANIONS: Final = 7
"""Of a plan that runs something beside a replica's command: likewise."""

FORMAT_WITH_CONTAINERS: Final = 8
"""Of a plan with init containers or sidecars: likewise."""

FORMAT_WITH_NODE_CHECKS: Final = 10
"""Of a plan whose replicas check their nodes first: likewise."""

FORMAT_WITH_RESTARTS: Final = 11
"""Of a plan that says how often processes of a replica are started again: likewise."""

FORMAT_WITH_REPLICA_RESTARTS: Final = 12
"""Of a plan whose failed replicas wait for an order to start again: likewise."""

AGENT_LOCK: Final = ".agent.lock"
AGENT: Final = ".agent.json"
AGENT_SOCKET: Final = ".agent.sock"
AGENT_LOG: Final = ".agent.log"
PLAN: Final = "plan.json"
LIMITS: Final = "limits.json"
TREES: Final = "trees"
SECRETS: Final = "secrets.json"
SUPERVISOR: Final = "supervisor.json"
LOCK: Final = "supervisor.lock"
DIARY: Final = "supervisor.log"
STATUS: Final = "status.json"
RESUMED: Final = "resumed.json"
STOP: Final = "stop.json"
EXTENSION: Final = "extension.json"
WARNING: Final = "warning.json"
ENDING: Final = "ending.json"
END: Final = "end.json"
ROUTER: Final = "router.json"
PASTA: Final = "pasta.pid"
PASSWD: Final = "passwd"  # noqa: S105 a file name
GROUP: Final = "group"
PEERS: Final = "peers.env"
HOSTS: Final = "hosts"
RESOLVER: Final = "resolv.conf"
HOST_NAME: Final = "hostname"
BIN: Final = "bin"
WRAPPER: Final = "wrapper.json"
STARTED: Final = "started"
OVER: Final = "over"
EXIT: Final = "exit.json"
STEP: Final = "step.json"
INIT: Final = "init"
RESTART: Final = "restart"
TURN: Final = "turn"
SESSIONS: Final = "sessions"
ENV: Final = "env"
LOGIN: Final = "config.json"

NEVER: Final = "never"
"""In `started`: written so that nobody starts the command any more."""

_KEY: Final = re.compile(r"[a-z0-9]+-(?P<job>[a-z0-9]+)-(?P<attempt>[1-9][0-9]*)")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._]")
_NAME_BYTES: Final = 100


class UnknownAttemptKey(ValueError):
    """A key or handle that this backend can't have given out."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below one root."""

    root: Path

    @property
    def lock(self) -> Path:
        """AllocatedTotal while resources are given out."""
        return self.root / ".lock"

    @property
    def live(self) -> Path:
        """One small file for each attempt that holds something of the machine."""
        return self.root / ".live"

    def attempt(self, key: str) -> Path:
        """The folder of an attempt; NotOurs when the key is malformed."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise UnknownAttemptKey(key)
        return self.root / match["job"] / match["attempt"]

    def removal_record(self, key: str, *, months_ago: int = 0) -> Path:
        """Return the file that records that a key's attempt was removed, in this or an earlier month."""
        now = time.gmtime()
        month = now.tm_year * 12 + now.tm_mon - 1 - months_ago
        return self.root / ".forgotten" / f"{month // 12}-{month % 12 + 1:02}" / key


def restart_order(name: str, run: int) -> str:
    """Return the file of the order about a replica whose run with that number failed."""
    return f"{RESTART}.{name}.{run}"


def earlier_run(name: str, run: int) -> str:
    """Return the folder with the files of an earlier run of a replica; no replica has such a name."""
    return f"{name}~{run}"


def folder_name(role: str, ordinal: int, index: int) -> str:
    """A replica's name in file names: `<role>-<index>`, safe and unique whatever the role is called."""
    safe = _UNSAFE.sub("_", role)[:_NAME_BYTES]
    return f"{safe}-{index}" if safe == role else f"{safe}.{ordinal}-{index}"
