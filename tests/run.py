"""`make test`: every part of the tests that can run on this machine, and by name what cannot.

`python -m tests.run [PART …]` runs some of them. With REQUIRE_ALL=1 a part that is left out is a failure, and
so is a test that skips itself.

Many tests drive real engines, and wait for what these do. When a few of a part fail, they are run once more,
alone; what passes then is named at the end as unsteady: a fault too, of ours or of a test, but another kind.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from console import keys
from console.home import CHECKOUT
from tests import postgres

FAST = "not browser and not kill and not postgres"
THREE_AT_A_TIME = ["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"]
"""Files in the order in which `tests/conftest.py` leaves them: the longest first."""
IN_CHROMIUM = ("tests/static", "tests/flows", "tests/jobs/gateway")
"""Each in a process of its own: Playwright's synchronous side exists once in a process."""
WITHOUT_DATABASE = ("tests/jobs/dialects", "tests/jobs/backends", "tests/fuzz")
"""What is the same on any database runs once."""
A_FEW = 5
"""So many failures of a part may be chance; more are not run again."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

LINT = [
    ["mypy"],
    ["ruff", "check", "."],
    ["ruff", "format", "--check", "."],
    ["djlint", "--check", "--lint", "templates"],
    ["python", "manage.py", "check"],
    ["python", "manage.py", "makemigrations", "--check", "--dry-run"],
    ["python", "manage.py", "settings_table", "--check"],
    ["python", "-m", "tests.dialect_pages", "--check"],
]


@dataclass(frozen=True, slots=True)
class Part:
    """`missing` says what this machine lacks for it, or nothing; `run` says whether it passed."""

    name: str
    run: Callable[[], bool]
    missing: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part: passed, FAILED, or why it was left out."""

    name: str
    told: str
    failed: bool
    minutes: float


def lint() -> bool:
    """All checkers, each to its end; mypy takes longer than all others, which run beside it."""
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(2) as pool:
        keys.ensure(Path(home))
        done = pool.map(lambda command: _said(_tool(*command), {"CONSOLE_HOME": home}), LINT)
        passed = [_told(each) for each in done]
        return all(passed)


def translations() -> bool:
    """Every string in every language."""
    return _call(_tool("python", "-m", "tests.translations"), {})


def fast(database_url: str = "") -> bool:
    """What needs neither a browser nor a kill, in a random order, three files at a time: they wait much.

    On another database than SQLite: what there is to see of a database, with a sample of the kill tests.
    """
    if not database_url:
        return _pytest("-m", FAST, *THREE_AT_A_TIME, environ={"DATABASE_URL": ""})
    others = [f"--ignore={folder}" for folder in WITHOUT_DATABASE]
    return _pytest(
        "-m",
        f"({FAST} and not sqlite) or sample or postgres",
        *THREE_AT_A_TIME,
        *others,
        environ={"DATABASE_URL": database_url},
    )


def on_postgres() -> bool:
    """The same on PostgreSQL: on DATABASE_URL, or on a server of our own."""
    given = os.environ.get("DATABASE_URL", "")
    programs = postgres.find_programs()
    if given or programs is None:
        return fast(given)
    with postgres.server(programs) as url:
        return fast(url)


def browser() -> bool:
    """What a person does, in Chromium, each folder to its end."""
    passed = [_pytest("-m", "browser", part, environ={"DATABASE_URL": ""}) for part in IN_CHROMIUM]
    return all(passed)


def kill() -> bool:
    """Every fault point of a whole console: of three, since what is killed is mostly waited for."""
    return _pytest("-m", "kill", "-n", "3", "--dist", "worksteal", environ={"DATABASE_URL": ""})


def _no_gettext() -> str:
    return "" if shutil.which("msgfmt") else "there is no GNU gettext (Debian: gettext)"


def _no_postgres() -> str:
    here = os.environ.get("DATABASE_URL") or postgres.find_programs()
    return (
        "" if here else "there is neither DATABASE_URL nor a PostgreSQL server to start (Debian: postgresql)"
    )


def _no_chromium() -> str:
    return "" if any(map(shutil.which, CHROMIUM)) else "there is no Chromium (Debian: chromium)"


PARTS = [
    Part("lint", lint),
    Part("translations", translations, _no_gettext),
    Part("sqlite", fast),
    Part("postgres", on_postgres, _no_postgres),
    Part("browser", browser, _no_chromium),
    Part("kill", kill),
]


UNSTEADY: list[str] = []
"""What failed among the others and passed alone."""


def main() -> int:
    """Run the parts that were asked for, all by default; 1 when one failed."""
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(prog="make test", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(names)}")
    wanted = parser.parse_args().parts or names
    if unknown := set(wanted) - set(names):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    outcomes = [_outcome(part) for part in PARTS if part.name in wanted]
    print("\n" + "\n".join(f"{each.name:12} {each.minutes:5.1f} min  {each.told}" for each in outcomes))
    for name in UNSTEADY:
        print(f"unsteady: {name}")
    return int(any(each.failed for each in outcomes))


def _outcome(part: Part) -> Outcome:
    if missing := part.missing():
        return Outcome(part.name, f"left out: {missing}", bool(os.environ.get("REQUIRE_ALL")), 0.0)
    print(f"\n=== {part.name}", flush=True)
    began = time.monotonic()
    passed = part.run()
    return Outcome(part.name, "passed" if passed else "FAILED", not passed, (time.monotonic() - began) / 60)


def _pytest(*arguments: str, environ: Mapping[str, str]) -> bool:
    with tempfile.TemporaryDirectory() as memory:
        command = _tool("python", "-m", "pytest", "-q", "-o", f"cache_dir={memory}")
        if _call([*command, *arguments], environ):
            return True
        failed = _failed(Path(memory))
        if not 0 < len(failed) <= A_FEW:
            return False
        print(f"\n=== once more, alone: {', '.join(failed)}", flush=True)
        alone = ["--last-failed", "--last-failed-no-failures=none", "-n", "0"]
        if not _call([*command, *arguments, *alone], environ):
            return False
        UNSTEADY.extend(failed)
        return True


def _failed(memory: Path) -> list[str]:
    """The tests that pytest remembers as failed; none where it did not get as far."""
    kept = memory / "v/cache/lastfailed"
    return sorted(json.loads(kept.read_text())) if kept.exists() else []


def _tool(name: str, *arguments: str) -> list[str]:
    """A program of this environment."""
    return [str(Path(sys.executable).with_name(name)), *arguments]


def _call(command: list[str], environ: Mapping[str, str]) -> bool:
    return subprocess.run(command, cwd=CHECKOUT, env={**os.environ, **environ}, check=False).returncode == 0


def _said(command: list[str], environ: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run beside others, whose lines are not to stand among these."""
    return subprocess.run(
        command,
        cwd=CHECKOUT,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _told(done: "subprocess.CompletedProcess[str]") -> bool:
    print(done.stdout, end="", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
