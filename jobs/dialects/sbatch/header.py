"""Reading the lines of an sbatch script, as Slurm and getopt do; everything wrong is told at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from jobs.dialects.base import Fix, Note, Params, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.examine import INVISIBLE
from jobs.dialects.fields import CONSOLE
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import short
from jobs.dialects.sbatch.lines import (
    INTERPRETER,
    LINE_ENDS,
    MARK,
    MARKED,
    PBS,
    Argument,
    Script,
    commands_at,
    pointer_of,
)
from jobs.dialects.sbatch.options import BY_LETTER, OPTIONS, SBATCH, Takes, resolve
from jobs.dialects.sbatch.words import SPACES, UnmatchedError, Word, words
from jobs.dialects.source import check_size
from jobs.dialects.tidy import without_line_numbers

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
    """A pasted listing without its line numbers, and without what set its lines off from them."""
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
        self._arguments: list[Argument] = []
        self._problems: list[tuple[int, Problem]] = []
        self._notes: list[Note] = []
        self._seen: set[tuple[int, str]] = set()
        self._component = self._count = self._length = 0
        self._start = 1 if text.startswith("\ufeff") else 0

    def script(self) -> Script:
        """The script, when nothing was wrong with it."""
        interpreter, shebang_end = self._shebang()
        ends, body = [shebang_end], shebang_end
        for found in islice(MARKED.finditer(self._text, 0, commands_at(self._text)), MOST_LINES + 1):
            line, mark = found[0], found["mark"]
            self._count += 1
            self._length += len(line)
            if self._count > MOST_LINES or self._length > MOST_LETTERS:
                raise Refused((Problem("too_many_values", "", 1, 1, {"most": MOST_LINES}, source=CONSOLE),))
            if mark == PBS:
                self._notes.append(Note("pbs_lines", params={"mark": PBS}))
                continue
            if mark != MARK:
                self._notes.append(Note("slurm_mark", params={"mark": mark, "right": MARK}))
            self._line(line, found.start(), len(mark))
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
            (*self._tolerated(), *_each_once(self._notes)),
        )
        if self._problems:
            raise Refused(tuple(_placed(script, *each) for each in self._problems[:100]))
        return script

    def _shebang(self) -> tuple[str, int]:
        """The program of the first line, and where the next line begins."""
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

    def _line(self, line: str, offset: int, start: int) -> None:
        """The options of one line."""
        separator = _SEPARATOR.match(line, start)
        if separator:
            start = separator.end()
            self._component += 1
            if self._component >= MOST_COMPONENTS:
                params: Params = {"key": "hetjob", "count": self._component + 1, "most": MOST_COMPONENTS}
                raise Refused((Problem("too_many", "", 1, 1, params, source=SBATCH),))
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
        one = Argument(name, value, self._component, start, end, value_start, value_end, joined)
        if len(self._arguments) == MOST_ARGUMENTS:
            params: Params = {"key": MARK, "count": MOST_ARGUMENTS + 1, "most": MOST_ARGUMENTS}
            raise Refused((Problem("too_many", "", 1, 1, params, source=CONSOLE),))
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
        """What no script may hold anywhere."""
        null = self._text.find("\0")
        if null >= 0:
            self._problem("null_character", "", null)

    def _tolerated(self) -> Iterator[Note]:
        if self._start:
            yield Note("tolerated_bom", params={"count": 1})
        if self._original != self._text:
            yield Note("tolerated_line_numbers", params={"count": 1})
        if "\r\n" in self._text:
            yield Note("dos_line_ends", f"/{LINE_ENDS}", {"source": SBATCH}, Fix(f"/{LINE_ENDS}", "\n"))


def _placed(script: Script, offset: int, problem: Problem) -> Problem:
    line, column = script.at(offset)
    return Problem(problem.code, problem.pointer, line, column, problem.params, problem.fix, problem.source)


def _each_once(notes: list[Note]) -> list[Note]:
    """Notes without repetitions."""
    kept = {(note.code, note.pointer): note for note in notes}
    return list(kept.values())[:100]
