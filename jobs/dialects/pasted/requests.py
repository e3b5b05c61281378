"""HTTP requests as manuals show them, and the command lines of curl and of containers, as job files.

Nothing is sent, expanded or run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from jobs.dialects.pasted.layers import Layer, Remark, Segment, ValueAt, closing_end, cut_out, write_layer
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.record import short

_NUMBER: Final = r"(?:\d{1,6}[ \t]*)?"
_HEAD: Final = re.compile(
    rf"\s*+{_NUMBER}(?:POST|PUT)[ \t]+\S+(?:[ \t]+HTTP/[\d.]+)?[ \t]*(?:\r?\n|\Z)", re.IGNORECASE
)
_FIELD: Final = re.compile(rf"{_NUMBER}[A-Za-z][A-Za-z0-9-]*[ \t]*:[^\r\n]*(?:\r?\n|\Z)|[ \t]*\r?\n")
_BODY: Final = re.compile(rf"[ \t]*{_NUMBER}\{{")
_BRACKETS: Final = compile_pattern(r'"(?:[^"\\\r\n]|\\[^\r\n])*+"?|[{}\[\]]')
_CURL: Final = re.compile(r"\s*+(?:\$[ \t]+)?curl(?=\s)")
_DATA: Final = frozenset({"-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json"})
_JOINED: Final = re.compile(r"(?P<option>--(?:data(?:-raw|-binary|-ascii)?|json)=|-d)(?=.)", re.DOTALL)


def of_http(text: str) -> Layer | None:
    """Return the body of a documented HTTP request."""
    head = _HEAD.match(text)
    if head is None:
        return None
    at = head.end()
    while (field := _FIELD.match(text, at)) and field.end() > at:
        at = field.end()
    if not _BODY.match(text, at):
        return None
    return cut_out("http", text, at, closing_end(_BRACKETS, text, at))


def of_curl(text: str) -> Layer | None:
    """Return the body that a curl command would send."""
    found = _CURL.match(text)
    if found is None:
        return None
    body: Word | None = None
    option = False
    for word in words(text, found.end()) or ():
        joined = _JOINED.match(word.value)
        if option:
            body, option = word, False
        elif word.value in _DATA:
            option = True
        elif joined:
            body = word.without(joined.end())
    if body is None or not body.value.lstrip().startswith(("{", "[")):
        return None
    return Layer("curl", body.value, tuple(Segment(*place) for place in body.places))


_CHUNK: Final = compile_pattern(
    r"""(?P<blank>(?:[ \t]|\\\r?\n)+)"""
    r"""|(?P<end>[\r\n;&|<>()]+)"""
    r"""|'(?P<single>[^']*)'"""
    r"""|\$'(?P<ansi>(?:[^'\\]|\\.)*+)'"""
    r"""|"(?P<double>(?:[^"\\]|\\.)*+)\""""
    r"""|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^\s'"\\;&|<>()$]+|\$)""",
    re.DOTALL,
)
_IN_DOUBLE: Final = re.compile(r'\\(["\\$`])|\\\r?\n()|([^\\]+|\\)', re.DOTALL)
_IN_ANSI: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)|([^\\]+)", re.DOTALL)
_ANSI: Final = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Word:
    """One word as the shell hands it on; `places` are pairs of an offset in it and one in the text."""

    value: str
    places: tuple[tuple[int, int], ...]

    @property
    def at(self) -> int:
        """Return the offset of its beginning in the text."""
        return self.places[0][1]

    def without(self, count: int) -> Word:
        """Return the word without its first characters."""
        before = [place for place in self.places if place[0] <= count]
        first = (0, before[-1][1] + count - before[-1][0])
        rest = ((inner - count, outer) for inner, outer in self.places if inner > count)
        return Word(self.value[count:], (first, *rest))


MOST: Final = 1000
"""A command of more words was made to waste time."""


def words(text: str, start: int) -> list[Word] | None:
    """Return the words of the one simple command that begins at `start`; None when there are too many."""
    found = list(islice(_words(text, start), MOST + 1))
    return found if len(found) <= MOST else None


def _words(text: str, start: int) -> Iterator[Word]:
    at = start
    parts: list[tuple[str, int]] = []
    while at < len(text):
        found = _CHUNK.match(text, at)
        if found is None or found.lastgroup == "end":
            break
        if found.lastgroup == "blank":
            if parts:
                yield _word(parts)
            parts = []
        else:
            parts += _parts(found)
        at = found.end()
    if parts:
        yield _word(parts)


def _word(parts: list[tuple[str, int]]) -> Word:
    places, length = [], 0
    for value, at in parts:
        places.append((length, at))
        length += len(value)
    return Word("".join(value for value, _at in parts), tuple(places))


def _parts(found: re.Match[str]) -> Iterator[tuple[str, int]]:
    """Yield the values of one piece of a word, with offsets."""
    kind = str(found.lastgroup)
    start = found.start(kind)
    said = found[kind]
    if kind == "double":
        for inner in _IN_DOUBLE.finditer(said):
            value = inner[1] or inner[3] or ""
            yield value, start + inner.start() + int(inner[1] is not None)
    elif kind == "ansi":
        for inner in _IN_ANSI.finditer(said):
            yield _ansi(inner), start + inner.start()
    else:
        yield said, start
    if not said:
        yield "", start


def _ansi(inner: re.Match[str]) -> str:
    if inner[1] is None:
        return inner[2]
    return chr(int(inner[1][1:], 16)) if len(inner[1]) == 5 else _ANSI.get(inner[1], inner[1])


