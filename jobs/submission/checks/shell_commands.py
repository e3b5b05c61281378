"""Calls of Slurm's programs and of environment modules in a job's command.

Only a word where a shell looks for a command is a call; a program that a script tries first (`command -v
srun`), or defines itself, is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_STARTS: Final = (
    r"(?P<before>(?:^|[;&|({`]|(?<![\w-])(?:do|then|else|exec|time|if|while|until|!)(?=[ \t]))[ \t]*"
    r"(?:[A-Za-z_]\w*=[^\s;&|]*[ \t]+)*)"
)
"""The beginning of a command, with the variables that are set for it alone."""

_ENDS: Final = r"(?=[\s;&|)]|$)"
_SLURM: Final = re.compile(
    rf"{_STARTS}(?P<program>srun|sbatch|salloc|scontrol|scancel|sattach|sbcast){_ENDS}", re.MULTILINE
)
_MODULE: Final = re.compile(
    rf"{_STARTS}(?P<program>module[ \t]+(?:load|add|unload|rm|swap|switch|purge|use|unuse|list|avail)"
    rf"|ml[ \t]+[\w.+-]+/[\w.+-]+){_ENDS}",
    re.MULTILINE,
)
_SPACE: Final = r"(?:[ \t]|\\\n)+"
_SRUN: Final = re.compile(
    rf"{_STARTS}srun(?:{_SPACE}--?[A-Za-z][\w-]*(?:=[^\s;&|]*|{_SPACE}[0-9][\w:]*(?=[ \t\\]))?)*{_SPACE}",
    re.MULTILINE,
)
_MODULE_LINE: Final = re.compile(r"^[ \t]*(?:module|ml)[ \t][^\n;&|]*(?:\n|$)", re.MULTILINE)
_MODULE_STEP: Final = re.compile(
    r"(?P<before>^|[;&|({])[ \t]*(?:(?:module|ml)[ \t][^\n;&|]*(?:&&|;)[ \t]*)+", re.MULTILINE
)
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Call:
    """A program that is called, and the line on which it is."""

    program: str
    line: str


def slurm_call(command: str) -> Call | None:
    """Return the first call of one of Slurm's programs, if any."""
    return _call(command, _SLURM)


def module_call(command: str) -> Call | None:
    """Return the first call of `module`; None where there is none, or the script defines it itself."""
    return None if re.search(r"/init/(?:ba|z|k)?sh\b|modules\.sh\b", command) else _call(command, _MODULE)


def without_srun(command: str) -> str | None:
    """Return the command without srun before its programs; None where that can't be told."""
    made = _SRUN.sub(lambda found: found["before"], command)
    return made if made.strip() and made != command and slurm_call(made) is None else None


def without_modules(command: str) -> str | None:
    """Return the command without the lines that load modules; None where that can't be told or is empty."""
    made = _MODULE_STEP.sub(lambda found: found["before"], _MODULE_LINE.sub("", command))
    return made if made.strip() and module_call(made) is None else None


def _call(command: str, pattern: re.Pattern[str]) -> Call | None:
    text = _COMMENT.sub("", command)
    for found in pattern.finditer(text):
        program = found["program"].split()[0]
        if not _is_prepared(text, program):
            start = text.rfind("\n", 0, found.start("program")) + 1
            end = text.find("\n", found.end())
            return Call(program, text[start : end if end >= 0 else len(text)].strip())
    return None


def _is_prepared(text: str, program: str) -> bool:
    """Tell whether the script tests for the program, or defines it."""
    tried = rf"(?:command[ \t]+-[vV]|which|type|hash)[ \t]+(?:-\w+[ \t]+)*{program}\b"
    defined = rf"(?:^|[ \t;]){program}[ \t]*\([ \t]*\)|\b(?:alias|function)[ \t]+{program}\b"
    return re.search(f"{tried}|{defined}", text, re.MULTILINE) is not None
