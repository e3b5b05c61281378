"""`manage.py try_cluster`: what it says; what is tried on a Slurm is tested beside its backend."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from jobs import clusters
from jobs.backends.base import CheckReport, Person, Refused
from jobs.management.commands import try_cluster
from jobs.states import Reason, ReasonCode
from quotas.models import Cluster
from tests.factories import make_cluster, make_user
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db


class Tried(MemoryEngine):
    """An engine that says what it is told to."""

    told = CheckReport(("n1", "n2"))

    def check(self) -> CheckReport:
        self._answer()
        return self.told

    def try_as(self, person: Person) -> str:
        if not person.unix_name:
            raise Refused(Reason(ReasonCode.REFUSED, {"why": "no_unix_name", "name": person.name}))
        return person.unix_name


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Tried:
    made = Tried()
    monkeypatch.setattr(try_cluster, "backend_for", lambda _: made)
    make_cluster("here")
    return made


def test_try_cluster_reports_complete_cluster(engine: Tried) -> None:
    out = StringIO()
    call_command("try_cluster", "here", stdout=out)
    assert out.getvalue() == "Everything is there. Tried: n1, n2\n"


def test_try_cluster_fails_with_missing_requirements(engine: Tried) -> None:
    engine.told = CheckReport(("n1",), ("The folder is not shared.", "The user is unknown."))
    with pytest.raises(CommandError, match=r"^The folder is not shared\.\nThe user is unknown\.$"):
        call_command("try_cluster", "here")
    engine.away = True
    with pytest.raises(CommandError):
        call_command("try_cluster", "here")


def test_try_cluster_reports_optional_gaps_without_failing(engine: Tried) -> None:
    engine.told = CheckReport(("n1",), (), ("There is no Python.",))
    out = StringIO()
    call_command("try_cluster", "here", stdout=out)
    assert out.getvalue().splitlines() == ["There is no Python.", "Everything is there. Tried: n1"]


def test_try_cluster_tries_job_of_given_user(engine: Tried) -> None:
    make_user("alice", unix_name="asmith")
    make_user("bob")
    out = StringIO()
    call_command("try_cluster", "here", "--as", "alice", stdout=out)
    assert out.getvalue().splitlines()[1] == "A job of alice's ran as the UNIX user asmith."
    with pytest.raises(CommandError, match="bob has none"):
        call_command("try_cluster", "here", "--as", "bob")
    with pytest.raises(CommandError, match="nobody called carol"):
        call_command("try_cluster", "here", "--as", "carol")


def test_try_cluster_rejects_unknown_or_untestable_cluster(
    engine: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match="There is no cluster nowhere"):
        call_command("try_cluster", "nowhere")
    monkeypatch.setattr(try_cluster, "backend_for", clusters.backend_for)
    Cluster.objects.update(backend="local")
    with pytest.raises(CommandError, match="need nothing that could be tried"):
        call_command("try_cluster", "here")
    Cluster.objects.update(backend="slurm", config={"nonsense": 1})
    with pytest.raises(CommandError, match="make no sense"):
        call_command("try_cluster", "here")
