"""Several processes that submit, admit, end, hold, take back and edit at random on one database.

`python -m tests.quotas.admission.crowd PROCESSES STEPS` works on DATABASE_URL, which has all tables and no
row. Each reservation is judged in the transaction that makes it, under the lock that it holds.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

import django

from jobs.dialects.document import Document

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from django.db import DEFAULT_DB_ALIAS, connections, transaction  # noqa: E402  # settings come first
from django.db.backends.postgresql.base import DatabaseWrapper  # noqa: E402

from jobs import submission  # noqa: E402
from jobs.dialects.base import Parsed  # noqa: E402
from jobs.lifecycle import transitions  # noqa: E402
from jobs.models import Attempt, Job  # noqa: E402
from jobs.scheduling import admission, observations  # noqa: E402
from jobs.spec import Idle, JobSpec, Resources, RoleSpec  # noqa: E402
from jobs.states import LIVE, Reason, ReasonCode, State  # noqa: E402
from quotas import ledger  # noqa: E402
from quotas.amounts import Amounts, total  # noqa: E402
from quotas.clusters import inventory  # noqa: E402
from quotas.ledger import reports  # noqa: E402
from quotas.models import (  # noqa: E402
    Cluster,
    Membership,
    Node,
    NodeState,
    Quota,
    Request,
    Reservation,
    User,
    Workspace,
)

really_reserve = ledger.reserve


def judged(request: Request, placement: Sequence[tuple[str, Amounts]], *, borrowed: bool = False) -> None:
    """Reserve, and see that no limit and no node is passed by it."""
    really_reserve(request, placement, borrowed=borrowed)
    gpus = total(here for _node, here in placement).gpu_count
    quota: Quota | None = request.quota
    while quota is not None and gpus and not borrowed:
        quota.refresh_from_db()
        held, _jobs = reports.held_in(quota)
        assert quota.gpus is None or held.gpu_count <= quota.gpus, f"{quota}: {held} of {quota.gpus}"
        quota = quota.parent
    rows = Reservation.objects.filter(cluster_id=request.cluster_id, active=True)
    held_on = [(node, here) for each in rows.values_list("placement", flat=True) for node, here in each]
    for node in Node.objects.filter(name__in=[name for name, _here in placement]):
        here = total(Amounts.from_json(amounts) for name, amounts in held_on if name == node.name)
        assert here.gpu_count <= sum(node.gpus.values())
        assert here.cpu_milli <= node.cpu_milli
        assert node.takes_jobs


class Member:
    """What one process does, step by step."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.user = User.objects.get(username="crowd")
        self.cluster = Cluster.objects.get()

    def step(self) -> None:
        steps = [
            self.submit,
            self.submit,
            self.admit,
            self.admit,
            self.end,
            self.end,
            self.stop,
            self.edit,
            self.hold,
        ]
        self.chance.choice([*steps, self.cordon])()

    def submit(self) -> None:
        gpus = self.chance.randint(0, 3)
        role = RoleSpec(
            name="w",
            command="true",
            replicas=self.chance.randint(1, 2),
            resources=Resources(gpus=gpus, gpu_type="A100" if gpus else ""),
        )
        idle = self.chance.choice([None, None, Idle.ACCEPT, Idle.FORCE])
        spec = JobSpec(name="j", roles=(role,), priority=self.chance.randint(1, 9), idle=idle)
        quota = self.chance.choice(list(Quota.objects.filter(accepts_jobs=True)))
        submission.store(self.user, Document("{}", "openpai-v1").with_parsed(Parsed(spec, text="{}")), quota)

    def admit(self) -> None:
        admission.admit(self.cluster.pk)

    def end(self) -> None:
        """An engine says that one of them ended; those that make room queue again."""
        job = self._one([state.value for state in LIVE])
        if job is None:
            return
        attempt = Attempt.objects.get(job=job, number=job.attempt_number)
        ledger.record_start(attempt.key)
        with suppress(transitions.Overtaken), transaction.atomic():
            if attempt.end_wanted:
                observations.settle(job, attempt, State.STOPPED, observations.intended_reason(attempt))
            else:
                transitions.end(job, attempt, State.FAILED, Reason(ReasonCode.EXIT_CODE))

    def stop(self) -> None:
        job = self._one(["QUEUED", *(state.value for state in LIVE)])
        if job is not None:
            submission.stop(self.user, job)

    def hold(self) -> None:
        job = self._one(["QUEUED"])
        if job is None:
            return
        with suppress(submission.NotWaiting):
            self.chance.choice([submission.hold, submission.release])(self.user, job)

    def edit(self) -> None:
        quota = self.chance.choice(list(Quota.objects.all()))
        with ledger.lock_cluster(self.cluster.pk):
            Quota.objects.filter(pk=quota.pk).update(gpus=self.chance.choice([None, 0, 2, 4, 6]))

    def cordon(self) -> None:
        node = self.chance.choice(list(Node.objects.all()))
        state = self.chance.choice([NodeState.SCHEDULABLE, NodeState.SCHEDULABLE, NodeState.CORDONED])
        with ledger.lock_cluster(self.cluster.pk):
            inventory.decide(Node.objects.filter(pk=node.pk), state, by=self.user)

    def _one(self, states: list[str]) -> Job | None:
        jobs = list(Job.objects.filter(state__in=states).order_by("?")[:1])
        return jobs[0] if jobs else None


