"""Job templates and their parameters, read from TOML and checked."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Final

from pydantic import Field, model_validator

from jobs import dialects
from jobs.dialects.document import Document
from jobs.jobtemplates.constraints import Constraint, rules_of, unknown
from jobs.spec import Model

_VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_]*"
PATHS: Final = (
    r"name|description|time_limit_s|priority|mounts|code\.(uri|branch|commit|path)"
    rf"|(secret_)?env\.{_VARIABLE}"
    rf"|roles\.[0-9]\.(image|command|replicas|resources\.[a-z_]+|env\.{_VARIABLE})"
)
"""Paths of a JobSpec that an answer may fill."""

TAKEN: Final = frozenset({"key", "place", "do", "template", "version", "csrfmiddlewaretoken"})
"""Names of the form's other fields."""


class Kind(StrEnum):
    """Kind of a parameter's answer.

    HOURS: so many, or none at all; a job file has them as in 2h.  FOLDER: a folder of the cluster's, which is
    also mounted.  JOBS: the folders of earlier jobs, to be read.  NUMBER: any decimal one, written as it was
    typed.  SECRET: the name of a secret of the person's own, never its value.
    """

    NAME = "name"
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    CHOICE = "choice"
    HOURS = "hours"
    GPU_TYPE = "gpu_type"
    IMAGE = "image"
    FOLDER = "folder"
    JOBS = "jobs"
    SECRET = "secret"  # noqa: S105 a word


NUMBERS: Final = frozenset({Kind.INTEGER, Kind.HOURS})
"""Kinds whose answers are whole numbers."""


class Parameter(Model):
    """A question.  Its answer, `times` so much if it is a number, is put at each of `fills`.

    `label` and `help` are what people read; the shipped ones are named in the reader's language instead.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
    kind: Kind
    fills: Annotated[tuple[Annotated[str, Field(pattern=f"^({PATHS})$")], ...], Field(min_length=1)]
    label: Annotated[str, Field(max_length=80)] = ""
    help: Annotated[str, Field(max_length=400)] = ""
    default: str | int = ""
    choices: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=100)] = ()
    least: int = 0
    most: int = 2**31
    times: int = 1
    required: bool = False

    @model_validator(mode="after")
    def _default_is_an_answer(self) -> Parameter:
        number = isinstance(self.default, int)
        if number != (self.kind in NUMBERS):
            raise ValueError("a default is a number where the answer is one")
        if isinstance(self.default, int) and not self.least <= self.default <= self.most:
            raise ValueError("the default is not within the limits")
        if (self.kind is Kind.CHOICE) != bool(self.choices):
            raise ValueError("a choice has something to choose from, and nothing else has")
        if self.choices and self.default and self.default not in self.choices:
            raise ValueError("the default is none of the choices")
        return self

    @model_validator(mode="after")
    def _the_form_can_ask(self) -> Parameter:
        if self.name in TAKEN:
            raise ValueError("the form has something of that name already")
        for path in self.fills:
            if path.startswith("secret_env.") != (self.kind is Kind.SECRET):
                raise ValueError("the name of a secret fills a secret variable, and nothing else does")
            if bool(_WHOLE.fullmatch(path)) != (self.kind is Kind.INTEGER):
                raise ValueError("a whole number fills a field that is one")
        return self


_WHOLE: Final = re.compile(
    r"time_limit_s|priority|roles\.[0-9]\.(replicas|resources\.(cpu_milli|memory_mib|shm_mib|disk_mib|gpus))"
)
"""The fields that are whole numbers."""


class JobTemplate(Model):
    """`command` is what every role of `text` runs, where it can be written as it is.

    `opens` is the label of the endpoint that the job announces; empty for a terminal beside it. Of
    `programs` the job needs one, which the Python packages `packages` bring where it is not installed.
    `constraints` say of fields, by pointers into the JobSpec or JSONPaths into the file, whether what the
    template says is locked, required or may be overridden. A job that is there to be worked in is
    `interactive`. One that is there to be tried with several values has in `sweep` which, as the page for
    new jobs takes them.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
    title: Annotated[str, Field(min_length=1, max_length=80)]
    about: Annotated[str, Field(max_length=2000)] = ""
    icon: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] = "bolt"
    version: Annotated[int, Field(ge=1)] = 1
    dialect: str
    text: str
    command: str = ""
    opens: Annotated[str, Field(max_length=64)] = ""
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    interactive: bool = False
    sweep: Annotated[str, Field(max_length=20_000)] = ""
    parameters: Annotated[tuple[Parameter, ...], Field(max_length=40)] = ()
    constraints: dict[Annotated[str, Field(max_length=300)], Constraint] = Field(default_factory=dict)

    @cached_property
    def document(self) -> Document:
        """Return the job file."""
        return Document(self.text, self.dialect)

    @model_validator(mode="after")
    def _text_is_a_job_file(self) -> JobTemplate:
        if self.dialect not in dialects.NAMES:
            raise ValueError("the dialect is not known")
        _parsed = self.document.parsed
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) != len(names):
            raise ValueError("two parameters have one name")
        return self

    @model_validator(mode="after")
    def _constraints_are_about_something(self) -> JobTemplate:
        if found := unknown(self.constraints, self.document):
            raise ValueError(f"there is no field {found[0]}")
        if self.constraints.get("/name") is Constraint.LOCKED:
            raise ValueError("every job has a name of its own")
        rules = rules_of(self.constraints, self.dialect)
        for parameter in self.parameters:
            for path in parameter.fills:
                if rules.of(f"/{path.replace('.', '/')}") is Constraint.LOCKED:
                    raise ValueError(f"{path} is locked, and nobody can be asked for it")
        return self

    @property
    def ref(self) -> str:
        """Return the reference of this version, ID@VERSION."""
        return f"{self.id}@{self.version}"


def load(text: str) -> JobTemplate:
    """Read a template in TOML.  Raises ValueError, `dialects.base.Refused`."""
    return JobTemplate.model_validate(tomllib.loads(text), strict=False)
