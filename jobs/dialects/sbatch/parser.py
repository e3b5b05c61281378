"""An sbatch script → JobSpec."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobs.dialects import commands
from jobs.dialects.base import Array, Parsed
from jobs.dialects.document import Document
from jobs.dialects.findings import Findings
from jobs.dialects.placeholders import looks_secret
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import Record, short
from jobs.dialects.sbatch import arrays, secrets, sizes
from jobs.dialects.sbatch.amounts import nodes as node_range
from jobs.dialects.sbatch.header import INTERPRETER, SCRIPT, Script, pointer_of, read
from jobs.dialects.sbatch.launcher import Started
from jobs.dialects.sbatch.option_values import DEFAULT_NAME, check, has_meaning, read_option
from jobs.dialects.sbatch.options import OPTIONS, SBATCH
from jobs.dialects.sbatch.script import BASH
from jobs.dialects.sbatch.secrets import ScriptVariables
from jobs.dialects.sbatch.values import image, mounts
from jobs.dialects.variables import Variables, collect
from jobs.spec import (
    CompletionPolicy,
    Framework,
    JobSpec,
    Mount,
    NodeChoice,
    Resources,
    RetryPolicy,
    RoleSpec,
)

MAIN: Final = "main"
SPELLING: Final = "spelling"
"""An extra: for each component, the options that a JobSpec was read from, as they were written."""

IMAGE_OPTION: Final = "--container-image="
MOUNTS_OPTION: Final = "--container-mounts="

_CALLS: Final = re.compile(
    r"^[^#\n]*?(?<![\w.$-])(srun|sbatch|salloc|scontrol|scancel|sattach|sbcast)(?=[ \t\\;|&)]|$)",
    re.MULTILINE,
)
_VARIABLE: Final = re.compile(r"\$\{?(SLURM_[A-Z_]+)")
_ASSIGNED: Final = re.compile(
    r"^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=[\"']?(?P<value>[^\s\"'$`]+)", re.MULTILINE
)
_MOST_NAMED: Final = 8
_LONGEST_NAME: Final = 256


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    script = read(document)
    findings = Findings(document.room)
    before = secrets.read(script)
    told, taken, named = secrets.withheld(before)
    said = _list_options(script, told)
    for component, options in enumerate(said):
        check(component, options, findings)
    array = arrays.read(said, findings)
    reader = _Reader(said, told, findings, array)
    roles = reader.roles()
    findings.refuse_if_any(script)
    if any(role.image for role in roles):
        findings.note("needs_pyxis", f"/{SCRIPT}" if told.roles else "/container-image")
    for name in named:
        findings.note("secret_taken", f"/{secrets.EXPORT}", key=name, name=name)
    spec = reader.spec(roles)
    return Parsed(
        spec=spec,
        extras=_list_extras(script, said, told, findings, array),
        notes=findings.notes(script),
        secrets=taken,
        text=secrets.rewrite(script, before, told),
        array=array,
    )


def _list_options(script: Script, told: ScriptVariables) -> list[dict[str, str]]:
    """Return the options of each component, without secrets."""
    said = [script.options(component) for component in range(script.components)]
    if secrets.EXPORT in said[0] and told.export:
        said[0][secrets.EXPORT] = told.export.written
    return said


@dataclass(frozen=True, slots=True)
class _Reader:
    """The job that the options and the commands say."""

    said: Sequence[Mapping[str, str]]
    told: ScriptVariables
    findings: Findings
    array: Array | None

    def roles(self) -> tuple[RoleSpec, ...]:
        """One role for each component, or for each srun of a script of ours."""
        command = self.told.body.command
        if not command.strip():
            self.findings.problem("no_commands", f"/{SCRIPT}", SBATCH)
            return ()
        if self.told.roles:
            return tuple(self._make_role(index, role) for index, role in enumerate(self.told.roles))
        self._remark_on_command(command)
        count = len(self.said)
        return tuple(self._role(index, command, _name_component(index)) for index in range(count))

    def spec(self, roles: tuple[RoleSpec, ...]) -> JobSpec:
        """Return the job."""
        said = self.said[0]
        variables = self._variables()
        end_signal = read_option(said, "signal")
        whole: dict[str, Any] = {"end_signal": end_signal} if end_signal else {}
        return JobSpec(
            name=self._job_name(),
            description=said.get("comment", ""),
            framework=self._framework(roles),
            roles=roles,
            env=variables.plain,
            secret_env=variables.secret,
            mounts=self._mounts(),
            quota=said.get("partition", ""),
            retry=RetryPolicy(fancy="no-requeue" not in said),
            time_limit_s=read_option(said, "time") or None,
            hold="hold" in said,
            after=read_option(said, "dependency") or (),
            not_before=read_option(said, "begin") or "",
            **whole,
        )

    def _job_name(self) -> str:
        name = self.said[0].get("job-name", "")
        if not name:
            self.findings.note("job_unnamed", "/job-name", value=DEFAULT_NAME)
        return name[:_LONGEST_NAME] or DEFAULT_NAME

    def _mounts(self) -> tuple[Mount, ...]:
        """Return the places of the first component, or of the first srun of a script of ours."""
        if self.told.roles:
            text = _option_of(self.told.roles[0], MOUNTS_OPTION)
            return (mounts(text) if text else None) or ()
        return read_option(self.said[0], "container-mounts") or ()

    def _framework(self, roles: tuple[RoleSpec, ...]) -> Framework | None:
        """Slurm's, where the commands count on Slurm to start them, or to start anything but one process."""
        if self.told.roles:
            return None
        several = sum(role.replicas for role in roles) > 1
        return Framework.SLURM if several or _CALLS.search(self.told.body.command) else None

    def _variables(self) -> Variables:
        """Return the job's variables, and the secrets of all."""
        found = self._collect(self.told.variables)
        for role in self.told.roles or ():
            for name, secret in self._collect(role.env).secret.items():
                found.secret.setdefault(name, secret)
        return found

    def _collect(self, variables: Mapping[str, str]) -> Variables:
        pairs = [(f"/{secrets.EXPORT}", name, value) for name, value in variables.items()]
        return collect(pairs, self.findings)

    def _make_role(self, index: int, started: Started) -> RoleSpec:
        """Return a role of a script of ours."""
        name = image(_option_of(started, IMAGE_OPTION))
        role = self._role(index, started.command, started.name, by_task=True)
        completion = CompletionPolicy(
            min_failed=1 if started.fails else None,
            min_succeeded=role.replicas if started.ends else None,
        )
        env = self._collect(started.env).plain
        return role.model_copy(update={"completion": completion, "image": name, "env": env})

    def _role(self, index: int, command: str, name: str, *, by_task: bool = False) -> RoleSpec:
        own = self.said[index]
        size = sizes.read(own, by_task=by_task)
        if not by_task:
            self._remark_on_size(index, own, size)
        return RoleSpec(
            name=name,
            replicas=size.replicas,
            command=command,
            image=image(own.get("container-image", "")),
            resources=Resources(
                cpu_milli=size.cpu_milli,
                memory_mib=size.memory_mib,
                gpus=size.gpus,
                gpu_type=size.gpu_type,
            ),
            nodes=NodeChoice(
                only=read_option(own, "nodelist") or (),
                never=read_option(self.said[0], "exclude") or (),
                labels=read_option(own, "constraint") or {},
            ),
        )

    def _remark_on_size(self, index: int, own: Mapping[str, str], size: sizes.Size) -> None:
        """Note the sizes taken where the options leave them open."""
        at = pointer_of(index, "nodes")
        found = node_range(own.get("nodes", ""))
        if found and found[0] != found[1]:
            self.findings.note("range_taken", at, key="nodes", value=own["nodes"], taken=found[0])
        tasks = sizes.number(own, "ntasks")
        if not sizes.nodes(own) and tasks > 1:
            self.findings.note("one_node_taken", pointer_of(index, "ntasks"), key="ntasks", value=tasks)
        if own.get("mem") == "0" or "exclusive" in own:
            key = "exclusive" if "exclusive" in own else "mem"
            self.findings.note("whole_node", pointer_of(index, key), key=key)
        if not any(own.get(name) for name in ("mem", "mem-per-cpu", "mem-per-gpu")):
            self.findings.note("no_memory", at, key="mem", value=size.memory_mib)

    def _remark_on_command(self, command: str) -> None:
        """Note what the commands depend on, and the secrets they give away."""
        where = f"/{SCRIPT}"
        commands.remark_on(command, where, self.findings, MAIN)
        of_slurm = [  # those of an array are set here too
            f"${name}"
            for name in _VARIABLE.findall(command)
            if self.array is None or not name.startswith("SLURM_ARRAY_")
        ]
        names = [*dict.fromkeys((*_CALLS.findall(command), *of_slurm))]
        if names:
            first = f"{where}/{names[0].removeprefix('$')}"
            self.findings.note("needs_slurm", first, names=", ".join(names[:_MOST_NAMED]))
        several = len(self.said) > 1 or sizes.nodes(self.said[0]) > 1
        if several:
            self.findings.note("script_runs_once", where)
        secretive = [match["name"] for match in _ASSIGNED.finditer(command) if looks_secret(match["name"])]
        for name in list(dict.fromkeys(secretive))[:_MOST_NAMED]:
            self.findings.note("secret_in_script", f"{where}/{name}", name=name)


