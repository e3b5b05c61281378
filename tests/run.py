"""`make test`: every part of the tests that can run on this machine, and by name what cannot.

`python -m tests.run [PART …]` runs some of them. With REQUIRE_ALL=1 a part that is left out is a failure, and
so is a test that skips itself.

Many tests drive real engines, and wait for what these do: so two parts run at a time, with a third that does
little but wait, each line of theirs behind the part's name. When a few tests of a part fail, they are run
once more when all parts are through, alone; what passes then is named at the end as unsteady: a fault too, of
ours or of a test, but another kind.
Each part has a budget in minutes, and so have all together; what is not done by then is ended, and has
failed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import psutil

from console.configuration import keys
from console.home import CHECKOUT
from tests import bare_machine, gpu, postgres, slurm
from tests.container import compose
from tests.kubernetes import cluster
from tests.required import is_required

FAST = "not browser and not kill and not postgres and not ray"
IN_CHROMIUM = {"flows": "tests/flows", "static": "tests/static", "gateway": "tests/jobs/access/gateway"}
"""What a person does, in Chromium: a part each. Playwright's synchronous side exists once in a process."""
WITH_KILLS = ("tests/kill", "tests/jobs/backends/local")
"""Collecting all others would take longer than some of these tests."""
WITH_CLIENTS = "tests/clients"
"""The vendors' own clients against a whole console: a part of its own, since each needs an environment."""
WITH_FRAMEWORKS = "tests/frameworks"
"""Jobs with the frameworks' own libraries: a part of its own, since these are large and busy."""
ON_RAY = ("tests/jobs/backends/ray", "tests/jobs/backends/test_contract.py")
"""Jobs on a real Ray, whose environment is that of the frameworks."""
WITH_KUBERNETES = "tests/jobs/backends/kubernetes"
"""Tests on a real Kubernetes: a part of its own, since all of them share one, which is built first.

Some of them have a database, unlike the others in the folder around it.
"""
WITH_CONTAINERS = "tests/container"
"""The image of the console, built and started: a part of its own, since that takes minutes before a test."""
WITHOUT_DATABASE = (
    "tests/jobs/dialects",
    "tests/jobs/backends",
    "tests/jobs/node",
    "tests/jobs/fault_tolerance",
    "tests/console/configuration",
    "tests/console/run",
    "tests/fuzz",
)
"""What is the same on any database runs once, on SQLite."""
ON_BOTH = (
    "tests/quotas/admission",
    "tests/jobs/scheduling/test_admission.py",
    "tests/jobs/scheduling/test_handing_over.py",
    "tests/jobs/scheduling/test_reconcile.py",
    "tests/jobs/search",
    "tests/jobs/api/test_outage.py",
    "tests/console/sqlite",
    "tests/console/server/test_handler.py",
    "tests/console/administration/test_big_tables.py",
    "tests/console/test_migrations.py",
    "tests/console/test_periodic_queries.py",
    "tests/console/views/test_page_queries.py",
)
"""What writes beside others, asks by SQL of its own, or tells databases apart.

Everything else runs once too where PostgreSQL and Chromium run: on PostgreSQL, which takes less for granted.
SQLite has under it what people do in Chromium, the vendors' clients, and every kill.
"""
SIDE_BY_SIDE = 2
"""Busy parts at a time: with three, all take a quarter more of the two cores for the same."""
A_FEW = 5
"""So many failures of a part may be chance; more are not run again."""
ALL_MINUTES = 85
"""The budget of all parts together, on two cores."""
SHOWN = 20
"""Names of failed tests at the end, for each part."""
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

LINT = [
    ["mypy"],
    ["ruff", "check", "."],
    ["ruff", "format", "--check", "."],
    ["lint-imports"],
    ["djlint", "--check", "--lint", "templates"],
    ["python", "manage.py", "check"],
    ["python", "manage.py", "makemigrations", "--check", "--dry-run"],
    ["python", "-m", "tests.glossary"],
]


