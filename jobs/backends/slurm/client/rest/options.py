"""Translates a script's options to fields of a job: slurmrestd does not read them as sbatch does.

Up to v0.0.38 fields are sbatch's options under other names, most of them in sbatch's own spelling (what its
schema leaves out, such as `nodelist`, it takes all the same).  From v0.0.40 on they are those of Slurm's
job description.  An option without a field is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from jobs.backends.base import Refused
from jobs.backends.slurm.client.rest.client import WITH_PARSERS
from jobs.dialects.document import Document
from jobs.dialects.sbatch import amounts, times
from jobs.dialects.sbatch.header import read

Fields = dict[str, Any]
Field = Callable[[str], Fields]
SPREAD: Final = "\nalone=yes\n"
"""In a script that Slurm itself spreads, whose replicas are no steps: only its shell can be signalled."""

PASSED_ON: Final = (
    "cpus-per-task",
    "gpus",
    "gpus-per-node",
    "gpus-per-task",
    "mem-per-cpu",
    "ntasks",
    "ntasks-per-node",
)
"""Options that sbatch itself passes to a script as environment variables."""


class _NoField(ValueError):
    """There is no field for the value."""


def build_body(script: str, version: int, environment: Mapping[str, str]) -> Fields:
    """Return the request that submits `script`, held.  Raises Refused."""
    whole = read(Document(script))
    components = [whole.options(place) for place in range(whole.components)]
    if version < WITH_PARSERS and SPREAD in script and components[0].get("signal", "").startswith("B:"):
        detail = f"slurmrestd v0.0.{version} can't signal a script that Slurm itself spreads"
        raise Refused.by_engine(detail)
    variables = {**environment, **_sbatch_variables(components)}
    jobs = [_job(options, version, variables, held=place == 0) for place, options in enumerate(components)]
    for job in jobs[1:]:
        job.setdefault("current_working_directory", jobs[0].get("current_working_directory", "/"))
        job.setdefault("name", jobs[0].get("name", ""))
    return {"script": script, **({"job": jobs[0]} if len(jobs) == 1 else {"jobs": jobs})}


def _job(options: Mapping[str, str], version: int, variables: Mapping[str, str], *, held: bool) -> Fields:
    fields: Fields = {}
    known = _NEW if version >= WITH_PARSERS else _OLD
    for name, value in options.items():
        try:
            found = known[name](value)
        except (KeyError, _NoField):
            shown = f"--{name}={value}" if value else f"--{name}"
            detail = f"slurmrestd v0.0.{version} has no word for {shown}"
            raise Refused.by_engine(detail) from None
        for field, more in found.items():
            fields[field] = f"{fields[field]},{more}" if field in fields else more
    listed = [f"{name}={value}" for name, value in variables.items()]
    fields["environment"] = listed if version >= WITH_PARSERS else dict(variables)
    return {**fields, **({"hold": True} if held else {})}


def _sbatch_variables(components: list[dict[str, str]]) -> dict[str, str]:
    """Return the variables that sbatch adds."""
    several = len(components) > 1
    return {
        f"SLURM_{name.replace('-', '_').upper()}{f'_HET_GROUP_{place}' if several else ''}": options[name]
        for place, options in enumerate(components)
        for name in PASSED_ON
        if name in options
    }


def _text(field: str) -> Field:
    return lambda value: {field: value}


def _whole(field: str) -> Field:
    def read(value: str) -> Fields:
        if not value.lstrip("-").isdigit():
            raise _NoField(value)
        return {field: int(value)}

    return read


def _mib(field: str, wrap: Callable[[int], Any] = lambda number: number) -> Field:
    def read(value: str) -> Fields:
        if (mib := amounts.memory(value)) is None:
            raise _NoField(value)
        return {field: wrap(mib)}

    return read


def _always(field: str, value: Any) -> Field:
    return lambda _value: {field: value}


def _word(field: str, words: Mapping[str, Any]) -> Field:
    def read(value: str) -> Fields:
        if value not in words:
            raise _NoField(value)
        return {field: words[value]}

    return read


def _signal_old(value: str) -> Fields:
    """Signal the whole job: v0.0.38 can't signal the script alone."""
    return {"signal": value.removeprefix("B:")}


