"""The container engine of this machine: which there is, and every command that is given to it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.node.staging.pip import BIN

USED: Final = "used"
ABSENT: Final = "absent"
SILENT: Final = "silent"

AGAIN_S: Final = 300
"""Where no engine was found, it is looked again after so long: a daemon may be started later."""

_TIMEOUT_S: Final = 60
_PROCESSES: Final = 32_768
_HUB: Final = "docker.io"
_CGROUP2: Final = Path("/sys/fs/cgroup/cgroup.controllers")

_EITHER_SHELL: Final = (
    f'[ -z "${BIN}" ] || PATH="${BIN}:$PATH"; '
    'if [ -x /bin/bash ]; then exec /bin/bash -c "$0"; else exec /bin/sh -c "$0"; fi'
)
"""Images that have no bash get the shell they have."""


@dataclass(frozen=True, slots=True)
class Detection:
    """Result of looking for an engine: `command` is its command line prefix, empty when none answers.

    `states` has every engine that was looked at: `used`, `absent` (not installed) or `silent` (a command
    that can't reach its daemon, or fails otherwise).
    """

    command: tuple[str, ...]
    states: Mapping[str, str]


_detections: dict[tuple[str, tuple[str, ...]], tuple[float, Detection]] = {}


def detect(wanted: str, options: tuple[str, ...]) -> Detection:
    """Look for an engine, podman before docker, unless it is known already.

    `wanted` is `auto`, `podman`, `docker` or `none`; `options` are the admin's own for it.
    """
    made_at, made = _detections.get((wanted, options), (0.0, None))
    if made is None or (not made.command and time.monotonic() - made_at >= AGAIN_S):
        made = _detect(wanted, options)
        _detections[wanted, options] = time.monotonic(), made
    return made


def _detect(wanted: str, options: tuple[str, ...]) -> Detection:
    states: dict[str, str] = {}
    for name in {"auto": ("podman", "docker"), "none": ()}.get(wanted, (wanted,)):
        command = (name, *_runtime(name), *options)
        if shutil.which(name) is None:
            states[name] = ABSENT
        elif _answers(command):
            return Detection(command, {**states, name: USED})
        else:
            states[name] = SILENT
    return Detection((), states)


def _runtime(name: str) -> tuple[str, ...]:
    """crun, podman's first choice, gives up on control groups v1 beside v2; runc doesn't."""
    if name == "podman" and not _CGROUP2.exists() and shutil.which("runc"):
        return ("--runtime", "runc", "--cgroup-manager", "cgroupfs")
    return ()


def _answers(command: Sequence[str]) -> bool:
    try:
        return _call([*command, "info"]).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container: `folders` maps places in it to the host's, `groups` is the control group it is put
    below (then that one has the limits); `owner` (uid, gid) None is a rootless engine's own user.
    `memory` maps places to the MiB of a file system in memory.  With `arguments`, a shell script and what
    follows it, those are run instead of the command.  With an `entrypoint`, that is run with the arguments:
    its words, or () for the image's own.
    """

    name: str
    image: str
    command: str
    folders: Mapping[str, str]
    work: str
    owner: tuple[int, int] | None
    groups: str
    cpu_milli: int
    memory_mib: int
    shm_mib: int
    pids: int
    open_files: int
    gpus: tuple[int, ...]
    memory: Mapping[str, int] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] | None = None
    cores: tuple[int, ...] = ()
    host_name: str = ""
    network: str = "host"


