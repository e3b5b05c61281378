"""Reading the lines of an sbatch script, as Slurm and getopt do; everything wrong is told at once.

The lines count up to the first one that is neither empty nor a comment, and only where the mark stands at
the beginning of its line, so that `##SBATCH` is a comment.  `hetjob` (once `packjob`) begins the next
component of a heterogeneous job.

Slurm's words are not a shell's: quotes group, a backslash stands before any character also inside of
quotes, and the first `#` that is neither quoted nor behind a backslash begins a comment.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final

from jobs.dialects.base import Fix, Note, Position, Problem, Refused, refusal
from jobs.dialects.document import Document
from jobs.dialects.fields import CONSOLE
from jobs.dialects.json_cleanup import without_line_numbers
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import short
from jobs.dialects.sbatch.options import BY_LETTER, OPTIONS, SBATCH, Takes, resolve
from jobs.dialects.source import check_size
from jobs.dialects.spans import split
from jobs.dialects.syntax import INVISIBLE

SPACES: Final = " \t\n\v\f\r"
"""What C's isspace takes for a blank."""

_PLAIN: Final = re.compile(r"[^\s'\"\\#]+")
_RUNS: Final = {
    "": re.compile(r"[^ \t\n\v\f\r'\"\\#]+"),
    "'": re.compile(r"[^'\\]+"),
    '"': re.compile(r"[^\"\\]+"),
}
"""What means itself outside of quotes, and inside of either kind."""
_SPECIAL: Final = re.compile(r"([\"\\])")
_BREAKS: Final = re.compile(r"[\n\r\0]+")


class UnmatchedError(Exception):
    """A quote has no end; carries the offset at which it stands."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Word:
    """line[start:end], and the `value` that is left without quotes; `at` are the offsets of its letters."""

    value: str
    start: int
    end: int
    at: tuple[int, ...]


def words(line: str, start: int) -> Iterator[Word]:
    """Yield the words of `line` from `start` on; raises UnmatchedError."""
    position = start
    while True:
        while position < len(line) and line[position] in SPACES:
            position += 1
        if position == len(line) or line[position] == "#":
            return
        word = _word(line, position)
        yield word
        position = word.end


def _word(line: str, start: int) -> Word:
    value: list[str] = []
    at: list[int] = []
    quote = ""
    opened = position = start
    while position < len(line) and (quote or line[position] not in SPACES):
        mark = line[position]
        if plain := _RUNS[quote].match(line, position):
            value.append(plain[0])
            at.extend(range(position, plain.end()))
            position = plain.end()
            continue
        if mark == "\\" and position + 1 < len(line):
            value.append(line[position + 1])
            at.append(position)
            position += 1
        elif quote and mark == quote:
            quote = ""
        elif not quote and mark in "\"'":
            quote, opened = mark, position
        elif mark == "#":
            break
        position += 1
    if quote:
        raise UnmatchedError(opened)
    return Word("".join(value), start, position, tuple(at))


def quote(value: str) -> str:
    """Return `value` as one word; line breaks, which none can hold, become blanks."""
    value = _BREAKS.sub(" ", value)
    if not value or _PLAIN.fullmatch(value):
        return value
    escaped = _SPECIAL.sub(r"\\\1", value)
    return f'"{escaped}"'


def escape(value: str) -> str | None:
    """`value` as it is written inside of quotes of either kind, or outside; None when no line holds it."""
    if _BREAKS.search(value):
        return None
    return "".join(mark if mark.isalnum() else f"\\{mark}" for mark in value)


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
class OptionSpan:
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
    arguments: tuple[OptionSpan, ...]
    ends: tuple[int, ...]
    body: int
    notes: tuple[Note, ...] = field(default=())

    @property
    def components(self) -> int:
        """Return the number of components of the job."""
        return len(self.ends)

    def options(self, component: int) -> dict[str, str]:
        """Return the options that one component states, of equal ones the last."""
        own = [each for each in self.arguments if each.component == component]
        return {each.name: each.value for each in own}

    @property
    def commands(self) -> str:
        """Return the text behind the options."""
        return self.text[self.body :]

    def position(self, pointer: str) -> Position:
        """Line and column of what `pointer` names: an option's value, the commands, else the beginning."""
        return self.at(self._offset(pointer))

    def at(self, offset: int) -> Position:
        """Return line and column of an offset, in the text as it was submitted."""
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
    """Return the pointer of an option: `/mem`, or `/hetjob/1/mem` in further components."""
    return f"/hetjob/{component}/{name}" if component else f"/{name}"


def parse_pointer(pointer: str) -> tuple[int, str]:
    """Component and option of a pointer; ("", component 0) when it names none."""
    tokens = split(pointer)
    if len(tokens) == 3 and tokens[0] == "hetjob" and tokens[1].isascii() and tokens[1].isdigit():
        return int(tokens[1][:4]), tokens[2]
    return 0, tokens[0] if len(tokens) == 1 else ""


def commands_at(text: str) -> int:
    """Return the offset of the first line that is a command; the length of `text` when there is none."""
    found = _COMMAND.search(text)
    return found.start() if found else len(text)


