"""Slurm with its accounting: what it remembers of jobs that its controller has forgotten."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from jobs.backends.base import Handle, Observation, Refused, Unreachable, Unseen
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.messages import reason_message
from jobs.models import Attempt, Replica, ReplicaUsage
from jobs.scheduling import accounted_usage
from jobs.spec import Resources, RoleSpec
from jobs.states import ReasonCode, ReplicaState, State
from jobs.web.job.metrics import describe_usage
from quotas.models import AuditEntry, Cluster, Membership, Quota
from tests import slurm as slurms
from tests.factories import (
    attempt_of,
    make_cluster,
    make_job,
    make_quota,
    make_spec,
    make_user,
    make_workspace,
)
from tests.jobs.backends.benches import replica, role, wait_until_over
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

pytestmark = pytest.mark.once

LONG = 120
"""Seconds that a busy machine may take."""


@pytest.fixture(scope="module")
def accounted() -> Iterator[Slurm]:
    """A Slurm with accounting of this module's own: the only one, so that it is started once."""
    if lacking := slurms.missing(accounting=True):
        pytest.skip(lacking)
    with slurms.server(accounting=True) as running:
        yield running


@pytest.fixture
def bench(tmp_path: Path, accounted: Slurm) -> Iterator[SlurmBench]:
    made = SlurmBench(tmp_path, accounted)
    yield made
    made.close()


@pytest.fixture
def without_slurmdbd(accounted: Slurm) -> Iterator[Callable[[], None]]:
    """Takes slurmdbd away, and what is called at the end brings it back."""
    yield lambda: accounted.kill("slurmdbd")
    if "slurmdbd" not in accounted.running:
        accounted.start_accounting()


def forgotten(bench: SlurmBench, handles: list[Handle]) -> None:
    """Wait until the controller knows none of them, and accounting how each ended; nothing that their runs
    wrote is left.
    """
    numbers = {str(SlurmJob.of(handle).number) for handle in handles}
    asked = ("sacct", "--noheader", "--parsable2", "--allocations", "--format=JobIDRaw,End")

    def ended() -> bool:
        known = bench.slurm.call("squeue", "--noheader", "--states=all", "--format=%A").split()
        told = bench.slurm.call(*asked, f"--jobs={','.join(sorted(numbers))}")
        ends = dict(line.split("|") for line in told.split())
        return not numbers & set(known) and numbers <= ends.keys() and "Unknown" not in ends.values()

    wait_for(ended, LONG, 0.2)
    for handle in handles:
        for run in bench.attempt(Handle(SlurmJob.of(handle).key)).glob("run-*"):
            shutil.rmtree(run)


def look(backend: SlurmBackend, handles: list[Handle]) -> list[Observation]:
    seen = backend.observe(handles)
    found = [seen[handle] for handle in handles]
    assert all(isinstance(what, Observation) for what in found), found
    return [what for what in found if isinstance(what, Observation)]


def test_slurm_job_forgotten_by_controller_is_found_in_accounting(
    bench: SlurmBench, without_slurmdbd: Callable[[], None]
) -> None:
    commands = ("true", "exit 3", "kill -9 $$", "sleep 600")
    handles = [bench.backend.submit(bench.submission(role(command))) for command in commands]
    wait_for(lambda: look(bench.backend, handles)[3].state is State.RUNNING, LONG)
    bench.slurm.call("scancel", str(SlurmJob.of(handles[3]).number))
    forgotten(bench, handles)
    by_command_line = bench.backend
    by_rest_too = SlurmBackend(
        SlurmConfig.from_settings(bench.folder, {**bench.told, **by_rest(bench.slurm)})
    )

    without_slurmdbd()
    for backend in (by_command_line, by_rest_too):
        for what in backend.observe(handles).values():
            assert isinstance(what, Unseen)
            assert what.why.startswith("slurmdbd does not say how jobs ended")
    bench.slurm.start_accounting()
    wait_for(
        lambda: not any(isinstance(what, Unseen) for what in by_rest_too.observe(handles).values()), LONG
    )

    for backend in (by_command_line, by_rest_too):
        good, failed, killed, cancelled = look(backend, handles)
        assert [each.state for each in (good, failed, killed)] == [
            State.SUCCEEDED,
            State.FAILED,
            State.FAILED,
        ]
        assert (replica(good).state, replica(good).exit_code) == (ReplicaState.SUCCEEDED, 0)
        assert good.ended_at
        assert replica(good).node.startswith("cpu")
        said = reason_message(cancelled.reason.code, cancelled.reason.params)
        assert (cancelled.state, said) == (State.STOPPED, "Cancelled in Slurm, not from this console.")
    _good, failed, killed, _cancelled = look(by_command_line, handles)
    assert failed.reason.params == {"exit_code": 3}
    assert (killed.reason.code, replica(killed).signal) == (ReasonCode.SIGNALLED, 9)
    assert look(by_rest_too, handles)[1].reason.params == {}  # v0.0.38 does not tell it


