"""Every test runs in some part of `make test`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from console.home import CHECKOUT
from tests import run


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((CHECKOUT / folder).rglob("*.py"))]


def test_what_needs_a_browser_stands_where_browsers_are_started() -> None:
    started = {path for folder in run.IN_CHROMIUM for path in files(folder)}
    asking = {path for path in files("tests") if "mark.browser" in path.read_text()} - {Path(__file__)}
    assert asking <= started


@pytest.mark.parametrize("folder", run.WITHOUT_DATABASE)
def test_what_runs_on_one_database_only_uses_none(folder: str) -> None:
    """pytest-django lets no test near a database that does not ask for it by one of these."""
    assert files(folder)
    asks = ("django_db", "transactional_db", "db: None", 'usefixtures("db')
    assert [path for path in files(folder) if any(word in path.read_text() for word in asks)] == []


def test_each_process_that_runs_tests_has_a_home_of_its_own() -> None:
    assert Path(os.environ["CONSOLE_HOME"]) == settings.CONSOLE_HOME


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], bool]:
    """A part of `make test` that has these tests; they can keep something in `HERE`."""
    monkeypatch.setattr(run, "UNSTEADY", [])

    def ran(tests: str) -> bool:
        (tmp_path / "test_part.py").write_text(
            f"from pathlib import Path\nHERE = Path({str(tmp_path)!r})\n{tests}"
        )
        (tmp_path / "pytest.ini").touch()
        plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
        return run._pytest("-c", str(tmp_path / "pytest.ini"), str(tmp_path), environ=plain)

    return ran


def test_what_fails_once_and_passes_alone_is_named(part: Callable[[str], bool]) -> None:
    assert part(
        "def test_it():\n    new = not (HERE / 'x').exists()\n    (HERE / 'x').touch()\n    assert not new\n"
    )
    assert [name.rpartition("::")[2] for name in run.UNSTEADY] == ["test_it"]


@pytest.mark.parametrize(
    "tests", ["def test_it():\n    assert False\n", "import nonsense\n"], ids=["a failure", "no test"]
)
def test_what_fails_twice_has_failed(part: Callable[[str], bool], tests: str) -> None:
    assert not part(tests)
    assert run.UNSTEADY == []


def test_many_failures_are_no_chance(part: Callable[[str], bool]) -> None:
    many = "".join(
        f"def test_{n}():\n    assert (HERE / 'x{n}').exists() or (HERE / 'x{n}').touch()\n" for n in range(6)
    )
    assert not part(many)
    assert run.UNSTEADY == []