def begins_with_options(commands: str) -> bool:
    """Return whether Slurm would read options from `commands` behind the options of a script."""
    found = MARKED.search(commands, 0, commands_at(commands))
    return bool(found and found["mark"] != PBS)


MOST_LINES: Final = 2_000
MOST_LETTERS: Final = 256 * 1024
MOST_ARGUMENTS: Final = 4_000
MOST_COMPONENTS: Final = 128
"""Slurm's own MAX_HET_JOB_COMPS."""

_SEPARATOR: Final = re.compile(r"[ \t\v\f\r]*(?:hetjob|packjob)(?=[ \t\v\f\r]|$)", re.IGNORECASE)
_INVISIBLE: Final = re.compile(
    rf"{INVISIBLE.pattern}|[\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\x85]"
)
_INDENT: Final = re.compile(r"[ \t]*")


@read_once
def read(document: Document) -> Script:
    """Read the lines; raises Refused with everything that is wrong with the lines themselves."""
    text = document.text
    check_size(text)
    plain = _without_numbers(text)
    return _Reader(text, plain).script()


def _without_numbers(text: str) -> str:
    """Return a pasted listing without its line numbers, and without what set its lines off from them."""
    plain = without_line_numbers(text)
    if plain == text:
        return text
    lines = plain.split("\n")
    indents = [len(match[0]) for line in lines if line.strip() and (match := _INDENT.match(line))]
    least = min(indents, default=0)
    return "\n".join(line[least:] for line in lines)