_DOCKER: Final = re.compile(
    r"\s*+(?:\$[ \t]+)?(?:sudo[ \t]+)?(?:docker|podman|nerdctl)[ \t]+(?:container[ \t]+)?run(?=\s)"
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
    """The options, image and command of a `docker run`."""

    image: Word | None = None
    command: list[Word] = field(default_factory=list)
    options: dict[str, list[Word]] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def last(self, option: str) -> Word | None:
        """Return the value of an option, of several the last."""
        return self.options.get(option, [None])[-1]

    def left_out(self, option: str, at: int, value: str = "") -> None:
        """Note that an option has no meaning here."""
        self.remarks.append(Remark("flag_left_out", at, {"flag": short(f"{option} {value}".strip())}))


def of_docker(text: str) -> Layer | None:
    """Return a container's command line as a job of one replica."""
    found = _DOCKER.match(text)
    if found is None:
        return None
    run = _read(iter(words(text, found.end()) or ()))
    if run.image is None:
        return None
    start = found.end() - len(found[0].lstrip())
    return write_layer("docker", _job(run, start), run.remarks)


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


def _job(run: _Run, start: int) -> ValueAt:
    """Return the request that asks for the same."""
    image = run.image
    assert image is not None
    name = run.last("--name")
    fallback = image.value.rpartition("/")[2].partition(":")[0].partition("@")[0]
    role = {
        "Type": ValueAt("Worker", image.at),
        "Image": ValueAt(image.value, image.at),
        "PodCount": ValueAt(1, image.at),
        "ResourceConfig": ValueAt(dict(_resources(run, image.at)), image.at),
    }
    if ports := [
        ValueAt(port, word.at) for word in run.options.get("--publish", []) if (port := _port(run, word))
    ]:
        role["ServiceSpec"] = ValueAt({"ExtraPorts": ValueAt(ports, ports[0].at)}, ports[0].at)
    members = {
        "DisplayName": ValueAt(
            _NAME.sub("-", name.value if name else fallback).strip("-") or "job",
            name.at if name else image.at,
        ),
        "JobType": ValueAt("PyTorchJob", start),
        "JobSpecs": ValueAt([ValueAt(role, image.at)], image.at),
        "UserCommand": _command(run, image),
    }
    if mounts := [mount for word in run.options.get("--volume", []) if (mount := _mount(run, word))]:
        members["DataSources"] = ValueAt(mounts, mounts[0].at)
    if env := dict(_environment(run)):
        members["Envs"] = ValueAt(env, start)
    for option, values in run.options.items():
        if option not in _TAKEN:
            for word in values:
                run.left_out(option, word.at, word.value)
    members["JobConsole"] = ValueAt({"framework": ValueAt(None, start)}, start)
    return ValueAt(members, start)


def _resources(run: _Run, at: int) -> Iterator[tuple[str, ValueAt]]:
    """Yield the amounts that are named, and what is taken for those that a job has to name."""
    cpus, memory = run.last("--cpus"), run.last("--memory")
    yield "CPU", ValueAt(cpus.value, cpus.at) if cpus else ValueAt("1", at)
    if gpus := run.last("--gpus"):
        yield "GPU", ValueAt(str(_gpus(run, gpus)), gpus.at)
    yield "Memory", ValueAt(_amount(memory.value), memory.at) if memory else ValueAt("2Gi", at)
    if shared := run.last("--shm-size"):
        yield "SharedMemory", ValueAt(_amount(shared.value), shared.at)
    if cpus is None or memory is None:
        run.remarks.append(Remark("amounts_assumed", at, {}))


def _gpus(run: _Run, word: Word) -> int:
    """Return the number of GPUs meant; `all` is taken as one, and noted."""
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
    """Return the container's port of `-p`."""
    number = word.value.rpartition(":")[2].partition("/")[0]
    if number.isascii() and number.isdigit() and 0 < int(number[:6]) < 65_536:
        return int(number)
    run.left_out("-p", word.at, word.value)
    return None


def _mount(run: _Run, word: Word) -> ValueAt | None:
    """Return a folder of the machine; a named or nameless volume has no meaning here."""
    source, _colon, rest = word.value.partition(":")
    path, _colon, mode = rest.partition(":")
    if not source.startswith("/") or not path.startswith("/"):
        run.left_out("-v", word.at, word.value)
        return None
    members = {"Uri": ValueAt(f"file://{source}", word.at), "MountPath": ValueAt(path, word.at)}
    if "ro" in mode.split(","):
        members["MountAccess"] = ValueAt("RO", word.at)
    return ValueAt(members, word.at)


def _environment(run: _Run) -> Iterator[tuple[str, ValueAt]]:
    for word in run.options.get("--env", []):
        name, equals, _value = word.value.partition("=")
        if equals:
            yield name, ValueAt(word.value[len(name) + 1 :], word.at, word.at)
        else:
            run.remarks.append(Remark("variable_left_out", word.at, {"name": short(name)}))


def _command(run: _Run, image: Word) -> ValueAt:
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
    return ValueAt(line, at)


def _script(argv: Sequence[str]) -> str | None:
    """Return the command that a shell is given, when the words say nothing else."""
    if len(argv) == 3 and argv[0].rpartition("/")[2] in ("sh", "bash") and argv[1] in ("-c", "-lc"):
        return argv[2]
    return None
