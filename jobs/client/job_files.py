"""`job-console check` and `job-console convert`: job files without a server, a database or settings.

Exit status: 0 the file is right (or was written), 1 it has problems, 2 the command was called wrongly or the
file can't be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs import dialects
from jobs.client import login
from jobs.client.failure import CommandFailure
from jobs.client.files import replace_file
from jobs.dialects import checks, sweep_words
from jobs.dialects.base import MAX_BYTES, Fix, Note, Refused
from jobs.dialects.checks import CheckResult
from jobs.dialects.document import Document
from jobs.dialects.pasted.extraction import extract
from jobs.dialects.source import decode
from jobs.language import gettext as _
from jobs.messages.actions import action_label
from jobs.messages.findings import Finding, loss_json, of_note, of_problem

STANDARD_INPUT: Final = "-"


def run(name: str, arguments: argparse.Namespace) -> int:
    """Run a command; return its exit status."""
    return _check(arguments) if name == "check" else _convert(arguments)


def _check(arguments: argparse.Namespace) -> int:
    """Print what is wrong, and what was tolerated, with places."""
    checked = check(_read(arguments.file), arguments.dialect)
    if arguments.fix:
        checked = _fix(checked, arguments)
    report = _report(checked)
    out = sys.stderr if arguments.fix and arguments.file == STANDARD_INPUT else sys.stdout
    out.write((_json if arguments.json else _lines)(report, arguments.file) + "\n")
    return 1 if report.problems else 0


@dataclass(frozen=True, slots=True)
class Report:
    """Problems and notes of a file, and the console that was asked, where somebody is logged in to one."""

    dialect: str | None
    problems: Sequence[Finding]
    notes: Sequence[Finding]
    server: str = ""


def _report(checked: CheckResult) -> Report:
    """Return what is wrong with the file by itself; of a right one also what the console says of it."""
    problems = [of_problem(problem) for problem in checked.problems]
    unfilled = sweep_words.notes(checked.parsed.spec) if checked.parsed else ()
    local = Report(
        checked.document.known_dialect, problems, [of_note(note) for note in (*checked.notes, *unfilled)]
    )
    if problems:
        return local
    try:
        console = login.find(None)
    except CommandFailure:
        return local  # nobody is logged in: what a cluster has can't be known
    from jobs.client import remote_check as of_console  # noqa: PLC0415 it takes a while, and most need none

    try:
        answer = of_console.check(console, checked.document)
    except CommandFailure as trouble:
        _complain(_("Not validated by %(server)s: %(why)s") % {"server": console.server, "why": trouble})
        return local
    return Report(local.dialect, *answer, console.server)


def _convert(arguments: argparse.Namespace) -> int:
    """Print the file in the other dialect; what it can't say goes to standard error."""
    file = arguments.file
    try:
        converted = dialects.convert(Document(decode(_read(file)), arguments.dialect), arguments.to)
    except Refused as refused:
        for problem in refused.problems:
            finding = of_problem(problem)
            _complain(_format_line(file, finding, finding.message))
        return 1
    sys.stdout.write(converted.document.text)
    for loss in converted.losses:
        _complain(_loss(loss, file))
    return 0


def _loss(loss: Note, file: str) -> str:
    """A loss in a line, beginning with where it was said, or, in the text that was written, is missing."""
    row = loss_json(loss)
    place = f"{file}:{loss.line}:{loss.column}: " if loss.line and row["side"] == "source" else ""
    pointer = f"{loss.pointer}: " if loss.pointer else ""
    lacking = _(" [not supported: %(capability)s]") % row if row["capability"] else ""
    return f"{place}{pointer}{row['message']}{lacking}"


def check(data: bytes, dialect: str | None = None) -> CheckResult:
    """Everything there is to say about a job file, with the place of every problem and note."""
    try:
        return checks.check(Document(decode(data), dialect))
    except Refused as refused:
        return CheckResult(Document("", dialect), problems=refused.problems)


def _fix(checked: CheckResult, arguments: argparse.Namespace) -> CheckResult:
    """Make every fix on offer and look again; the file is replaced in one step."""
    before = checked.document.text
    if arguments.file != STANDARD_INPUT and _is_inside(checked):
        _complain(_("%(file)s contains more than a job file; not changed.") % {"file": arguments.file})
        return checked
    checked = checks.apply_all_fixes(checked)
    if arguments.file == STANDARD_INPUT:
        sys.stdout.write(checked.document.text)
    elif checked.document.text != before:
        path = Path(arguments.file).resolve()
        replace_file(path, checked.document.text, path.stat().st_mode & 0o7777)
    return checked


def _is_inside(checked: CheckResult) -> bool:
    """Tell whether the job file is part of the text only, or still to be made of it."""
    fixes = [problem.fix for problem in checked.problems] + [note.fix for note in checked.notes]
    is_told = any(fix is not None and not fix.pointer for fix in fixes)
    return is_told or extract(checked.document) is not None


def _read(file: str) -> bytes:
    """The file, or as much of it as shows that it is too large."""
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with Path(file).open("rb") as opened:
        return opened.read(MAX_BYTES + 1)


def _json(report: Report, file: str) -> str:
    """Return one JSON object, the same as the API's, and the console that was asked."""
    result = {
        "file": file,
        "dialect": report.dialect,
        "server": report.server or None,
        "ok": not report.problems,
        "problems": [problem.to_json() for problem in report.problems],
        "notes": [note.to_json() for note in report.notes],
    }
    return json.dumps(result, ensure_ascii=False, indent=2)


def _lines(report: Report, file: str) -> str:
    """A line for each finding, and one that sums up."""
    lines = []
    for each in report.problems:
        lines.append(_format_line(file, each, _("problem: %(message)s") % {"message": each.message}))
        lines += [f"  {action_label(action)}" for action in each.actions]
    lines += [
        _format_line(file, each, _("note: %(message)s") % {"message": each.message}) for each in report.notes
    ]
    known = report.dialect or _("unknown format")
    verdict = _("not accepted") if report.problems else _("ok")
    by = f" ({report.server})" if report.server else ""
    return "\n".join([*lines, f"{file}: {known}, {verdict}{by}"])


def _format_line(file: str, finding: Finding, message: str) -> str:
    """A finding as compilers write it, so that editors can jump to it."""
    place = f":{finding.line}:{finding.column}" if finding.line else ""
    rule = f" [{finding.source}]" if finding.source else ""
    return f"{file}{place}: {message}{rule}{_offer(finding.fix)}"


def _offer(fix: Fix | None) -> str:
    if fix is None:
        return ""
    if fix.key is not None:
        return _(" (fix: rename it to %(key)s)") % {"key": fix.key}
    if not fix.pointer:
        return _(" (fix: job-console check --fix - prints the job file)")
    if fix.value is None:
        return _(" (fix: remove it)")
    return _(" (fix: %(value)s)") % {"value": json.dumps(fix.value, ensure_ascii=False)}


def _complain(message: str) -> None:
    sys.stderr.write(message + "\n")
