"""Every test runs in some part of `make test`."""

import os
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
