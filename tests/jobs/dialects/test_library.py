"""The dialects in a plain Python program: no Django, no settings, nothing of the console beside them."""

import os
import subprocess
import sys
from pathlib import Path

from jobs import dialects

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from pathlib import Path
from jobs.dialects import NAMES, convert, detect, parse
from jobs.dialects.base import Refused
from jobs.dialects.checking import check, fixed

text = Path(sys.argv[1]).read_text()
assert detect(text)[0].name == "dlc"
name, parsed = parse(text)
assert (name, parsed.spec.roles[0].name) == ("dlc", "Worker")
for to in NAMES:
    made = convert(text, to)
    assert made.text
    print(to, len(made.losses))
assert check("{").problems and fixed(check(text)).parsed
try:
    parse("nothing")
except Refused as refused:
    print(refused.problems[0].code)
assert "django" not in sys.modules, "Django was imported"
assert "console" not in sys.modules
"""


def test_a_plain_program_reads_checks_and_converts() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")}
    seed = ROOT / "tests" / "data" / "seeds" / "dlc-tfjob.json"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(seed)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**environment, "DJANGO_SETTINGS_MODULE": "no.such.settings"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*dialects.NAMES, "unknown_dialect"]
