"""Where the tests run: with a CONSOLE_HOME of their own, and never with this machine's console."""

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from unittest.mock import patch

import django
import pytest
from django.template import Context, Template
from django.test import SimpleTestCase
from django.test.signals import template_rendered
from django.utils import translation
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from console.configuration import keys
from console.home import CHECKOUT
from tests import prepared, required
from tests import ray_cluster as rays
from tests import slurm as slurms
from tests import sshd as sshds
from tests.kubernetes import cluster as clusters
from tests.run import ON_BOTH

LONG = {
    CHECKOUT / "tests" / name
    for name in (
        "console/run/test_run.py",
        "jobs/backends/test_contract.py",
        "jobs/dialects/test_sbatch_writing.py",
        "jobs/scheduling/test_fault_injection.py",
        "jobs/access/terminal_gateway/test_crowd.py",
        "kill/test_upgrade.py",
        "quotas/admission/test_crowd.py",
        "test_slurm_page.py",
    )
}

DATABASES = frozenset(
    {
        *("db", "transactional_db", "live_server", "admin_client", "django_db_setup"),
        *("DjangoDbBlocker", "Stack", "running", "postgres", "prepared"),
    }
)
"""Fixtures, and names of a test's module, that lead to one."""

# What is imported and collected stays to the end: looking for garbage among it takes seconds in each process.
gc.disable()
# For a format that no test checks, jsonschema would build forty parsers, for seconds.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# Before pytest-django reads the settings, which it does once the first conftest files are loaded.
_HOME = Path(tempfile.mkdtemp(prefix="console-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
for name in [name for name in os.environ if name.startswith("CONSOLE_")]:
    del os.environ[name]
for name in ("PORT", "REDIS_URL"):
    os.environ.pop(name, None)
os.environ["CONSOLE_HOME"] = str(_HOME)
os.environ["CONSOLE_DISK_FLOOR_MIB"] = "0"  # whatever is free where they run
os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
keys.ensure(_HOME)
django.setup()  # so that the conftest files of folders may import models

# The same examples at every run, so that a change is judged by what it changed, and not more than repeat
# what was found once; none fails for being slow on a busy machine. `--hypothesis-profile long` looks for new
# ones.
_SAME = hypothesis_settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis_settings.register_profile("console", _SAME)
hypothesis_settings.register_profile("long", _SAME, derandomize=False, max_examples=3000)
hypothesis_settings.load_profile("console")
# Nor do they depend on which modules of ours other tests have imported: Hypothesis tries their constants.
patch("hypothesis.internal.conjecture.providers.is_local_module_file", lambda _path: False).start()


def pytest_configure() -> None:
    """What tests need otherwise than people: fast passwords, and static files that nobody has collected.

    And a short end for those that commit, and contexts of pages without those of their parts.
    """
    from django.conf import settings  # noqa: PLC0415  # they exist from here on
    from django.test import TransactionTestCase, utils  # noqa: PLC0415

    from tests.emptying import empty_after_a_test  # noqa: PLC0415

    TransactionTestCase._fixture_teardown = empty_after_a_test  # type: ignore[attr-defined]
    utils.instrumented_test_render = _render  # type: ignore[attr-defined]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STORAGES["staticfiles"] = {"BACKEND": "tests.static_files.UnhashedStorage"}


def _render(template: Template, context: Context) -> str:
    """Render a template; tell the test client of its context, unless another template includes it.

    The client copies each context that it is told of: a page of settings includes a thousand parts.
    """
    if context.template is template:
        template_rendered.send(sender=template, template=template, context=context)
    return template.nodelist.render(context)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """The database begins with all tables: migrations ran once, not once in each process."""
    from django.conf import settings  # noqa: PLC0415  # they exist from here on

    database = settings.DATABASES["default"]
    if url := os.environ.get("DATABASE_URL"):
        database.setdefault("TEST", {})["TEMPLATE"] = prepared.template(url)
        # Most tests are a transaction, which waits for whatever they wait for.
        database["OPTIONS"]["options"] += " -c idle_in_transaction_session_timeout=0"
    else:
        database["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"  # nothing here outlives a power cut
        prepared.copy_database(Path(database["TEST"]["NAME"]))


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """A file of SQLite is there already, and goes with the folder that it is in."""
    return not os.environ.get("DATABASE_URL")


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """Commands that a test calls may change it for those that follow."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    """A page asked for in another language leaves that language to the thread, and to the next test."""
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    """Rate limits, which reads and how many refusals were written down, and what providers published, are
    each test's own.
    """
    from django.core.cache import cache  # noqa: PLC0415  # there are settings from here on

    from jobs.access.folders import file_audit  # noqa: PLC0415
    from quotas import audit  # noqa: PLC0415  # and models
    from quotas.models import single_person  # noqa: PLC0415  # and models

    cache.clear()
    single_person.note(frozenset())
    audit.refusals.forget()
    file_audit._recorded.clear()


@pytest.fixture(scope="session")
def slurm() -> Iterator[slurms.Slurm]:
    """A Slurm of this run's own; left out where the machine lacks what it takes."""
    if lacking := slurms.missing():
        pytest.skip(lacking)
    with slurms.server() as running:
        yield running


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[rays.RayCluster]:
    """A Ray of this run's own; left out where its packages cannot be had."""
    with rays.cluster() as running:
        yield running


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[clusters.Cluster]:
    """A Kubernetes of this run's own."""
    if lacking := clusters.find_missing():
        pytest.skip(lacking)
    with clusters.server() as running:
        yield running


@pytest.fixture(scope="session")
def sshd() -> Iterator[sshds.Server]:
    """An SSH server of this run's own."""
    if lacking := sshds.missing():
        pytest.skip(lacking)
    with sshds.server() as running:
        yield running


@pytest.fixture(autouse=True)
def _mail_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread would not see what a test has not committed."""
    monkeypatch.setattr("console.sign_in.outbox.later", lambda work: work())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first: begun last, the other processes would wait for them.

    Of what runs on both databases, that which sees none is the same on each, and runs on SQLite alone.
    """
    if os.environ.get("DATABASE_URL"):
        again = [item for item in items if _runs_on_both(item) and not _sees_a_database(item)]
        config.hook.pytest_deselected(items=again)
        left_out = set(again)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.path not in LONG)


def pytest_collection_finish() -> None:
    """From here on garbage is looked for again, among what tests make."""
    gc.freeze()
    gc.enable()


def _runs_on_both(item: pytest.Item) -> bool:
    return any(item.path.is_relative_to(CHECKOUT / each) for each in ON_BOTH)


def _sees_a_database(item: pytest.Item) -> bool:
    """Whether it asks for one, in one of the ways of pytest-django, or for a whole console."""
    if item.get_closest_marker("once") or not isinstance(item, pytest.Function):
        return False
    marked = any(map(item.get_closest_marker, ("django_db", "sample", "postgres")))
    is_a_case = item.cls is not None and issubclass(item.cls, SimpleTestCase)
    return marked or is_a_case or not DATABASES.isdisjoint({*item.fixturenames, *vars(item.module)})


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Each process that runs tests makes a home of its own: pytest-django reads the settings that it finds
    named in its environment before it reads this file.
    """
    del os.environ["DJANGO_SETTINGS_MODULE"], os.environ["CONSOLE_HOME"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What has to be there is (`tests.required`): a test."""
    return required.all_of((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A whole file of them."""
    return required.all_of((yield))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests measured (`record_property`), wherever they ran."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