@dataclass(frozen=True, slots=True)
class Go:
    """One go at a part: `memory` is where its pytest remembers what failed, `again` runs that alone.

    `also` names the parts of this run that have all they need. `deadline` is a reading of the monotonic
    clock, in seconds.
    """

    part: str
    memory: Path
    also: frozenset[str] = frozenset()
    again: bool = False
    beside_others: bool = False
    deadline: float = float("inf")

    def pytest(self, *arguments: str, environ: Mapping[str, str]) -> bool:
        """Whether these tests pass."""
        again = ["--last-failed", "--last-failed-no-failures=none", "-n", "0"] if self.again else []
        command = _tool("python", "-m", "pytest", "-q", "-o", f"cache_dir={self.memory}")
        return self.call([*command, *arguments, *again], environ)

    def call(self, command: list[str], environ: Mapping[str, str]) -> bool:
        """Whether a command succeeds in time; what it says is passed on, what it leaves running is not."""
        process = _started(command, environ)
        ears = threading.Thread(target=self._hear, args=[process.stdout], daemon=True)
        ears.start()
        try:
            process.wait(min(max(0.0, self.deadline - time.monotonic()), threading.TIMEOUT_MAX))
        except subprocess.TimeoutExpired:
            _end(process)
            self.say(f"\n=== {self.part}: ended, since its budget of minutes is spent\n")
        ears.join(10)
        return process.returncode == 0

    def _hear(self, said: IO[str]) -> None:
        with said:
            for line in said:
                self.say(line)

    def say(self, text: str) -> None:
        """Whole lines, behind the part's name when other parts speak too."""
        head = f"{self.part:12} | " if self.beside_others else ""
        with ONE_SPEAKS:
            print("".join(f"{head}{line}" for line in text.splitlines(keepends=True)), end="", flush=True)

    def failed(self) -> list[str]:
        """The tests that pytest remembers as failed; none where it did not get as far."""
        kept = self.memory / "v/cache/lastfailed"
        return sorted(json.loads(kept.read_text())) if kept.exists() else []


ONE_SPEAKS = threading.Lock()


@dataclass(frozen=True, slots=True)
class Part:
    """`missing` says what this machine lacks for it, or nothing; `run` says whether it passed.

    `minutes` is its budget: about twice what it takes on two cores, beside another part.  One that
    `waits` for its engine most of the time runs beside two others.
    """

    name: str
    run: Callable[[Go], bool]
    missing: Callable[[], str] = lambda: ""
    minutes: float = 10
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part: passed, FAILED, or why it was left out; `tests` are those that failed."""

    name: str
    told: str
    failed: bool
    minutes: float
    tests: tuple[str, ...] = ()


def lint(go: Go) -> bool:
    """All checkers, each to its end; mypy takes longer than all others, which run beside it."""
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(2) as pool:
        keys.ensure(Path(home))
        done = pool.map(lambda command: go.call(_tool(*command), {"CONSOLE_HOME": home}), LINT)
        return all(list(done))


def shellcheck(go: Go) -> bool:
    """Every shell script."""
    folders = ("deploy", "jobs")
    found = sorted(path for folder in folders for path in (CHECKOUT / folder).rglob("*.sh"))
    scripts = [".ci/run", *(str(path.relative_to(CHECKOUT)) for path in found)]
    return go.call(["shellcheck", "--severity=warning", *scripts], {})


def translations(go: Go) -> bool:
    """Every string in every language."""
    return go.call(_tool("python", "-m", "tests.translations"), {})


def fast(go: Go, database_url: str = "") -> bool:
    """What needs neither a browser nor a kill, in a random order, three files at a time: they wait much.

    On another database than SQLite: what there is to see of a database, with a sample of the kill tests.
    """
    own_parts = (WITH_CLIENTS, WITH_FRAMEWORKS, WITH_KUBERNETES, WITH_CONTAINERS)
    apart = [f"--ignore={folder}" for folder in own_parts]
    if not database_url and {"postgres", "flows"} <= go.also:
        folders = (*WITHOUT_DATABASE, *ON_BOTH)
        return go.pytest("-m", FAST, *_at_a_time(), *apart, *folders, environ={"DATABASE_URL": ""})
    if not database_url:
        return go.pytest("-m", FAST, *apart, *_at_a_time(), environ={"DATABASE_URL": ""})
    others = [f"--ignore={folder}" for folder in WITHOUT_DATABASE]
    return go.pytest(
        "-m",
        f"({FAST} and not sqlite) or sample or postgres",
        *_at_a_time(),
        *apart,
        *others,
        environ={"DATABASE_URL": database_url},
    )


def _at_a_time() -> list[str]:
    """Return how many files run at a time: one more where no browser wants a core meanwhile.

    They run in the order in which `tests/conftest.py` leaves them: the longest first. Each process takes half
    a minute of CPU to collect them.
    """
    return ["-n", "4" if _no_chromium() else "3", "--dist", "loadfile", "--no-loadscope-reorder"]


def on_postgres(go: Go) -> bool:
    """The same on PostgreSQL: on DATABASE_URL, or on a server of our own."""
    given = os.environ.get("DATABASE_URL", "")
    programs = postgres.find_programs()
    if given or programs is None:
        return fast(go, given)
    with postgres.server(programs) as url:
        return fast(go, url)


def in_chromium(go: Go) -> bool:
    """What a person does, in one folder."""
    return go.pytest("-m", "browser", IN_CHROMIUM[go.part], environ={"DATABASE_URL": ""})


def clients(go: Go) -> bool:
    """What the vendors' own clients do with a whole console: two files at a time."""
    two = ("-n", "2", "--dist", "loadfile")
    return go.pytest("-m", FAST, *two, WITH_CLIENTS, environ={"DATABASE_URL": ""})


