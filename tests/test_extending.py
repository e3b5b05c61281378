"""The backend and the dialect of docs/extending.md, in docs/examples, added to the packages and run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jobs.backends
import jobs.dialects
from console.home import CHECKOUT
from jobs import clusters
from jobs.backends import registry
from jobs.backends.base import Handle, LogState, Observation, ReplicaRef
from jobs.dialects import Document
from jobs.dialects import registry as dialects
from jobs.dialects.base import Refused
from jobs.scheduling import reconcile
from jobs.spec import JobSpec, RoleSpec
from jobs.states import State
from tests.jobs.conftest import Place, attempt_of, place, queued, spec
from tests.waiting import wait_for

__all__ = ["place"]

EXAMPLES = CHECKOUT / "docs" / "examples"
BACKEND = "detached"
DIALECT = "plain"


@pytest.fixture(autouse=True)
def _extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[None]:
    """Add the page's code to the packages, and its rows to the registries."""
    before = set(sys.modules)
    for package, folder in ((jobs.backends, "jobs/backends"), (jobs.dialects, "jobs/dialects")):
        paths = [*package.__path__, str(EXAMPLES / folder)]
        monkeypatch.setattr(package, "__path__", paths)
    monkeypatch.setitem(registry.PACKAGES, BACKEND, "jobs.backends.detached")
    monkeypatch.setattr(dialects, "NAMES", (*dialects.NAMES, DIALECT))
    monkeypatch.setattr(dialects, "_HOMES", {**dialects._HOMES, DIALECT: "jobs.dialects.plain"})
    settings.CONSOLE_HOME = settings.CONSOLE_SHARED_FOLDER = tmp_path / "home"
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("jobs.backends.detached", "jobs.dialects.plain")):
            del sys.modules[name]
    for cached in (dialects.get, dialects.fields, registry._import):
        cached.cache_clear()


def job(command: str) -> JobSpec:
    return spec(roles=(RoleSpec(name="worker", command=command),))


def look(here: Place, handle: Handle) -> State | None:
    """Return the state of the attempt in the engine, None where it knows none."""
    seen = clusters.backend_for(here.cluster).observe([handle])[handle]
    return seen.state if isinstance(seen, Observation) else None


@pytest.fixture
def here(place: Place) -> Place:
    """A workspace with a quota on a cluster of the page's backend."""
    place.cluster.backend = BACKEND
    place.cluster.config = {"nice": 5}
    place.cluster.save()
    reconcile.take_inventory(place.cluster.pk)
    return place


@pytest.mark.parametrize(("command", "state"), [("echo hello", State.SUCCEEDED), ("exit 3", State.FAILED)])
def test_backend_of_the_page_runs_a_job_to_its_end(here: Place, command: str, state: State) -> None:
    made = queued(here, job(command))
    reconcile.drain(here.cluster.pk)
    handle = Handle(attempt_of(made).handle)
    wait_for(lambda: look(here, handle) is state)
    reconcile.observe(here.cluster.pk)
    made.refresh_from_db()
    assert made.state == state
    backend = clusters.backend_for(here.cluster)
    log = backend.read_log(handle, ReplicaRef("worker", 0), "", 100)
    assert (log.data, log.state) == (b"hello\n" if state is State.SUCCEEDED else b"", LogState.COMPLETE)
    assert backend.find([str(handle), "another"]) == {handle: [handle], "another": []}
    backend.forget(handle)
    assert look(here, handle) is None


def test_backend_of_the_page_stops_a_job(here: Place) -> None:
    made = queued(here, job("trap '' TERM; while :; do sleep 0.1; done"))
    reconcile.drain(here.cluster.pk)
    handle = Handle(attempt_of(made).handle)
    wait_for(lambda: look(here, handle) is State.RUNNING)
    clusters.backend_for(here.cluster).stop(handle, grace_s=1, signal="TERM")
    wait_for(lambda: look(here, handle) is State.STOPPED)


def test_settings_of_the_page_are_checked_and_have_labels() -> None:
    registration = registry.find(BACKEND)
    assert [each.name for each in registration.fields()] == ["nice"]
    [problem] = clusters.check_settings(registration, {"nise": 5})
    assert (problem.code, problem.params) == ("unknown_but", {"suggestion": "nice"})


def test_dialect_of_the_page_reads_and_writes() -> None:
    document = Document('{"job": "hello", "run": "echo hello"}')
    assert document.dialect == DIALECT
    assert (document.parsed.spec.name, document.parsed.spec.roles[0].command) == ("hello", "echo hello")
    rendered = dialects.get(DIALECT).render(document.parsed.spec, {})
    assert Document(rendered.text).parsed.spec == document.parsed.spec
    with pytest.raises(Refused) as refused:
        Document('{"job": "hello"}', DIALECT).parsed  # noqa: B018 read when it is asked for
    assert [each.pointer for each in refused.value.problems] == ["/run"]
