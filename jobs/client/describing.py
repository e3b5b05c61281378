"""From what somebody says on the command line to a job file: a new one, or another job's or template's."""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jobs import dialects
from jobs.client.trouble import Trouble
from jobs.dialects import amounts
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.fields import Quantity
from jobs.language import gettext as _
from jobs.spec import ENV_NAME, After, CodeSource, JobSpec, Mount, MountPurpose, Resources, TaskRole
from jobs.trees import address, places

DIALECT: Final = "dlc"
"""What a new job is written in."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was said; None and empty is what was not."""

    argv: Sequence[str] = ()
    name: str = ""
    gpus: int | None = None
    gpu_type: str = ""
    cpus: float | None = None
    memory: str = ""
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Base:
    """A job file to begin with, and the version of a template that it comes from."""

    document: Document
    template: str = ""


def new(wanted: Wanted, upload: str, folder: Path) -> Base:
    """A job of one replica that runs the command in the uploaded folder, if there is one."""
    if not wanted.argv:
        raise Trouble(_("Say what to run: job-console run -- python train.py"), 2)
    role = TaskRole(name="worker", command=shlex.join(wanted.argv))
    name = wanted.name or _name(folder)
    code = CodeSource(id=upload) if upload else None
    spec = _changed(JobSpec(name=name, roles=(role,), code=code), wanted)
    return _written(spec)


def changed(base: Base, wanted: Wanted, upload: str) -> Base:
    """The job file with what was said, and with the uploaded folder as its code."""
    try:
        parsed = base.document.parsed
    except Refused as refused:
        raise Trouble(_("That job file can't be read any more: %(why)s") % {"why": refused}) from refused
    spec = _changed(parsed.spec, wanted)
    for way in _ways(spec, upload) if upload else (spec,):
        written = Base(base.document.render(way).document)
        if _says(written, upload, spec.after):
            return written
    if not upload:
        return _written(spec)
    return _written(spec.model_copy(update={"code": CodeSource(id=upload)}))


def _says(written: Base, upload: str, after: Sequence[After]) -> bool:
    """Whether that kind of file has words for the code and for what is waited for."""
    spec = written.document.parsed.spec
    has_code = not upload or any(address(tree) == upload for _where, tree in places(spec))
    return has_code and tuple(spec.after) == tuple(after)


def _ways(spec: JobSpec, upload: str) -> Sequence[JobSpec]:
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


def _written(spec: JobSpec) -> Base:
    return Base(dialects.get(DIALECT).render(spec, {}).document)


def _changed(spec: JobSpec, wanted: Wanted) -> JobSpec:
    """The job with what was said of its first role, and of itself."""
    first, *others = spec.roles
    role: dict[str, Any] = {"resources": _resources(first.resources, wanted)}
    if wanted.argv:
        role["command"] = shlex.join(wanted.argv)
    if wanted.image:
        role["image"] = wanted.image
    changes: dict[str, Any] = {"roles": (first.model_copy(update=role), *others)}
    if wanted.name:
        changes["name"] = wanted.name
    if wanted.after:
        changes["after"] = (*spec.after, *(After(job=job) for job in wanted.after))
    if wanted.env:
        changes["env"] = {**spec.env, **wanted.env}
    return spec.model_copy(update=changes)


def _resources(now: Resources, wanted: Wanted) -> Resources:
    changes: dict[str, Any] = {}
    if wanted.gpus is not None:
        changes["gpus"] = wanted.gpus
    if wanted.gpu_type:
        changes |= {"gpu_type": wanted.gpu_type, "gpus": wanted.gpus or now.gpus or 1}
    if wanted.cpus is not None:
        changes["cpu_milli"] = max(1, round(wanted.cpus * 1000))
    if wanted.memory:
        changes["memory_mib"] = memory(wanted.memory)
    if changes:
        changes["instance_type"] = ""
    return now.model_copy(update=changes)


def memory(text: str) -> int:
    """MiB of `8G`, `512Mi`, `8`, which are gigabytes.  Raises Trouble."""
    amount = amounts.read(text, Quantity.MEMORY, bare="Gi")
    if amount is None or amounts.whole(amount) < 1:
        raise Trouble(_("%(text)s is no amount of memory: 8G, 512M.") % {"text": text}, 2)
    return amounts.whole(amount)


def variables(said: Sequence[str]) -> dict[str, str]:
    """`K=V` each.  Raises Trouble."""
    found = {}
    for each in said:
        name, equals, value = each.partition("=")
        if not equals or not re.fullmatch(ENV_NAME, name):
            raise Trouble(_("%(said)s is no variable: NAME=VALUE.") % {"said": each}, 2)
        found[name] = value
    return found


def answers(said: Sequence[str]) -> dict[str, str | list[str]]:
    """`NAME=VALUE` each; one that is said again has several.  Raises Trouble."""
    found: dict[str, str | list[str]] = {}
    for each in said:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise Trouble(_("%(said)s is no answer: NAME=VALUE.") % {"said": each}, 2)
        before = found.get(name)
        found[name] = value if before is None else [*([before] if isinstance(before, str) else before), value]
    return found


def _name(folder: Path) -> str:
    """What a job is called that nobody named: like its folder."""
    return _UNSAFE.sub("-", folder.resolve().name).strip("-.")[:60] or getpass.getuser()