def frameworks(go: Go) -> bool:
    """Jobs with the frameworks' own libraries, one at a time: each takes both cores."""
    own = go.pytest("-n", "0", WITH_FRAMEWORKS, environ={"DATABASE_URL": ""})
    return go.pytest("-n", "0", "-m", "ray", *ON_RAY, environ={"DATABASE_URL": ""}) and own


def kubernetes(go: Go) -> bool:
    """Everything on one Kubernetes, which is built from source where that was not done before."""
    built = go.call(_tool("python", "-m", "tests.kubernetes.build"), {})
    return built and go.pytest("-n", "0", WITH_KUBERNETES, environ={"DATABASE_URL": ""})


def kill(go: Go) -> bool:
    """Every fault point of a whole console: of three, since what is killed is mostly waited for."""
    three = ("-n", "3", "--dist", "worksteal")
    return go.pytest("-m", "kill", *three, *WITH_KILLS, environ={"DATABASE_URL": ""})


def storm(go: Go) -> bool:
    """Slurm breaks while a hundred jobs run: by itself, since it takes all of a Slurm."""
    environ = {"DATABASE_URL": "", "SLURM_STORM": "100"}  # `make storm` has 500
    return go.pytest("-n", "0", "tests/jobs/scheduling/slurm_storm.py", environ=environ)


def on_gpu(go: Go) -> bool:
    """Jobs with real GPUs, one file at a time: all want the same ones."""
    return go.pytest("-n", "0", "tests/gpu", environ={"DATABASE_URL": ""})


def container(go: Go) -> bool:
    """What a person does with the containers of `deploy/container`."""
    return go.pytest("-n", "0", WITH_CONTAINERS, environ={"DATABASE_URL": ""})


def newcomer(go: Go) -> bool:
    """The commands of README and of docs/running.md on a machine that has Python, make and git alone."""
    return go.pytest("-n", "0", "tests/newcomer.py", "-k", "readme or running", environ={"DATABASE_URL": ""})


def _no_shellcheck() -> str:
    return "" if shutil.which("shellcheck") else "there is no shellcheck (Debian: shellcheck)"


def _no_gettext() -> str:
    return "" if shutil.which("msgfmt") else "there is no GNU gettext (Debian: gettext)"


def _no_postgres() -> str:
    here = os.environ.get("DATABASE_URL") or postgres.find_programs()
    return (
        "" if here else "there is neither DATABASE_URL nor a PostgreSQL server to start (Debian: postgresql)"
    )


def _no_framework() -> str:
    absent = [name for name in ("mpirun.openmpi", "mpirun.mpich", "torchrun") if not shutil.which(name)]
    packages = "openmpi-bin python3-mpi4py mpich python3-torch"
    return f"there is no {' and no '.join(absent)} (Debian: {packages})" if absent else ""


def _no_node() -> str:
    absent = [program for program in ("node", "npm") if not shutil.which(program)]
    return f"there is no {' and no '.join(absent)} (Debian: nodejs npm)" if absent else ""


