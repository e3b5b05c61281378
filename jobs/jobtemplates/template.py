"""What a template says, read from TOML and checked."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, model_validator

from jobs import dialects
from jobs.spec import Model

PATHS: Final = r"name|time_limit_s|mounts|env\.[A-Z_]+|roles\.[0-9]\.(image|command|resources\.[a-z_]+)"
"""What of a JobSpec an answer may fill."""


class Kind(StrEnum):
    """What kind of answer a parameter takes.

    HOURS: so many, or none at all; a job file has them as in 2h.  FOLDER: a folder of the cluster's, which is
    also mounted.  JOBS: the folders of earlier jobs, to be read.
    """

    NAME = "name"
    INTEGER = "integer"
    HOURS = "hours"
    GPU_TYPE = "gpu_type"
    IMAGE = "image"
    FOLDER = "folder"
    JOBS = "jobs"


class Parameter(Model):
    """A question.  Its answer, `times` so much if it is a number, is put at each of `fills`."""

    name: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    kind: Kind
    fills: Annotated[tuple[Annotated[str, Field(pattern=f"^({PATHS})$")], ...], Field(min_length=1)]
    default: str | int = ""
    least: int = 0
    most: int = 2**31
    times: int = 1
    required: bool = False

    @model_validator(mode="after")
    def _default_is_an_answer(self) -> Parameter:
        number = isinstance(self.default, int)
        if number != (self.kind in {Kind.INTEGER, Kind.HOURS}):
            raise ValueError("a default is a number where the answer is one")
        if isinstance(self.default, int) and not self.least <= self.default <= self.most:
            raise ValueError("the default is not within the limits")
        return self


class JobTemplate(Model):
    """`command` is put into the first role of `text`, where it can be written as it is.

    `opens` is the label of the endpoint that the job announces; empty for a terminal beside it.  Of
    `programs` the job needs one.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
    title: Annotated[str, Field(min_length=1, max_length=80)]
    about: str = ""
    icon: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] = "bolt"
    dialect: str
    text: str
    command: str = ""
    opens: Annotated[str, Field(max_length=64)] = ""
    programs: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()

    @model_validator(mode="after")
    def _text_is_a_job_file(self) -> JobTemplate:
        if self.dialect not in dialects.NAMES:
            raise ValueError("the dialect is not known")
        dialects.get(self.dialect).parse(self.text)
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) != len(names):
            raise ValueError("two parameters have one name")
        return self


def load(text: str) -> JobTemplate:
    """A template in TOML.  Raises ValueError, `dialects.base.Refused`."""
    return JobTemplate.model_validate(tomllib.loads(text), strict=False)
