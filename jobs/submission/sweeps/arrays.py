"""Job arrays as sweeps: each index is the value of a variable, as Slurm's tasks have it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from jobs.dialects.base import Array, Fix, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.sbatch import arrays
from jobs.models import Sweep
from jobs.spec import JobSpec
from jobs.submission.sweeps.expansion import Values, expand

INDEX: Final = "SLURM_ARRAY_TASK_ID"
DIALECT: Final = "sbatch"
"""The one dialect with arrays."""

_LEAST_NUMBER: Final = 1_000_000_000
"""Above all of Slurm's job numbers: `scancel $SLURM_ARRAY_JOB_ID` in a script ends no job."""


def of(document: Document) -> Array | None:
    """Return a job file's array; None for no array and where it can't be read."""
    try:
        return document.parsed.array
    except Refused:
        return None


def number_of(public_id: str) -> int:
    """Return SLURM_ARRAY_JOB_ID for the jobs of a sweep: made of its id, and no job of Slurm's."""
    return _LEAST_NUMBER + int(public_id, 36) % _LEAST_NUMBER


def values(array: Array) -> list[Values]:
    """Return the values of each job."""
    return [{f"env.{INDEX}": index} for index in array.indexes]


def with_shared_variables(spec: JobSpec, array: Array, number: int) -> JobSpec:
    """Return the job with the variables that are the same in all."""
    variables = {
        "SLURM_ARRAY_JOB_ID": number,
        "SLURM_ARRAY_TASK_COUNT": len(array.indexes),
        "SLURM_ARRAY_TASK_MIN": array.indexes[0],
        "SLURM_ARRAY_TASK_MAX": array.indexes[-1],
        "SLURM_ARRAY_TASK_STEP": array.step,
    }
    env = {**spec.env, **{name: str(value) for name, value in variables.items()}}
    return spec.model_copy(update={"env": env})


def one(document: Document, array: Array, number: int, index: int) -> Document:
    """Return the job file for one index: without the array, and with the index in file names."""
    filled = (Fix(at, arrays.fill_pattern(name, number, index)) for at, name in array.named.items())
    return document.apply_fixes([Fix(array.pointer), *filled])


def locate_problem(problem: Problem, document: Document) -> Problem:
    """Return a problem of one of the jobs with its position in the text of all."""
    line, column = (problem.pointer and document.locate(problem.pointer)) or (None, None)
    return replace(problem, line=line, column=column)


def first(document: Document, array: Array) -> Document:
    """Return the job file of the first job.  Raises CannotSweepError, Refused."""
    common = with_shared_variables(document.parsed.spec, array, _LEAST_NUMBER)
    [spec] = expand(common, values(array)[:1], array.indexes[:1])
    return one(document, array, _LEAST_NUMBER, array.indexes[0]).rewrite(spec)


def file_of(sweep: Sweep) -> str:
    """Return the file of a sweep that is an array, with the current limit of jobs at once."""
    document = Document(sweep.file, DIALECT)
    array = of(document)
    if array is None or array.most_at_once == sweep.at_once:
        return sweep.file
    fix = Fix(array.pointer, arrays.to_text(array, sweep.at_once))
    return document.apply_fixes([fix]).text