class Engine:
    """Calls to the engine whose command line begins with `prefix`."""

    def __init__(self, prefix: Sequence[str]) -> None:
        self.prefix = tuple(prefix)

    @property
    def podman(self) -> bool:
        """Tell whether it is podman; else docker."""
        return self.prefix[0] == "podman"

    def has_image(self, image: str) -> bool:
        """Tell whether the image is here already."""
        return _call([*self.prefix, "image", "inspect", image]).returncode == 0

    def has_program(self, image: str, program: str) -> bool:
        """Tell whether an image that is here has a program on its PATH."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        limits = [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={_PROCESSES}:{_PROCESSES}"]
        command = ["run", "--rm", "--network=none", *limits, "--entrypoint=/bin/sh", image]
        return _call([*self.prefix, *command, "-c", 'command -v "$0"', program]).returncode == 0

    def pull(self, image: str, login: Path | None) -> list[str]:
        """The command that fetches an image; `login` is a file written by `write_login`.

        Job files mean Docker Hub when they name no registry.  Podman does so only where its admin said where
        such names are looked for, and then it is asked as they are.
        """
        if self.podman and not _names_registry(image) and not self._searches():
            image = f"{_HUB}/{image}"
        if login is None:
            return [*self.prefix, "pull", image]
        if self.podman:
            return [*self.prefix, "pull", "--authfile", str(login), image]
        return [self.prefix[0], "--config", str(login.parent), *self.prefix[1:], "pull", image]

    def run(self, box: ContainerSpec, env_file: Path, inherited: Sequence[str]) -> list[str]:
        """The command that makes the container and stays until it ends.

        Variables come from `env_file`, and from the command's own environment those in `inherited`.
        The name is taken once: a second container of the same name is refused by the engine.
        """
        folders = [f"--volume={source}:{target}" for target, source in box.folders.items()]
        return [
            *self.prefix,
            "run",
            f"--name={box.name}",
            f"--network={box.network}",
            *([f"--hostname={box.host_name}"] if box.host_name else []),
            f"--workdir={box.work}",
            f"--shm-size={max(1, box.shm_mib)}m",
            f"--ulimit=nofile={box.open_files}:{box.open_files}",
            "--security-opt=no-new-privileges",
            f"--env-file={env_file}",
            *(f"--env={name}" for name in inherited),
            *folders,
            *(f"--tmpfs={target}:rw,size={mib}m,mode=1777" for target, mib in box.memory.items()),
            *self._own_options(box),
            *self._limits(box),
            *self._devices(box.gpus),
            *_program(box),
        ]

    def first_process(self, name: str) -> int | None:
        """The container's first process, as the host counts; None when it is not running."""
        answer = _call([*self.prefix, "container", "inspect", "--format", "{{.State.Pid}}", name])
        text = answer.stdout.decode(errors="replace").strip()
        return int(text) if answer.returncode == 0 and text.isdigit() and text != "0" else None

    def variables(self, name: str) -> dict[str, str]:
        """Return the environment of the container's first process, the image's variables included."""
        answer = _call([*self.prefix, "container", "inspect", "--format", "{{json .Config.Env}}", name])
        if answer.returncode != 0:
            return {}
        pairs = (line.partition("=") for line in json.loads(answer.stdout) or ())
        return {key: value for key, _, value in pairs}

    def ran_out_of_memory(self, name: str) -> bool:
        """Tell whether the engine says so of an ended container."""
        answer = _call([*self.prefix, "container", "inspect", "--format", "{{.State.OOMKilled}}", name])
        return answer.stdout.strip() == b"true"

    def exists(self, name: str) -> bool:
        """Tell whether there is a container of that name, running or not."""
        return _call([*self.prefix, "container", "inspect", name]).returncode == 0

    def remove(self, *names: str) -> None:
        """Kill and remove containers; absent is fine."""
        at_once = ["--time=0"] if self.podman else []
        _call([*self.prefix, "rm", "--force", *at_once, *names])

    def _searches(self) -> bool:
        """Tell whether podman's own configuration says where an image without a registry is looked for."""
        answer = _call([*self.prefix, "info", "--format", "{{json .Registries}}"])
        return answer.returncode == 0 and bool((json.loads(answer.stdout) or {}).get("search"))

    def _own_options(self, box: ContainerSpec) -> list[str]:
        owner = [f"--user={box.owner[0]}:{box.owner[1]}"] if box.owner else ["--userns=keep-id"]
        if not self.podman:
            cores = [f"--cpuset-cpus={','.join(map(str, box.cores))}"] if box.cores else []
            return [*owner, "--init", "--log-driver=none", *cores]
        return [
            *owner,
            "--pull=never",
            "--log-driver=passthrough",
            f"--ulimit=nproc={_PROCESSES}:{_PROCESSES}",
        ]

    def _limits(self, box: ContainerSpec) -> list[str]:
        if box.groups:
            return [f"--cgroup-parent={box.groups}"]
        return [
            f"--cpus={box.cpu_milli / 1000:g}",
            f"--memory={box.memory_mib}m",
            f"--memory-swap={box.memory_mib}m",
            f"--pids-limit={box.pids}",
        ]

    def _devices(self, gpus: Sequence[int]) -> list[str]:
        """GPUs by the container device interface, or docker's own word for it."""
        if not gpus:
            return []
        if self.podman:
            return [f"--device=nvidia.com/gpu={index}" for index in gpus]
        return ["--gpus", f'"device={",".join(map(str, gpus))}"']


def _program(box: ContainerSpec) -> list[str]:
    """Return the image and what runs in it."""
    if box.entrypoint is None:
        arguments = box.arguments or (_EITHER_SHELL, box.command)
        return ["--entrypoint=/bin/sh", box.image, "-c", *arguments]
    if not box.entrypoint:
        return [box.image, *box.arguments]
    program, *words = box.entrypoint
    return [f"--entrypoint={program}", box.image, *words, *box.arguments]


def _names_registry(image: str) -> bool:
    """Tell whether the first part of an image's name is a host, as both engines tell it."""
    first, slash, _ = image.partition("/")
    return bool(slash) and (first == "localhost" or "." in first or ":" in first)


def write_login(path: Path, registry: str, username: str, password: str) -> None:
    """Write a login as both engines read it; 0600, and never on a command line.

    Docker wants the file to be called config.json.
    """
    secret = b64encode(f"{username}:{password}".encode()).decode()
    server = registry or "https://index.docker.io/v1/"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump({"auths": {server: {"auth": secret}}}, file)


def write_env(path: Path, env: Mapping[str, str]) -> list[str]:
    """Write the variables that an environment file can say (0600); answers the names of the others.

    A line can't hold a value of several.
    """
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in env.items() if "\n" not in value)
    return [name for name, value in env.items() if "\n" in value]


def _call(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
    )
