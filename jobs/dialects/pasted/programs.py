"""`docker run …`, and a plain command: made a job that runs the same.  Neither is run here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects.pasted.layers import Layer, Piece, Remark, written
from jobs.dialects.pasted.words import Word, words
from jobs.dialects.record import short

_DOCKER: Final = re.compile(
    r"\s*(?:\$[ \t]+)?(?:sudo[ \t]+)?(?:docker|podman|nerdctl)[ \t]+(?:container[ \t]+)?run(?=\s)"
)
# fmt: off
_VALUED: Final = frozenset({
    "--add-host", "--annotation", "-a", "--attach", "--blkio-weight", "--cap-add", "--cap-drop",
    "--cgroup-parent", "--cgroupns", "--cidfile", "--cpu-period", "--cpu-quota", "--cpu-rt-period",
    "--cpu-rt-runtime", "-c", "--cpu-shares", "--cpus", "--cpuset-cpus", "--cpuset-mems", "--detach-keys",
    "--device", "--device-cgroup-rule", "--device-read-bps", "--device-write-bps", "--dns", "--dns-option",
    "--dns-search", "--domainname", "--entrypoint", "-e", "--env", "--env-file", "--expose", "--gpus",
    "--group-add", "--health-cmd", "--health-interval", "--health-retries", "--health-start-period",
    "--health-timeout", "-h", "--hostname", "--ip", "--ip6", "--ipc", "--isolation", "--kernel-memory",
    "-l", "--label", "--label-file", "--link", "--log-driver", "--log-opt", "--mac-address", "-m",
    "--memory", "--memory-reservation", "--memory-swap", "--memory-swappiness", "--mount", "--name",
    "--network", "--net", "--network-alias", "--oom-score-adj", "--pid", "--pids-limit", "--platform", "-p",
    "--publish", "--pull", "--restart", "--runtime", "--security-opt", "--shm-size", "--stop-signal",
    "--stop-timeout", "--storage-opt", "--sysctl", "--tmpfs", "--ulimit", "-u", "--user", "--userns",
    "--uts", "-v", "--volume", "--volume-driver", "--volumes-from", "-w", "--workdir",
})
# fmt: on
_LONG: Final = {
    "-e": "--env",
    "-h": "--hostname",
    "-l": "--label",
    "-m": "--memory",
    "-p": "--publish",
    "-u": "--user",
    "-v": "--volume",
    "-w": "--workdir",
}
_HARMLESS: Final = frozenset(
    {"--rm", "-i", "-t", "-it", "-ti", "-d", "-dit", "--interactive", "--tty", "--detach"}
)
"""Switches that say nothing about a job: it has no terminal, and is removed when it has ended."""

_TAKEN: Final = frozenset(
    {"--name", "--env", "--gpus", "--cpus", "--memory", "--shm-size", "--workdir", "--publish", "--volume"}
    | {"--entrypoint"}
)
"""Options that mean something for a job."""

_GPUS: Final = re.compile(r"count=(?P<count>\d+)|device=(?P<list>[\w\-]+(?:,[\w\-]+)*)")
_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(slots=True)
class _Run:
    """What the words of a `docker run` say."""

    image: Word | None = None
    command: list[Word] = field(default_factory=list)
    options: dict[str, list[Word]] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def last(self, option: str) -> Word | None:
        """The value of an option, of several the last."""
        return self.options.get(option, [None])[-1]

    def left_out(self, option: str, at: int, value: str = "") -> None:
        """Note that an option has no meaning here."""
        self.remarks.append(Remark("flag_left_out", at, {"flag": short(f"{option} {value}".strip())}))


def of_docker(text: str) -> Layer | None:
    """A container's command line as a job of one replica."""
    found = _DOCKER.match(text)
    if found is None:
        return None
    run = _read(iter(words(text, found.end()) or ()))
    if run.image is None:
        return None
    start = found.end() - len(found[0].lstrip())
    return written("docker", _job(run, start), run.remarks)


def _read(every: Iterator[Word]) -> _Run:
    run = _Run()
    for word in every:
        if run.image is not None:
            run.command.append(word)
        elif not word.value.startswith("-"):
            run.image = word
        else:
            _option(run, word, every)
    return run


def _option(run: _Run, word: Word, more: Iterator[Word]) -> None:
    name, equals, _value = word.value.partition("=")
    value: Word | None = None
    if not name.startswith("--") and len(name) > 2 and name[:2] in _VALUED:
        name, value = name[:2], word.without(2)
    elif equals:
        value = word.without(len(name) + 1)
    elif name in _VALUED:
        value = next(more, None)
    name = _LONG.get(name, name)
    if value is None:
        if name not in _HARMLESS:
            run.left_out(name, word.at)
    else:
        run.options.setdefault(name, []).append(value)