def unnoted(bench: SlurmBench, handle: Handle) -> str:
    """As if its submitter had died before it noted the number; the key."""
    (bench.attempt(Handle(SlurmJob.of(handle).key)) / "sent").unlink()
    return SlurmJob.of(handle).key


def test_slurm_job_never_noted_is_found_by_name_in_accounting(
    bench: SlurmBench, without_slurmdbd: Callable[[], None]
) -> None:
    """Only that: neither what a refused sbatch left behind, nor a copy that was cancelled before it began."""
    replicas = (role("true"), role("true", "second"))
    ran = bench.backend.submit(bench.submission(*replicas))
    wait_for(lambda: look(bench.backend, [ran])[0].state is State.SUCCEEDED, LONG)
    held = SlurmBackend(bench.config).submit(bench.submission())
    bench.slurm.call("scancel", str(SlurmJob.of(held).number))
    refused = bench.unacceptable()
    with pytest.raises(Refused):
        bench.backend.submit(refused)
    never = bench.submission()
    forgotten(bench, [ran, held])
    keys = [unnoted(bench, ran), unnoted(bench, held), refused.key, never.key]
    expected = {keys[0]: [ran], keys[1]: [], keys[2]: [], keys[3]: []}
    by_rest_too = SlurmBackend(
        SlurmConfig.from_settings(bench.folder, {**bench.told, **by_rest(bench.slurm)})
    )
    for backend in (bench.backend, by_rest_too):
        assert backend.find(keys) == expected
    without_slurmdbd()
    for backend in (bench.backend, by_rest_too):
        with pytest.raises(Unreachable):
            backend.find(keys)
        assert backend.find([never.key]) == {never.key: []}, "whose handing over has not begun"