def _option_of(started: Started, option: str) -> str:
    """Return the value of an option of a role's srun, "" when it has none."""
    found = [each.removeprefix(option) for each in started.options if each.startswith(option)]
    return found[-1] if found else ""


def _name_component(index: int) -> str:
    """Return the name of a component's role."""
    return f"hetjob-{index}" if index else MAIN


def _list_extras(
    script: Script,
    said: Sequence[Mapping[str, str]],
    told: ScriptVariables,
    findings: Findings,
    array: Array | None,
) -> dict[str, object]:
    """Return the parts without a meaning here, each noted, and the spelling of the rest."""
    extras: dict[str, object] = {}
    spelling: list[dict[str, str]] = []
    for component, options in enumerate(said):
        at = pointer_of(component, "").rstrip("/")
        for name, value in Record(options, at, findings).unknown(OPTIONS).items():
            extras[pointer_of(component, name)] = value
        spelling.append({})
        for name, value in options.items():
            if has_meaning(component, name, value):
                spelling[component][name] = value
            elif name in OPTIONS:
                where = pointer_of(component, name)
                extras[where] = value
                if array is None or where != array.pointer:
                    findings.note("kept_unused", where, key=name, value=short(value))
    if array is not None:
        count, most = len(array.indexes), array.most_at_once
        at_once = most if most < count else None
        findings.note("array", array.pointer, value=short(said[0][arrays.NAME]), count=count, at_once=at_once)
    extras[SPELLING] = spelling
    if told.body.interpreter != BASH:
        extras[INTERPRETER] = told.body.interpreter
    return extras