def _job(run: _Run, start: int) -> Piece:
    """The request that asks for the same."""
    image = run.image
    assert image is not None
    name = run.last("--name")
    fallback = image.value.rpartition("/")[2].partition(":")[0].partition("@")[0]
    role = {
        "Type": Piece("Worker", image.at),
        "Image": Piece(image.value, image.at),
        "PodCount": Piece(1, image.at),
        "ResourceConfig": Piece(dict(_resources(run, image.at)), image.at),
    }
    if ports := [
        Piece(port, word.at) for word in run.options.get("--publish", []) if (port := _port(run, word))
    ]:
        role["ServiceSpec"] = Piece({"ExtraPorts": Piece(ports, ports[0].at)}, ports[0].at)
    members = {
        "DisplayName": Piece(_named(name.value if name else fallback), name.at if name else image.at),
        "JobType": Piece("PyTorchJob", start),
        "JobSpecs": Piece([Piece(role, image.at)], image.at),
        "UserCommand": _command(run, image),
    }
    if mounts := [mount for word in run.options.get("--volume", []) if (mount := _mount(run, word))]:
        members["DataSources"] = Piece(mounts, mounts[0].at)
    if env := dict(_environment(run)):
        members["Envs"] = Piece(env, start)
    for option, values in run.options.items():
        if option not in _TAKEN:
            for word in values:
                run.left_out(option, word.at, word.value)
    members["JobConsole"] = Piece({"framework": Piece(None, start)}, start)
    return Piece(members, start)


def _named(text: str) -> str:
    return _NAME.sub("-", text).strip("-") or "job"


def _resources(run: _Run, at: int) -> Iterator[tuple[str, Piece]]:
    """The amounts that are named, and what is taken for those that a job has to name."""
    cpus, memory = run.last("--cpus"), run.last("--memory")
    yield "CPU", Piece(cpus.value, cpus.at) if cpus else Piece("1", at)
    if gpus := run.last("--gpus"):
        yield "GPU", Piece(str(_gpus(run, gpus)), gpus.at)
    yield "Memory", Piece(_amount(memory.value), memory.at) if memory else Piece("2Gi", at)
    if shared := run.last("--shm-size"):
        yield "SharedMemory", Piece(_amount(shared.value), shared.at)
    if cpus is None or memory is None:
        run.remarks.append(Remark("amounts_assumed", at, {}))


def _gpus(run: _Run, word: Word) -> int:
    """How many GPUs are meant; `all` is taken as one, and told."""
    value = word.value.strip("\"'")
    if value.isascii() and value.isdigit():
        return int(value[:4])
    found = _GPUS.match(value)
    if found:
        return int(found["count"][:4]) if found["count"] else len(found["list"].split(","))
    run.remarks.append(Remark("gpus_taken_as_one", word.at, {"value": short(value)}))
    return 1


def _amount(value: str) -> str:
    """Docker's `16g` as `16Gi`; bytes without a unit as MiB."""
    unit = {"k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti"}.get(value.rstrip("bBiI")[-1:].lower())
    digits = value.rstrip("bBiIkKmMgGtT")
    if unit:
        return f"{digits}{unit}"
    is_bytes = digits.isascii() and digits.isdigit() and len(digits) < 19
    return f"{max(int(digits) // 2**20, 1)}Mi" if is_bytes else value


def _port(run: _Run, word: Word) -> int | None:
    """The container's port of `-p`."""
    number = word.value.rpartition(":")[2].partition("/")[0]
    if number.isascii() and number.isdigit() and 0 < int(number[:6]) < 65_536:
        return int(number)
    run.left_out("-p", word.at, word.value)
    return None


def _mount(run: _Run, word: Word) -> Piece | None:
    """A folder of the machine; a named or nameless volume has no meaning here."""
    source, _colon, rest = word.value.partition(":")
    path, _colon, mode = rest.partition(":")
    if not source.startswith("/") or not path.startswith("/"):
        run.left_out("-v", word.at, word.value)
        return None
    members = {"Uri": Piece(f"file://{source}", word.at), "MountPath": Piece(path, word.at)}
    if "ro" in mode.split(","):
        members["MountAccess"] = Piece("RO", word.at)
    return Piece(members, word.at)


def _environment(run: _Run) -> Iterator[tuple[str, Piece]]:
    for word in run.options.get("--env", []):
        name, equals, _value = word.value.partition("=")
        if equals:
            yield name, Piece(word.value[len(name) + 1 :], word.at, word.at)
        else:
            run.remarks.append(Remark("variable_left_out", word.at, {"name": short(name)}))


def _command(run: _Run, image: Word) -> Piece:
    """The command line, in the folder that `-w` names; without one, a blank that is told as missing."""
    entry = run.last("--entrypoint")
    argv = [*([entry.value] if entry else []), *(word.value for word in run.command)]
    at = run.command[0].at if run.command else entry.at if entry else image.at
    script = _script(argv)
    line = shlex.join(argv) if script is None else script
    folder = run.last("--workdir")
    if folder and line:
        line = f"cd {shlex.quote(folder.value)} && {line}"
    if not line:
        run.remarks.append(Remark("image_decides_command", image.at, {}))
    return Piece(line, at)


def _script(argv: Sequence[str]) -> str | None:
    """What a shell is told to run, when that is all that the words say."""
    if len(argv) == 3 and argv[0].rpartition("/")[2] in ("sh", "bash") and argv[1] in ("-c", "-lc"):
        return argv[2]
    return None
