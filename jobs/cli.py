"""`job-console check` and `job-console convert`: job files without a server, a database or settings.

Sentences are in the language of the environment (LC_ALL, LC_MESSAGES, LANG), where there are translations.
Exit status: 0 the file is right (or was written), 1 it has problems, 2 the command was called wrongly or
the file can't be read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from django.apps import apps
from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from jobs import dialects
from jobs.client import parser as parser_of_console
from jobs.dialects import checking
from jobs.dialects.base import MAX_BYTES, Fix, Note, Refused
from jobs.dialects.checking import Checked
from jobs.dialects.source import decode
from jobs.messages.findings import Finding, loss_json, of_note, of_problem

STANDARD_INPUT: Final = "-"
LOCALE: Final = Path(__file__).parents[1] / "locale"
LANGUAGES: Final = {"ja": "ja", "zh": "zh-hans"}
"""By the first letters of a locale's name; English for every other."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    if not settings.configured:
        _speak(language_of(os.environ))
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except OSError as error:
        _complain(f"{error.filename or arguments.file}: {error.strerror}")
        return 2


def _speak(language: str) -> None:
    """Let sentences be in `language`, with nothing of Django's but those."""
    settings.configure(USE_I18N=True, LOCALE_PATHS=[LOCALE], LANGUAGE_CODE="en")
    apps.populate(())
    translation.activate(language)


def language_of(environment: Mapping[str, str]) -> str:
    """The language of a person with these variables, as POSIX has it: the first that is set decides."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return LANGUAGES.get(locale[:2].lower(), "en")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "job-console", description=_("Check and convert job files, and run jobs from a terminal.")
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help=_("say what is wrong with a job file"))
    check.add_argument("--json", action="store_true", help=_("print one JSON object"))
    check.add_argument(
        "--fix", action="store_true", help=_("make the fixes that are offered, in the file itself")
    )
    check.set_defaults(run=_check)
    convert = commands.add_parser("convert", help=_("write a job file in another dialect"))
    convert.add_argument("--to", required=True, choices=dialects.NAMES, metavar="DIALECT", help=_known())
    convert.set_defaults(run=_convert)
    parser_of_console.add_to(commands)
    for command in (check, convert):
        command.add_argument("file", metavar="FILE", help=_("the job file; - is standard input"))
        command.add_argument("--dialect", choices=dialects.NAMES, metavar="DIALECT", help=_known())
    return parser


def _known() -> str:
    return _("one of %(names)s") % {"names": ", ".join(dialects.NAMES)}


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
    file = arguments.file
    try:
        converted = dialects.convert(decode(_read(file)), arguments.to, arguments.dialect)
    except Refused as refused:
        for problem in refused.problems:
            finding = of_problem(problem)
            _complain(_line(file, finding, finding.message))
        return 1
    sys.stdout.write(converted.text)
    for loss in converted.losses:
        _complain(_loss(loss, file))
    return 0


def _loss(loss: Note, file: str) -> str:
    """A loss in a line, beginning with where it was said, or, in the text that was written, is missing."""
    told = loss_json(loss)
    place = f"{file}:{loss.line}:{loss.column}: " if loss.line and told["side"] == "source" else ""
    pointer = f"{loss.pointer}: " if loss.pointer else ""
    lacking = _(" [not there: %(capability)s]") % told if told["capability"] else ""
    return f"{place}{pointer}{told['message']}{lacking}"


def check(data: bytes, dialect: str | None = None) -> Checked:
    """Everything there is to say about a job file, with the place of every problem and note."""
    try:
        return checking.check(decode(data), dialect)
    except Refused as refused:
        return Checked("", dialect, problems=refused.problems)


def _fixed(checked: Checked, arguments: argparse.Namespace) -> Checked:
    """Make every fix on offer and look again; the file is replaced in one step."""
    before = checked.text
    checked = checking.fixed(checked)
    if arguments.file == STANDARD_INPUT:
        sys.stdout.write(checked.text)
    elif checked.text != before:
        _replace(Path(arguments.file), checked.text)
    return checked


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
        "problems": [of_problem(problem).to_json() for problem in checked.problems],
        "notes": [of_note(note).to_json() for note in checked.notes],
    }
    return json.dumps(result, ensure_ascii=False, indent=2)


def _lines(checked: Checked, file: str) -> str:
    """A line for each finding, and one that sums up."""
    problems = (of_problem(problem) for problem in checked.problems)
    notes = (of_note(note) for note in checked.notes)
    told = [_line(file, each, _("problem: %(message)s") % {"message": each.message}) for each in problems]
    told += [_line(file, each, _("note: %(message)s") % {"message": each.message}) for each in notes]
    known = checked.dialect or _("unknown dialect")
    verdict = _("not accepted") if checked.problems else _("ok")
    return "\n".join([*told, f"{file}: {known}, {verdict}"])


def _line(file: str, finding: Finding, message: str) -> str:
    """A finding as compilers write it, so that editors can jump to it."""
    place = f":{finding.line}:{finding.column}" if finding.line else ""
    rule = f" [{finding.source}]" if finding.source else ""
    return f"{file}{place}: {message}{rule}{_offer(finding.fix)}"


def _offer(fix: Fix | None) -> str:
    if fix is None:
        return ""
    if fix.value is None:
        return _(" (fix: remove it)")
    return _(" (fix: %(value)s)") % {"value": json.dumps(fix.value, ensure_ascii=False)}


def _complain(message: str) -> None:
    sys.stderr.write(message + "\n")


if __name__ == "__main__":
    sys.exit(main())
