"""Job files made of a template's answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from jobs.dialects.document import Document
from jobs.jobtemplates.template import JobTemplate, Kind, Parameter
from jobs.spec import JobSpec

Answer: TypeAlias = str | int | Sequence[Mapping[str, str]]
"""A text, a number, or (of `Kind.JOBS`) places: `uri`, and the `path` in the job."""

Answers: TypeAlias = Mapping[str, Answer]


def fill(template: JobTemplate, answers: Answers, *, install: bool = False) -> Document:
    """Return the job file; missing answers have their defaults.  Raises ValueError for an invalid JobSpec.

    With `install` the job installs the template's Python packages before its command.
    """
    return template.document.render(build_spec(template, answers, install=install)).document


def build_spec(template: JobTemplate, answers: Answers, *, install: bool = False) -> JobSpec:
    """Return the JobSpec that the answers make."""
    value: dict[str, Any] = json.loads(template.document.parsed.spec.model_dump_json())
    if template.command:
        for role in value["roles"]:
            role["command"] = template.command
    for parameter in template.parameters:
        answer = answers.get(parameter.name, parameter.default)
        for path in parameter.fills:
            _fill_path(value, path, parameter, answer)
    if install:
        value["requirements"]["packages"] += template.packages
    return JobSpec.model_validate_json(json.dumps(value))


def _fill_path(value: dict[str, Any], path: str, parameter: Parameter, answer: Answer) -> None:
    if parameter.kind is Kind.HOURS:
        answer = f"{answer}h" if answer else ""
    if path == "mounts":
        value["mounts"] += _mounts(parameter, answer)
        return
    *way, last = path.split(".")
    inner: Any = value
    for step in way:
        if isinstance(inner, dict) and inner[step] is None:
            inner[step] = {}
        inner = inner[int(step)] if isinstance(inner, list) else inner[step]
    if isinstance(answer, int):
        inner[last] = answer * parameter.times
    elif parameter.kind is Kind.SECRET:
        inner[last] = {"name": answer}
    elif answer or last in inner:
        inner[last] = answer
    if way[-1:] in (["env"], ["secret_env"]) and not answer:
        inner.pop(last, None)
    if way == ["code"] and not any(inner.values()):
        value["code"] = None


def _mounts(parameter: Parameter, answer: Answer) -> list[dict[str, Any]]:
    if parameter.kind is Kind.JOBS and not isinstance(answer, str | int):
        return [{"uri": one["uri"], "path": one["path"], "read_only": True} for one in answer]
    return [{"uri": answer, "path": answer}] if answer else []
