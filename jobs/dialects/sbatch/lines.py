"""An sbatch script: its interpreter, the options of its `#SBATCH` lines, and where its commands begin.

As in Slurm the lines count up to the first line that is neither empty nor a comment, and only where the
mark stands at the beginning of its line, so that `##SBATCH` is a comment.  `hetjob` (once `packjob`)
begins the next component of a heterogeneous job.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from jobs.dialects.base import Note, Position
from jobs.dialects.sbatch.words import SPACES
from jobs.dialects.spans import split

MARK: Final = "#SBATCH"
PBS: Final = "#PBS"
INTERPRETER: Final = "interpreter"
SCRIPT: Final = "script"
LINE_ENDS: Final = "line_ends"
"""Pointers beside those of options: the first line's program, the commands, and how lines end.

`/script/srun` is where that word first stands in the commands.
"""

_COMMAND: Final = re.compile(r"^[ \t\v\f\r\ufeff]*+[^#\n \t\v\f\r\ufeff]", re.MULTILINE)
MARKED: Final = re.compile(r"(?:^|(?<=\A\ufeff))(?P<mark>#SBATCH|#SLURM|#PBS)[^\n]*", re.MULTILINE)
"""A line of options, also of another system's."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One option as it stands: text[start:end], its value at text[value_start:value_end].

    `joined` tells that it shares its word with others (`-HQ`); then the span is its letter.
    """

    name: str
    value: str
    component: int
    start: int
    end: int
    value_start: int
    value_end: int
    joined: bool = False


@dataclass(frozen=True)
class Script:
    """A script that was read.  `text` has no line numbers of a listing, `original` may.

    `ends` are, for each component, the offsets at which further lines of its go; `body` is the offset of
    the commands.
    """

    original: str
    text: str
    interpreter: str
    shebang_end: int
    arguments: tuple[Argument, ...]
    ends: tuple[int, ...]
    body: int
    notes: tuple[Note, ...] = field(default=())

    @property
    def components(self) -> int:
        """How many components the job has."""
        return len(self.ends)

    def options(self, component: int) -> dict[str, str]:
        """The options that one component states, of equal ones the last."""
        own = [each for each in self.arguments if each.component == component]
        return {each.name: each.value for each in own}

    @property
    def commands(self) -> str:
        """Everything behind the options."""
        return self.text[self.body :]

    def position(self, pointer: str) -> Position:
        """Line and column of what `pointer` names: an option's value, the commands, else the beginning."""
        return self.at(self._offset(pointer))

    def at(self, offset: int) -> Position:
        """Line and column of an offset, in the text as it was submitted."""
        line = bisect_right(self._starts, offset)
        column = offset - self._starts[line - 1] + 1
        if self.original != self.text:
            before, after = (text.split("\n")[line - 1] for text in (self.original, self.text))
            column += len(before) - len(after)
        return line, column - int(line == 1 and self.original.startswith("\ufeff") and column > 1)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def _offset(self, pointer: str) -> int:
        component, name = parse_pointer(pointer)
        if pointer.startswith(f"/{SCRIPT}/"):
            word = re.escape(split(pointer)[1])
            found = re.compile(rf"^[^#\n]*?(?<![\w.-])({word})(?!\w)", re.MULTILINE).search(
                self.text, self.body
            )
            return found.start(1) if found else self.body
        if name == SCRIPT:
            stripped = self.commands.lstrip(SPACES)
            return len(self.text) - len(stripped) if stripped else max(0, self.body - 1)
        for each in reversed(self.arguments):
            if (each.component, each.name) == (component, name):
                return each.value_start
        return 0


def pointer_of(component: int, name: str) -> str:
    """The pointer of an option: `/mem`, or `/hetjob/1/mem` in further components."""
    return f"/hetjob/{component}/{name}" if component else f"/{name}"


def parse_pointer(pointer: str) -> tuple[int, str]:
    """Component and option of a pointer; ("", component 0) when it names none."""
    tokens = split(pointer)
    if len(tokens) == 3 and tokens[0] == "hetjob" and tokens[1].isascii() and tokens[1].isdigit():
        return int(tokens[1][:4]), tokens[2]
    return 0, tokens[0] if len(tokens) == 1 else ""


def commands_at(text: str) -> int:
    """The offset of the first line that is a command; the length of `text` when there is none."""
    found = _COMMAND.search(text)
    return found.start() if found else len(text)


def begins_with_options(commands: str) -> bool:
    """Whether Slurm would read options from `commands` if they stood behind the options of a script."""
    found = MARKED.search(commands, 0, commands_at(commands))
    return bool(found and found["mark"] != PBS)