class _Reader:
    """Collects options and problems, line by line."""

    def __init__(self, original: str, text: str) -> None:
        self._original = original
        self._text = text
        self._arguments: list[OptionSpan] = []
        self._problems: list[tuple[int, Problem]] = []
        self._notes: list[Note] = []
        self._seen: set[tuple[int, str]] = set()
        self._component = self._count = self._length = 0
        self._start = 1 if text.startswith("\ufeff") else 0

    def script(self) -> Script:
        """Return the script, when nothing was wrong with it."""
        interpreter, shebang_end = self._shebang()
        ends, body = [shebang_end], shebang_end
        for found in islice(MARKED.finditer(self._text, 0, commands_at(self._text)), MOST_LINES + 1):
            line, mark = found[0], found["mark"]
            self._count += 1
            self._length += len(line)
            if self._count > MOST_LINES or self._length > MOST_LETTERS:
                raise refusal("too_many_values", CONSOLE, most=MOST_LINES)
            if mark == PBS:
                self._notes.append(Note("pbs_lines", params={"mark": PBS}))
                continue
            if mark != MARK:
                self._notes.append(Note("slurm_mark", params={"mark": mark, "right": MARK}))
            self._read_line(line, found.start(), len(mark))
            body = min(found.end() + 1, len(self._text))
            if self._component == len(ends):
                ends.append(body)
            ends[self._component] = body
        self._check_text()
        script = Script(
            self._original,
            self._text,
            interpreter,
            shebang_end,
            tuple(self._arguments),
            tuple(ends),
            body,
            (*self._tolerance_notes(), *_each_once(self._notes)),
        )
        if self._problems:
            raise Refused(tuple(problem.at(script.at(offset)) for offset, problem in self._problems[:100]))
        return script

    def _shebang(self) -> tuple[str, int]:
        """Return the program of the first line, and where the next line begins."""
        line = self._text[self._start :].partition("\n")[0]
        interpreter = " ".join(line[2:].strip(SPACES).split(None, 1)) if line.startswith("#!") else ""
        if not interpreter:
            if self._text.strip(SPACES + "\ufeff"):
                fix = Fix(f"/{INTERPRETER}", "/bin/bash")
                self._problem("no_interpreter", f"/{INTERPRETER}", self._start, fix=fix)
            else:
                self._problem("empty_text", "", 0)
            return "", self._start + (len(line) + 1 if line.startswith("#!") else 0)
        return interpreter, min(self._start + len(line) + 1, len(self._text))

    def _read_line(self, line: str, offset: int, start: int) -> None:
        """The options of one line."""
        separator = _SEPARATOR.match(line, start)
        if separator:
            start = separator.end()
            self._component += 1
            if self._component >= MOST_COMPONENTS:
                count = self._component + 1
                raise refusal("too_many", SBATCH, key="hetjob", count=count, most=MOST_COMPONENTS)
        try:
            found = list(words(line, start))
        except UnmatchedError as unmatched:
            self._problem("unmatched_quote", "", offset + unmatched.offset, quote=line[unmatched.offset])
            return
        for word in found:
            name = word.value.partition("=")[0] if word.value.startswith("-") else ""
            if match := _INVISIBLE.search(name):
                character = f"U+{ord(match[0]):04X}"
                clean = short(_INVISIBLE.sub("", name))
                self._problem("invisible_key", "", offset + word.start, character=character, key=clean)
                return
        if found and line[found[-1].end :].startswith("#"):
            self._notes.append(Note("value_cut", params={"value": short(found[-1].value)}))
        waiting = iter(found)
        for word in waiting:
            self._word(word, waiting, offset)

    def _word(self, word: Word, following: Iterator[Word], offset: int) -> None:
        if word.value.startswith("--") and len(word.value) > 2:
            self._long(word, following, offset)
        elif word.value.startswith("-") and len(word.value) > 1 and word.value != "--":
            self._short(word, following, offset)
        else:
            self._problem("not_an_option", "", offset + word.start, text=short(word.value))

    def _long(self, word: Word, following: Iterator[Word], offset: int) -> None:
        """`--name`, `--name=value` or `--name value`."""
        name, equals, value = word.value[2:].partition("=")
        candidates = resolve(name)
        if len(candidates) > 1:
            choices = ", ".join(f"--{each}" for each in candidates[:8])
            self._problem("ambiguous_option", "", offset + word.start, text=short(name), choices=choices)
            return
        known = candidates[0] if candidates else name
        option = OPTIONS.get(known)
        takes = option.takes if option else (Takes.MAYBE if equals else Takes.NOTHING)
        if option and known != name:
            code = "abbreviated_option" if known.startswith(name) else "other_name"
            self._notes.append(Note(code, pointer_of(self._component, known), {"key": name, "meant": known}))
        if equals and takes is Takes.NOTHING:
            self._problem("value_not_allowed", self._at(known), offset + word.start, key=known)
        elif equals:
            index = len(name) + 3
            first = word.at[index] if index < len(word.at) else word.end
            first = min(first, word.at[index - 1] + 1)
            self._add(known, value, offset, (word.start, word.end, first, word.end))
        elif takes is Takes.VALUE:
            self._with_next(known, word.start, word, following, offset)
        else:
            self._add(known, "", offset, (word.start, word.end, word.end, word.end))

    def _short(self, word: Word, following: Iterator[Word], offset: int) -> None:
        """`-N4`, `-N 4`, or several letters of which only the last has a value."""
        for index in range(1, len(word.value)):
            option = BY_LETTER.get(word.value[index])
            start = word.at[index]
            if option is None:
                self._problem("unknown_letter", "", offset + start, text=word.value[index])
                return
            rest = word.value[index + 1 :]
            alone = index == 1
            if option.takes is Takes.NOTHING:
                joined = not alone or bool(rest)
                whole = (start, start + 1) if joined else (word.start, word.end)
                span = (*whole, start + 1, start + 1)
                self._add(option.name, "", offset, span, joined=joined)
                continue
            first = start if not alone else word.start
            if rest:
                span = (first, word.end, word.at[index] + 1, word.end)
                self._add(option.name, rest, offset, span, joined=not alone)
            elif option.takes is Takes.VALUE:
                self._with_next(option.name, first, word, following, offset, joined=not alone)
            else:
                self._add(option.name, "", offset, (first, word.end, word.end, word.end), joined=not alone)
            return

    def _with_next(
        self,
        name: str,
        start: int,
        word: Word,
        following: Iterator[Word],
        offset: int,
        *,
        joined: bool = False,
    ) -> None:
        """An option whose value is the next word."""
        value = next(following, None)
        if value is None:
            self._problem("value_missing", self._at(name), offset + word.start, key=name)
            return
        self._add(name, value.value, offset, (start, value.end, value.start, value.end), joined=joined)

    def _add(
        self, name: str, value: str, offset: int, span: tuple[int, int, int, int], *, joined: bool = False
    ) -> None:
        start, end, value_start, value_end = (offset + each for each in span)
        one = OptionSpan(name, value, self._component, start, end, value_start, value_end, joined)
        if len(self._arguments) == MOST_ARGUMENTS:
            raise refusal("too_many", CONSOLE, key=MARK, count=MOST_ARGUMENTS + 1, most=MOST_ARGUMENTS)
        if (one.component, name) in self._seen:
            self._notes.append(Note("option_repeats", self._at(name), {"key": name}))
        self._seen.add((one.component, name))
        self._arguments.append(one)

    def _at(self, name: str) -> str:
        return pointer_of(self._component, name)

    def _problem(
        self, code: str, pointer: str, offset: int, fix: Fix | None = None, **params: str | int
    ) -> None:
        self._problems.append((offset, Problem(code, pointer, params=params, fix=fix, source=SBATCH)))

    def _check_text(self) -> None:
        """Look for characters that no script may hold."""
        null = self._text.find("\0")
        if null >= 0:
            self._problem("null_character", "", null)

    def _tolerance_notes(self) -> Iterator[Note]:
        if self._start:
            yield Note("tolerated_bom", params={"count": 1})
        if self._original != self._text:
            yield Note("tolerated_line_numbers", params={"count": 1})
        if "\r\n" in self._text:
            yield Note("dos_line_ends", f"/{LINE_ENDS}", {"source": SBATCH}, Fix(f"/{LINE_ENDS}", "\n"))


def _each_once(notes: list[Note]) -> list[Note]:
    """Notes without repetitions."""
    kept = {(note.code, note.pointer): note for note in notes}
    return list(kept.values())[:100]
