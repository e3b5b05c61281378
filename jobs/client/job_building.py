"""Job files made from the command line: new, or changed from another job's or a template's."""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jobs import dialects
from jobs.client.durations import parse_duration
from jobs.client.failure import CommandFailure
from jobs.dialects import amounts
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.fields import Quantity
from jobs.language import gettext as _
from jobs.spec import ENV_NAME, After, CodeSource, JobSpec, Mount, MountPurpose, Port, Resources, RoleSpec
from jobs.trees import address, find_trees

DIALECT: Final = "dlc"
"""What a new job is written in."""

_LAST_PORT: Final = 65535
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Options of a job from the command line; None and empty where an option is not given."""

    argv: Sequence[str] = ()
    name: str = ""
    gpus: int | None = None
    gpu_type: str = ""
    cpus: float | None = None
    memory: str = ""
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    nodes: int | None = None
    time: str = ""
    ports: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A job file to begin with, and the version of a template that it comes from."""

    document: Document
    template: str = ""


def create_file(options: JobOptions, upload: str, folder: Path) -> BaseFile:
    """A job of one replica that runs the command in the uploaded folder, if there is one."""
    if not options.argv:
        raise CommandFailure(_("Specify a command: job-console run -- python train.py"), 2)
    role = RoleSpec(name="worker", command=shlex.join(options.argv))
    name = options.name or _name(folder)
    code = CodeSource(id=upload) if upload else None
    spec = _change_spec(JobSpec(name=name, roles=(role,), code=code), options)
    return _render(spec)


def change_file(base: BaseFile, options: JobOptions, upload: str) -> BaseFile:
    """The job file with what was said, and with the uploaded folder as its code."""
    try:
        parsed = base.document.parsed
    except Refused as refused:
        raise CommandFailure(_("The job file can no longer be read: %(why)s") % {"why": refused}) from refused
    spec = _change_spec(parsed.spec, options)
    for way in _variants(spec, upload) if upload else (spec,):
        written = BaseFile(base.document.render(way).document)
        if _has_words(written, upload, spec.after):
            return written
    if not upload:
        return _render(spec)
    return _render(spec.model_copy(update={"code": CodeSource(id=upload)}))


def _has_words(written: BaseFile, upload: str, after: Sequence[After]) -> bool:
    """Tell whether that kind of file has words for the code and for what is waited for."""
    spec = written.document.parsed.spec
    has_code = not upload or any(address(tree) == upload for _where, tree in find_trees(spec))
    return has_code and tuple(spec.after) == tuple(after)


def _variants(spec: JobSpec, upload: str) -> Sequence[JobSpec]:
    """The job with the upload as its code, as one dialect or the other can say it, not an earlier one."""
    mounts = tuple(mount for mount in spec.mounts if mount.purpose is not MountPurpose.CODE)
    bare = spec.model_copy(update={"code": None, "mounts": mounts})
    path = spec.code.path if spec.code else ""
    mount = Mount(uri=upload, purpose=MountPurpose.CODE, read_only=True)
    return (
        bare.model_copy(update={"code": CodeSource(uri=upload, path=path)}),
        bare.model_copy(update={"code": CodeSource(id=upload, path=path)}),
        bare.model_copy(update={"mounts": (*mounts, mount)}),
    )


def _render(spec: JobSpec) -> BaseFile:
    return BaseFile(dialects.get(DIALECT).render(spec, {}).document)


def _change_spec(spec: JobSpec, options: JobOptions) -> JobSpec:
    """The job with what was said of its first role, and of itself."""
    first, *others = spec.roles
    role: dict[str, Any] = {"resources": _resources(first.resources, options)}
    if options.argv:
        role["command"] = shlex.join(options.argv)
    if options.image:
        role["image"] = options.image
    if options.nodes is not None:
        role["replicas"] = _positive(options.nodes, "--nodes")
    if options.ports:
        role["ports"] = tuple(map(_port, options.ports))
    changes: dict[str, Any] = {"roles": (first.model_copy(update=role), *others)}
    if options.name:
        changes["name"] = options.name
    if options.after:
        changes["after"] = (*spec.after, *(After(job=job) for job in options.after))
    if options.time:
        changes["time_limit_s"] = parse_duration(options.time)
    if options.tags:
        changes["tags"] = {**spec.tags, **options.tags}
    if options.env:
        changes["env"] = {**spec.env, **options.env}
    return spec.model_copy(update=changes)


def _resources(now: Resources, options: JobOptions) -> Resources:
    changes: dict[str, Any] = {}
    if options.gpus is not None:
        changes["gpus"] = options.gpus
    if options.gpu_type:
        changes |= {"gpu_type": options.gpu_type, "gpus": options.gpus or now.gpus or 1}
    if options.cpus is not None:
        changes["cpu_milli"] = max(1, round(options.cpus * 1000))
    if options.memory:
        changes["memory_mib"] = memory(options.memory)
    if changes:
        changes["instance_type"] = ""
    return now.model_copy(update=changes)


def memory(text: str) -> int:
    """MiB of `8G`, `512Mi`, `8`, which are gigabytes.  Raises CommandFailure."""
    amount = amounts.parse(text, Quantity.MEMORY, bare="Gi")
    if amount is None or amounts.whole(amount) < 1:
        raise CommandFailure(_("Invalid amount of memory: %(text)s. Examples: 8G, 512M.") % {"text": text}, 2)
    return amounts.whole(amount)


def _positive(number: int, option: str) -> int:
    if number < 1:
        raise CommandFailure(_("%(option)s must be at least 1.") % {"option": option}, 2)
    return number


def _port(text: str) -> Port:
    """Return the port of `8080` or `NAME=8080`.  Raises CommandFailure."""
    name, _equals, number = text.rpartition("=")
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= _LAST_PORT):
        raise CommandFailure(_("Invalid port: %(text)s. Use PORT or NAME=PORT.") % {"text": text}, 2)
    return Port(label=name or f"p{int(number)}", begin_at=int(number))


def tags(arguments: Sequence[str]) -> dict[str, str]:
    """Parse tags, each NAME=VALUE.  Raises CommandFailure."""
    return dict(_pairs(arguments, re.compile("(?s).+"), _("Invalid tag: %(said)s. Use NAME=VALUE.")))


def variables(arguments: Sequence[str]) -> dict[str, str]:
    """Parse variables, each NAME=VALUE.  Raises CommandFailure."""
    return dict(_pairs(arguments, re.compile(ENV_NAME), _("Invalid variable: %(said)s. Use NAME=VALUE.")))


def answers(arguments: Sequence[str]) -> dict[str, str | list[str]]:
    """Parse answers, each NAME=VALUE; a name given again has several.  Raises CommandFailure."""
    found: dict[str, str | list[str]] = {}
    for name, value in _pairs(
        arguments, re.compile("(?s).+"), _("Invalid parameter: %(said)s. Use NAME=VALUE.")
    ):
        before = found.get(name)
        found[name] = value if before is None else [*([before] if isinstance(before, str) else before), value]
    return found


def _pairs(arguments: Sequence[str], pattern: re.Pattern[str], complaint: str) -> Iterator[tuple[str, str]]:
    for each in arguments:
        name, equals, value = each.partition("=")
        if not equals or not pattern.fullmatch(name):
            raise CommandFailure(complaint % {"said": each}, 2)
        yield name, value


def _name(folder: Path) -> str:
    """Return the default name of a job: its folder's."""
    return _UNSAFE.sub("-", folder.resolve().name).strip("-.")[:60] or getpass.getuser()