_OLD: Final[Mapping[str, Field]] = {
    **{
        name: _text(field)
        for name, field in {
            "account": "account",
            "array": "array",
            "begin": "begin_time",
            "chdir": "current_working_directory",
            "comment": "comment",
            "constraint": "constraints",
            "container": "container",
            "cpus-per-gpu": "cpus_per_gpu",
            "deadline": "deadline",
            "dependency": "dependency",
            "distribution": "distribution",
            "error": "standard_error",
            "exclude": "exclude_nodes",
            "gpus": "gpus",
            "gpus-per-node": "gpus_per_node",
            "gpus-per-socket": "gpus_per_socket",
            "gpus-per-task": "gpus_per_task",
            "gres": "gres",
            "gres-flags": "gres_flags",
            "job-name": "name",
            "licenses": "licenses",
            "mail-type": "mail_type",
            "mail-user": "mail_user",
            "mcs-label": "mcs_label",
            "nodelist": "nodelist",
            "nodes": "nodes",
            "open-mode": "open_mode",
            "output": "standard_output",
            "partition": "partition",
            "prefer": "prefer",
            "qos": "qos",
            "reservation": "reservation",
            "time": "time_limit",
            "time-min": "time_minimum",
            "wckey": "wckey",
        }.items()
    },
    **{
        name: _whole(field)
        for name, field in {
            "cpus-per-task": "cpus_per_task",
            "mincpus": "minimum_cpus_per_node",
            "nice": "nice",
            "ntasks": "tasks",
            "ntasks-per-core": "tasks_per_core",
            "ntasks-per-node": "tasks_per_node",
            "ntasks-per-socket": "tasks_per_socket",
            "threads-per-core": "threads_per_core",
        }.items()
    },
    "exclusive": _word("exclusive", {"": "exclusive", "user": "user", "mcs": "mcs"}),
    "mem": _mib("memory_per_node"),
    "mem-per-cpu": _mib("memory_per_cpu"),
    "mem-per-gpu": _mib("memory_per_gpu"),
    "no-kill": _word("no_kill", {"": "set", "off": "off"}),
    "no-requeue": _always("no_requeue", value=True),
    "requeue": _always("requeue", value=True),
    "signal": _signal_old,
    "tmp": _mib("temporary_disk_per_node"),
}


def _number(number: int) -> Fields:
    return {"set": True, "infinite": False, "number": number}


def _minutes(field: str) -> Field:
    def read(value: str) -> Fields:
        if (seconds := times.seconds(value)) is None:
            raise _NoField(value)
        infinite = {"set": True, "infinite": True, "number": 0}
        return {field: _number(seconds // 60) if seconds else infinite}

    return read


def _moment(wrap: Callable[[int], Any], field: str) -> Field:
    """Translate a time; relative ones of Slurm (`now+1hour`) are not supported."""

    def read(value: str) -> Fields:
        try:
            return {field: wrap(int(datetime.fromisoformat(times.moment(value) or value).timestamp()))}
        except ValueError:
            raise _NoField(value) from None

    return read


def _signal_new(value: str) -> Fields:
    to, _, rest = value.rpartition(":")
    name, _, before = rest.partition("@")
    if to not in ("", "B") or not (before or "60").isdigit():
        raise _NoField(value)
    flags = {"kill_warning_flags": ["BATCH_JOB"]} if to else {}
    return {"kill_warning_signal": name, "kill_warning_delay": _number(int(before or "60")), **flags}


def _devices(field: str) -> Field:
    return lambda value: {field: ",".join(f"gres/gpu:{each}" for each in value.split(","))}


_NEW: Final[Mapping[str, Field]] = {
    **{name: field for name, field in _OLD.items() if name != "gres-flags"},
    "begin": _moment(_number, "begin_time"),
    "cpus-per-gpu": lambda value: {"cpus_per_tres": f"gres/gpu:{value}"},
    "deadline": _moment(int, "deadline"),
    "exclude": lambda value: {"excluded_nodes": [value]},
    "exclusive": _word("shared", {"": ["none"], "user": ["user"], "mcs": ["mcs"]}),
    "gpus": _devices("tres_per_job"),
    "gpus-per-node": _devices("tres_per_node"),
    "gpus-per-socket": _devices("tres_per_socket"),
    "gpus-per-task": _devices("tres_per_task"),
    "gres": lambda value: {"tres_per_node": ",".join(f"gres/{each}" for each in value.split(","))},
    "mail-type": lambda value: {"mail_type": value.upper().split(",")},
    "mem": _mib("memory_per_node", _number),
    "mem-per-cpu": _mib("memory_per_cpu", _number),
    "mem-per-gpu": _mib("memory_per_tres", lambda mib: f"gres/gpu:{mib}"),
    "no-kill": _word("kill_on_node_fail", {"": False, "off": True}),
    "no-requeue": _always("requeue", value=False),
    "nodelist": lambda value: {"required_nodes": [value]},
    "open-mode": _word("open_mode", {"append": ["APPEND"], "truncate": ["TRUNCATE"]}),
    "signal": _signal_new,
    "time": _minutes("time_limit"),
    "time-min": _minutes("time_minimum"),
}
