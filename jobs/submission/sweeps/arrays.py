"""A job array as a sweep: each index is the value of a variable, as Slurm's tasks have it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from jobs.dialects.base import Array, Fix, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.sbatch import arrays
from jobs.models import Sweep
from jobs.spec import JobSpec
from jobs.submission.sweeps.expanding import Values, expanded

INDEX: Final = "SLURM_ARRAY_TASK_ID"
DIALECT: Final = "sbatch"
"""The one dialect with arrays."""

_LEAST_NUMBER: Final = 1_000_000_000
"""No Slurm numbers its jobs so high: a script that calls `scancel $SLURM_ARRAY_JOB_ID` ends nobody's job."""


def of(document: Document) -> Array | None:
    """The array that a job file is; None also where it can't be read."""
    try:
        return document.parsed.array
    except Refused:
        return None


def number_of(public_id: str) -> int:
    """What SLURM_ARRAY_JOB_ID is in the jobs of a sweep: made of its id, and no job of Slurm's."""
    return _LEAST_NUMBER + int(public_id, 36) % _LEAST_NUMBER


def values(array: Array) -> list[Values]:
    """What varies between the jobs."""
    return [{f"env.{INDEX}": index} for index in array.indexes]


def shared(spec: JobSpec, array: Array, number: int) -> JobSpec:
    """The job with the variables that are the same in all."""
    told = {
        "SLURM_ARRAY_JOB_ID": number,
        "SLURM_ARRAY_TASK_COUNT": len(array.indexes),
        "SLURM_ARRAY_TASK_MIN": array.indexes[0],
        "SLURM_ARRAY_TASK_MAX": array.indexes[-1],
        "SLURM_ARRAY_TASK_STEP": array.step,
    }
    env = {**spec.env, **{name: str(value) for name, value in told.items()}}
    return spec.model_copy(update={"env": env})


def one(document: Document, array: Array, number: int, index: int) -> Document:
    """The job file for one index: no array any more, and the index where a file's name has it."""
    filled = (Fix(at, arrays.filled(name, number, index)) for at, name in array.named.items())
    return document.apply_fixes([Fix(array.pointer), *filled])


def placed(problem: Problem, document: Document) -> Problem:
    """A problem of one of the jobs with its place in the text of all."""
    line, column = (problem.pointer and document.locate(problem.pointer)) or (None, None)
    return replace(problem, line=line, column=column)


def first(document: Document, array: Array) -> Document:
    """The job file of the first job.  Raises CannotSweepError, Refused."""
    common = shared(document.parsed.spec, array, _LEAST_NUMBER)
    [spec] = expanded(common, values(array)[:1], array.indexes[:1])
    return one(document, array, _LEAST_NUMBER, array.indexes[0]).rewrite(spec)


def file_of(sweep: Sweep) -> str:
    """The file of a sweep that is an array, with as many at once as are allowed now."""
    document = Document(sweep.file, DIALECT)
    array = of(document)
    if array is None or array.most_at_once == sweep.at_once:
        return sweep.file
    fix = Fix(array.pointer, arrays.written(array, sweep.at_once))
    return document.apply_fixes([fix]).text
