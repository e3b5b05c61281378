"""`job-console check` and `job-console convert`: job files without a server, a database or settings.

Exit status: 0 the file is right (or was written), 1 it has problems, 2 the command was called wrongly or
the file can't be read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from django.conf import settings

from jobs import dialects
from jobs.dialects.base import MAX_BYTES, Dialect, Fix, Note, Parsed, Problem, Refused
from jobs.dialects.source import decode
from jobs.messages import note_message, problem_message

STANDARD_INPUT: Final = "-"
MOST_ROUNDS: Final = 5
"""One fix may uncover the next problem; this often is looked again."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What there is to say about one text."""

    text: str
    dialect: str | None
    problems: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()
    parsed: Parsed | None = None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    if not settings.configured:
        settings.configure(USE_I18N=False)  # sentences in English, without anything of Django's but those
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except OSError as error:
        _complain(f"{error.filename or arguments.file}: {error.strerror}")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("job-console", description="Check and convert job files.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="say what is wrong with a job file")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.add_argument(
        "--fix", action="store_true", help="make the fixes that are offered, in the file itself"
    )
    check.set_defaults(run=_check)
    convert = commands.add_parser("convert", help="write a job file in another dialect")
    convert.add_argument("--to", required=True, choices=dialects.NAMES, metavar="DIALECT", help=_known())
    convert.set_defaults(run=_convert)
    for command in (check, convert):
        command.add_argument("file", metavar="FILE", help=f"the job file; {STANDARD_INPUT} is standard input")
        command.add_argument("--dialect", choices=dialects.NAMES, metavar="DIALECT", help=_known())
    return parser


def _known() -> str:
    return f"one of {', '.join(dialects.NAMES)}"


def _check(arguments: argparse.Namespace) -> int:
    """Print what is wrong, and what was tolerated, with places."""
    checked = check(_read(arguments.file), arguments.dialect)
    if arguments.fix:
        checked = _fixed(checked, arguments)
    out = sys.stderr if arguments.fix and arguments.file == STANDARD_INPUT else sys.stdout
    out.write((_json if arguments.json else _lines)(checked, arguments.file) + "\n")
    return 1 if checked.problems else 0


def _convert(arguments: argparse.Namespace) -> int:
    """Print the file in the other dialect; what it can't say goes to standard error."""
    checked = check(_read(arguments.file), arguments.dialect)
    if checked.parsed is None or checked.dialect is None:
        for problem in checked.problems:
            _complain(_line(arguments.file, problem, problem_message(problem)))
        return 1
    same = checked.dialect == arguments.to
    rendered = dialects.get(arguments.to).render(
        checked.parsed.spec,
        checked.parsed.extras if same else {},
        base=checked.parsed.text if same else None,
    )
    sys.stdout.write(rendered.text)
    for note in rendered.notes:
        _complain(f"{note.pointer}: {note_message(note)}" if note.pointer else note_message(note))
    return 0


def check(data: bytes, dialect: str | None = None) -> Checked:
    """Everything there is to say about a job file, with the place of every problem and note."""
    name, text = dialect, ""
    try:
        text = decode(data)
        name = dialect or dialects.name_of(text)
        parsed = dialects.get(name).parse(text)
    except Refused as refused:
        return Checked(text, name, problems=refused.problems)
    notes = tuple(_placed(note, text, dialects.get(name)) for note in parsed.notes)
    return Checked(text, name, notes=notes, parsed=parsed)


def _placed(note: Note, text: str, dialect: Dialect) -> Note:
    place = dialect.locate(text, note.pointer) if note.pointer else None
    return replace(note, line=place[0], column=place[1]) if place else note


def _fixed(checked: Checked, arguments: argparse.Namespace) -> Checked:
    """Make every fix on offer and look again; the file is replaced in one step."""
    before = checked.text
    for _round in range(MOST_ROUNDS):
        fixes = [problem.fix for problem in checked.problems if problem.fix]
        fixes += [note.fix for note in checked.notes if note.fix]
        if not fixes or checked.dialect is None:
            break
        text = _apply(dialects.get(checked.dialect), checked.text, fixes)
        if text == checked.text:
            break
        checked = check(text.encode(), checked.dialect)
    if arguments.file == STANDARD_INPUT:
        sys.stdout.write(checked.text)
    elif checked.text != before:
        _replace(Path(arguments.file), checked.text)
    return checked


def _apply(dialect: Dialect, text: str, fixes: Sequence[Fix]) -> str:
    try:
        return dialect.apply_fixes(text, fixes)
    except Refused:
        return text  # what can't be read can't be mended piece by piece


def _replace(path: Path, text: str) -> None:
    """Write the file anew beside itself, then put it in its place, with its rights."""
    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    beside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        beside.chmod(path.stat().st_mode & 0o7777)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _read(file: str) -> bytes:
    """The file, or as much of it as shows that it is too large."""
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with Path(file).open("rb") as opened:
        return opened.read(MAX_BYTES + 1)


def _json(checked: Checked, file: str) -> str:
    """One JSON object, the same as the API's."""
    result = {
        "file": file,
        "dialect": checked.dialect,
        "ok": not checked.problems,
        "problems": [
            {**_finding(problem, problem_message(problem)), "source": problem.source}
            for problem in checked.problems
        ],
        "notes": [_finding(note, note_message(note)) for note in checked.notes],
    }
    return json.dumps(result, ensure_ascii=False, indent=2)


def _finding(finding: Problem | Note, message: str) -> dict[str, object]:
    return {
        "pointer": finding.pointer,
        "line": finding.line,
        "column": finding.column,
        "code": finding.code,
        "message": message,
        "params": dict(finding.params),
        "fix": finding.fix and {"pointer": finding.fix.pointer, "value": finding.fix.value},
    }


def _lines(checked: Checked, file: str) -> str:
    """A line for each finding, and one that sums up."""
    problems = [_line(file, problem, "problem: " + problem_message(problem)) for problem in checked.problems]
    notes = [_line(file, note, "note: " + note_message(note)) for note in checked.notes]
    known = checked.dialect or "unknown dialect"
    verdict = f"{file}: {known}, {'not accepted' if checked.problems else 'ok'}"
    return "\n".join([*problems, *notes, verdict])


def _line(file: str, finding: Problem | Note, message: str) -> str:
    """A finding as compilers write it, so that editors can jump to it."""
    place = f":{finding.line}:{finding.column}" if finding.line else ""
    rule = f" [{finding.source}]" if isinstance(finding, Problem) and finding.source else ""
    return f"{file}{place}: {message}{rule}{_offer(finding.fix)}"


def _offer(fix: Fix | None) -> str:
    if fix is None:
        return ""
    value = json.dumps(fix.value, ensure_ascii=False)
    return " (fix: remove it)" if fix.value is None else f" (fix: {value})"


def _complain(message: str) -> None:
    sys.stderr.write(message + "\n")