def imported(cluster: Cluster, *options: str, command: str = "import_accounts") -> list[str]:
    out = StringIO()
    call_command(command, cluster.slug, *options, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def house(accounted: Slurm, settings: Any, tmp_path: Path) -> Cluster:
    """A console that knows the cluster, and whom its accounts call root."""
    settings.CONSOLE_SLURM_FOLDER = str(tmp_path)
    make_user("root")
    config = {"configuration": str(accounted.configuration), "timeout_s": 60}
    return make_cluster("bench", backend="slurm", admission="engine", config=config)


@pytest.mark.django_db
def test_import_accounts_creates_quotas_from_slurm_accounts(house: Cluster) -> None:
    with pytest.raises(SystemExit) as end:
        imported(house, "--diff")
    assert end.value.code == 2
    assert not Quota.objects.exists()

    told = imported(house)
    assert "+ /workspaces/vision/quotas/bench/vision/quotas/vision-a" in told
    assert "? vision-a: MaxWall=01:00:00" in told
    assert "? QOS onegpu: not used by any job priority." in told
    vision, inside = Quota.objects.get(slug="vision"), Quota.objects.get(slug="vision-a")
    assert any(line.startswith("? vision: its child accounts are guaranteed 50 in total") for line in told)
    assert (vision.cpu_milli, vision.gpus, vision.most_jobs) == (None, 2, None)
    assert (inside.parent, inside.cpu_milli, inside.memory_mib) == (vision, 50_000, 102_400)
    assert (inside.gpus, inside.gpus_by_type) == (1, {"a100": 1})
    assert (inside.most_jobs, inside.person_jobs) == (5, 2)
    assert set(Membership.objects.values_list("workspace__slug", "user__username", "role")) == {
        ("vision", "root", "developer"),
        ("speech", "root", "developer"),
    }
    trail = AuditEntry.objects.filter(way="command")
    assert set(trail.values_list("actor_name", flat=True)) == {"import_accounts bench"}
    house.refresh_from_db()
    assert house.config["accounts"] == {"vision": "vision", "speech": "speech"}
    assert house.config["qos"] == {"9": "onejob"}

    assert imported(house)[0] == "No changes: everything matches the accounts."
    Membership.objects.filter(workspace__slug="vision").update(role="admin")
    Quota.objects.filter(slug="vision").update(gpus=8, most_pending=7, name="Vision's")
    told = imported(house)
    assert told[:2] == ["~ /workspaces/vision/quotas/bench/vision: gpus 8 → 2", "1 change was made."]
    assert Membership.objects.get(workspace__slug="vision").role == "admin"
    vision.refresh_from_db()
    assert (vision.most_pending, vision.name) == (7, "Vision's")


@pytest.mark.django_db
def test_export_of_quotas_writes_limits_into_slurm_accounts(house: Cluster, accounted: Slurm) -> None:
    def grown() -> str:
        fields = ("format=GrpTRES,GrpJobs,MaxJobs", "where", "account=speech", "user=")
        return accounted.call(
            "sacctmgr", "--noheader", "--parsable2", "list", "associations", *fields
        ).strip()

    speech = make_workspace("speech")
    make_quota(speech, house, "speech", cpu_milli=20_000, gpus=4, most_jobs=9, person_jobs=3)
    make_quota(speech, house, "other", gpus=1)
    with pytest.raises(CommandError, match="Set write_back to true there"):
        imported(house, command="export_accounts")
    house.config = {**house.config, "write_back": True}
    house.save()
    before = grown()
    with pytest.raises(SystemExit):
        imported(house, "--diff", command="export_accounts")
    assert grown() == before
    try:
        told = imported(house, command="export_accounts")
        assert told == [
            "~ /accounts/speech: gpus – → 4; cores – → 20; jobs – → 9; jobs_of_one – → 3",
            "1 change was made.",
        ]
        assert grown() == "cpu=20,gres/gpu=4|9|3"
        assert AuditEntry.objects.get(action="apply").actor_name == "export_accounts bench"
        again = imported(house, command="export_accounts")
        assert again == ["No changes: everything matches the accounts."]
        Quota.objects.filter(slug="speech").update(gpus=None, cpu_milli=30_000)
        imported(house, command="export_accounts")
        assert grown() == "cpu=30,gres/gpu=4|9|3"
    finally:
        none = ("set", "GrpTRES=cpu=-1,gres/gpu=-1", "GrpJobs=-1", "MaxJobs=-1")
        accounted.call("sacctmgr", "--immediate", "modify", "account", "speech", *none)


@pytest.mark.django_db
def test_import_accounts_for_cluster_without_accounts_shows_error() -> None:
    with pytest.raises(CommandError, match="has no accounts"):
        imported(make_cluster("local"))
    with pytest.raises(CommandError, match="Cluster not found"):
        call_command("import_accounts", "nowhere")


def test_slurm_accounting_limits_are_shown_as_pending_reasons(bench: SlurmBench) -> None:
    one, both = (
        role("sleep 600", resources=Resources(cpu_milli=1000, memory_mib=64, gpus=gpus)) for gpus in (1, 2)
    )
    qos = {"1": "onegpu", "2": "onejob"}
    told = {**bench.told, "accounts": {"vision": "vision", "speech": "speech"}, "qos": qos}
    backend = Releasing(SlurmConfig.from_settings(bench.folder, told))

    def two(workspace: str, priority: int, each: RoleSpec) -> Handle:
        """The second of two jobs, of which only one may run."""
        first, second = (
            backend.submit(bench.submission(each, workspace=workspace, priority=priority)) for _ in range(2)
        )
        wait_for(lambda: look(backend, [first])[0].state is State.RUNNING, LONG)
        return second

    limited = {
        two("vision", 5, both): "AssocGrpGRES",
        two("speech", 1, one): "QOSMaxGRESPerUser",
        two("speech", 2, role("sleep 600")): "QOSMaxJobsPerUserLimit",
    }
    wait_for(lambda: words(backend, limited) == set(limited.values()), LONG)
    for seen in look(backend, list(limited)):
        said = reason_message(seen.reason.code, seen.reason.params)
        assert said.startswith(f"Waiting: Slurm limit {seen.reason.params['slurm']} reached. Starts when")


def words(backend: SlurmBackend, handles: Iterable[Handle]) -> set[object]:
    return {seen.reason.params.get("slurm") for seen in look(backend, list(handles))}


BUSY = """\
python3 -c 'import time
while time.process_time() < 0.8: pass'
[ $SLURM_JOB_NAME = $APP_ID ] || exit 9
"""


@pytest.mark.django_db
def test_usage_of_an_ended_job_comes_from_accounting(
    bench: SlurmBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = (role(BUSY, name="busy", replicas=2), role("sleep 1", name="idle"))
    handle = bench.backend.submit(bench.submission(*roles))
    assert wait_until_over(bench.backend, handle, LONG).state is State.SUCCEEDED
    spec = make_spec(roles=roles)
    job = make_job(State.SUCCEEDED, spec=spec)
    attempt = attempt_of(job)
    now = timezone.now()
    Attempt.objects.filter(pk=attempt.pk).update(handle=handle, ended_at=now)
    Replica.objects.filter(attempt=attempt).update(started_at=now - timedelta(seconds=4), ended_at=now)
    monkeypatch.setattr(accounted_usage, "backend_for", lambda _cluster: bench.backend)

    def found() -> dict[tuple[str, int], ReplicaUsage]:
        accounted_usage.collect(job.cluster_id)
        rows = ReplicaUsage.objects.select_related("replica")
        return {(each.replica.role, each.replica.index): each for each in rows}

    uses = wait_for(found, LONG, 0.5)
    assert {key for key in uses if key[0] == "busy"} == {("busy", 0), ("busy", 1)}
    assert 0.7 < (uses["busy", 0].cpu_s or 0) < 2.4, "of each replica"
    assert 17 < (uses["busy", 0].samples[-1].cpu or 0) < 60
    assert accounted_usage.due_clusters() == []
    told = describe_usage(job, spec)
    assert re.fullmatch(r"\d+% of 0.1 CPU cores · at most \d+ MiB of 64 MiB", told["busy"]), told