def main() -> None:
    """Make a cluster, let so many processes do so many steps each, and judge what they leave.

    Prints the numbers of jobs, of reservations, of borrowed ones, and of attempts that made room.
    """
    processes, steps = map(int, sys.argv[1:])
    prepare()
    server = connections[DEFAULT_DB_ALIAS]
    assert isinstance(server, DatabaseWrapper)
    server.close()
    server.close_pool()  # each process has its own
    children = [fork(seed, steps) for seed in range(processes)]
    failed = [seed for seed, pid in enumerate(children) if os.waitpid(pid, 0)[1]]
    assert not failed, failed
    sys.stdout.write(" ".join(map(str, judge())))


def fork(seed: int, steps: int) -> int:
    """Start a process of its own that has imported everything already; its process id."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        ledger.reserve = judged
        member = Member(seed)
        for _step in range(steps):
            member.step()
        code = 0
    except BaseException:  # noqa: BLE001  # the stack beneath is the parent's
        traceback.print_exc()
    finally:
        os._exit(code)


def prepare() -> None:
    """Make a person, a cluster of two nodes, and two workspaces with a quota each below a common one."""
    user = User.objects.create_superuser("crowd")
    cluster = Cluster.objects.create(slug="c", name="C", backend="none")
    for name in ("n1", "n2"):
        Node.objects.create(cluster=cluster, name=name, cpu_milli=32000, memory_mib=65536, gpus={"A100": 4})
    workspaces = [Workspace.objects.create(slug=slug, name=slug) for slug in ("one", "two")]
    top = Quota(workspace=workspaces[0], cluster=cluster, slug="top", name="top", gpus=6, accepts_jobs=False)
    top.save()
    for workspace in workspaces:
        Membership.objects.create(workspace=workspace, user=user)
        Quota.objects.create(workspace=workspace, cluster=cluster, slug="q", name="q", gpus=4, parent=top)


def judge() -> tuple[int, int, int, int]:
    """Compare jobs, requests and reservations, now that nobody changes them."""
    live = set(Job.objects.filter(state="SUBMITTING").values_list("attempts__key", flat=True))
    reservations = Reservation.objects.filter(active=True)
    held = set(reservations.values_list("request__holder", flat=True))
    assert held <= live, held - live
    assert reservations.count() == Job.objects.filter(state="SUBMITTING").count()
    waiting = Request.objects.filter(state="waiting").count()
    assert waiting == Job.objects.filter(state="QUEUED").count()
    return (
        Job.objects.count(),
        Reservation.objects.count(),
        Reservation.objects.filter(borrowed=True).count(),
        Attempt.objects.filter(end_kind="preemption").count(),
    )


if __name__ == "__main__":
    main()