def _no_chromium() -> str:
    return (
        "" if any(map(shutil.which, CHROMIUM)) else "there is no Chromium (Debian: chromium-headless-shell)"
    )


PARTS = [
    Part("lint", lint),
    Part("shellcheck", shellcheck, _no_shellcheck),
    Part("translations", translations, _no_gettext),
    Part("flows", in_chromium, _no_chromium, minutes=60),
    Part("postgres", on_postgres, _no_postgres, minutes=75),
    Part("sqlite", fast, minutes=60),
    Part("kill", kill, minutes=35),
    Part("clients", clients, _no_node, minutes=30),
    Part("frameworks", frameworks, _no_framework, minutes=35),
    Part("kubernetes", kubernetes, cluster.find_missing, minutes=45, waits=True),
    Part("static", in_chromium, _no_chromium),
    Part("gateway", in_chromium, _no_chromium),
    Part("storm", storm, slurm.missing, waits=True),
    Part("gpu", on_gpu, gpu.missing),
    Part("container", container, compose.find_missing, minutes=15),
    Part("newcomer", newcomer, bare_machine.find_missing, minutes=20),
]
"""The longest first, behind what fails soon."""


def main() -> int:
    """Run the parts that were asked for, all by default; 1 when one failed."""
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(prog="make test", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(names)}")
    wanted = parser.parse_args().parts or names
    if unknown := set(wanted) - set(names):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    with tempfile.TemporaryDirectory() as memory:
        return run([part for part in PARTS if part.name in wanted], Path(memory))


def run(parts: list[Part], memory: Path) -> int:
    """These parts, two at a time and one more, and what is to be said of them; 1 when one failed."""
    end = time.monotonic() + 60 * ALL_MINUTES
    also = frozenset(part.name for part in parts if not part.missing())
    gos = [
        Go(part.name, memory / part.name, also, beside_others=len(parts) > 1, deadline=end) for part in parts
    ]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as lanes, ThreadPoolExecutor(1) as one_more:
        begun = [
            (one_more if part.waits else lanes).submit(_first, part, go)
            for part, go in zip(parts, gos, strict=True)
        ]
    firsts = [each.result() for each in begun]
    outcomes = list(map(_last, parts, gos, firsts))
    print("\n" + "\n".join(f"{each.name:12} {each.minutes:5.1f} min  {each.told}" for each in outcomes))
    for each in outcomes:
        for name in each.tests[:SHOWN]:
            print(f"{'failed' if each.failed else 'unsteady'}: {name}")
    return int(any(each.failed for each in outcomes))


def _first(part: Part, go: Go) -> Outcome:
    if missing := part.missing():
        return Outcome(part.name, f"left out: {missing}", is_required(missing), 0.0)
    go.say(f"\n=== {part.name}\n")
    began = time.monotonic()
    passed = part.run(replace(go, deadline=min(go.deadline, began + 60 * part.minutes)))
    failed = () if passed else tuple(go.failed())
    outcome = Outcome(
        part.name,
        "passed" if passed else "FAILED",
        not passed,
        (time.monotonic() - began) / 60,
        failed,
    )
    go.say(f"\n=== {part.name}: {outcome.told} in {outcome.minutes:.1f} min\n")
    return outcome


def _last(part: Part, go: Go, first: Outcome) -> Outcome:
    """What a few failures of a part were, now that nothing else runs."""
    if not 0 < len(first.tests) <= A_FEW:
        return first
    print(f"\n=== once more, alone: {', '.join(first.tests)}", flush=True)
    passed = part.run(replace(go, again=True, beside_others=False))
    return replace(first, told="passed", failed=False) if passed else first


def _tool(name: str, *arguments: str) -> list[str]:
    """A program of this environment."""
    return [str(Path(sys.executable).with_name(name)), *arguments]


def _end(process: "subprocess.Popen[str]") -> None:
    """End a command with all that it has started."""
    started = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for each in started:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()


def _started(command: list[str], environ: Mapping[str, str]) -> "subprocess.Popen[str]":
    """What it prints comes by a pipe: others speak too.

    Modules are kept compiled, whatever the machine says: some hundred processes would compile them again.
    """
    return subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


if __name__ == "__main__":
    sys.exit(main())
