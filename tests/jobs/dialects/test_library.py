"""The dialects in a plain Python program: no Django, no settings, nothing of the console beside them."""

import os
import re
import subprocess
import sys
from pathlib import Path

from jobs import dialects
from jobs.dialects.formats import FORMATS

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from pathlib import Path
from jobs.dialects import NAMES, Document, convert, parse
from jobs.dialects.base import Refused
from jobs.dialects.checks import apply_all_fixes, check

text = Path(sys.argv[1]).read_text()
document = Document(text)
assert document.candidates[0].name == "dlc"
name, parsed = parse(text)
assert (name, parsed.spec.roles[0].name) == ("dlc", "Worker")
for to in NAMES:
    made = convert(document, to)
    assert made.document.text
    print(to, len(made.losses))
assert check(Document("{")).problems and apply_all_fixes(check(document)).parsed
try:
    parse("nothing")
except Refused as refused:
    print(refused.problems[0].code)
assert "django" not in sys.modules, "Django was imported"
assert "console" not in sys.modules
"""


def run(program: str, *arguments: str) -> str:
    """What a program prints in a process of its own, with no settings to be found."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**environment, "DJANGO_SETTINGS_MODULE": "no.such.settings"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dialects_library_works_in_plain_program() -> None:
    lines = run(PROGRAM, str(ROOT / "tests" / "data" / "seeds" / "dlc-tfjob.json")).splitlines()
    assert [line.split()[0] for line in lines] == [*dialects.NAMES, "unknown_dialect"]


def test_documentation_program_runs() -> None:
    program = (ROOT / "docs" / "examples" / "dialects.py").read_text(encoding="utf-8")
    printed = run(program + "\nimport sys; assert 'django' not in sys.modules")
    assert "openpai-v1 100" in printed
    assert "bad_name" in printed
    assert "openpai-v1 my_job 2" in printed


def test_documentation_names_every_dialect_and_file_suffix() -> None:
    page = (ROOT / "docs" / "job-files.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"^\| `([a-z0-9-]+)` \|.*\| `\.([a-z]+)` \|$", page, re.MULTILINE))
    assert named == {name: form.suffix for name, form in FORMATS.items()}
