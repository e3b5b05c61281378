"""Rows for tests, as the console itself would have left them: each function makes one, and what it needs.

Every argument may be left out.  Keyword arguments that a function does not name are columns of its model.
The audit log has none of it, unless `audited` says so: writing it takes longer than the rows themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from auditlog.context import disable_auditlog
from django.utils.timezone import now

from jobs.dialects.document import Document
from jobs.lifecycle.transitions import new_attempt
from jobs.models import (
    Attempt,
    Endpoint,
    Job,
    JobFile,
    LogStream,
    Replica,
    Run,
    SiteStorage,
    SiteStorageCluster,
    Template,
)
from jobs.spec import JobSpec, Port, RoleSpec
from jobs.states import LIVE, REPLICA_TERMINAL, TERMINAL, Phase, Reason, ReasonCode, ReplicaState, State
from jobs.submission import templates
from quotas.models import Cluster, Membership, Quota, Role, User, Workspace

PASSWORD: Final = "correct horse battery staple"
"""Everybody's."""

_numbers = itertools.count(1)

_PHASES: Final = {State.QUEUED: Phase.QUEUING, State.RUNNING: Phase.RUNNING} | dict.fromkeys(
    TERMINAL, Phase.ENDED
)
_REASONS: Final = {
    State.QUEUED: Reason(ReasonCode.WAITING_TURN),
    State.SUBMITTING: Reason(ReasonCode.SENDING),
    State.PENDING: Reason(ReasonCode.STARTING),
    State.RUNNING: Reason(ReasonCode.RUNNING),
    State.SUCCEEDED: Reason(ReasonCode.COMPLETED),
    State.FAILED: Reason(ReasonCode.EXIT_CODE, {"exit_code": 1}),
    State.STOPPED: Reason(ReasonCode.USER_STOP, {"by": "somebody"}),
    State.LOST: Reason(ReasonCode.LOST),
}
_REPLICA_STATES: Final = {
    State.RUNNING: ReplicaState.RUNNING,
    State.SUCCEEDED: ReplicaState.SUCCEEDED,
    State.FAILED: ReplicaState.FAILED,
    State.STOPPED: ReplicaState.STOPPED,
    State.LOST: ReplicaState.RUNNING,
}
"""What each replica of a job in that state is; in every other state they wait."""


Arguments = ParamSpec("Arguments")
Row = TypeVar("Row")


_audited = ContextVar("_audited", default=False)


@contextmanager
def audited() -> Iterator[None]:
    """Let what is made have its entries in the audit log."""
    before = _audited.set(True)
    try:
        yield
    finally:
        _audited.reset(before)


def _outside_the_audit_log(make: Callable[Arguments, Row]) -> Callable[Arguments, Row]:
    @wraps(make)
    def made(*args: Arguments.args, **columns: Arguments.kwargs) -> Row:
        with nullcontext() if _audited.get() else disable_auditlog():
            return make(*args, **columns)

    return made


@_outside_the_audit_log
def make_user(username: str = "", *, admin: bool = False, **columns: Any) -> User:
    """Somebody with `PASSWORD`; a superuser when `admin`.  A name is made up when none is given."""
    name = username or f"user-{next(_numbers)}"
    make = User.objects.create_superuser if admin else User.objects.create_user
    return make(name, password=PASSWORD, **columns)


def make_users(*names: str, admin: str) -> list[User]:
    """People of these names and a superuser, by one statement: what most tests of pages begin with."""
    users = [User(username=name) for name in names]
    users.append(User(username=admin, is_staff=True, is_superuser=True))
    for user in users:
        user.set_password(PASSWORD)
    return User.objects.bulk_create(users)


@_outside_the_audit_log
def make_workspace(slug: str = "", *, members: dict[User, Role] | None = None, **columns: Any) -> Workspace:
    """A workspace with `members` in their roles."""
    slug = slug or f"workspace-{next(_numbers)}"
    workspace = Workspace.objects.create(slug=slug, **{"name": slug.title(), **columns})
    Membership.objects.bulk_create(
        Membership(user=user, workspace=workspace, role=role) for user, role in (members or {}).items()
    )
    return workspace


@_outside_the_audit_log
def make_membership(user: User, workspace: Workspace, role: Role = Role.DEVELOPER) -> Membership:
    """`user` belongs to `workspace`; somebody who already did has `role` now."""
    membership, _new = Membership.objects.update_or_create(
        user=user, workspace=workspace, defaults={"role": role}
    )
    return membership


@_outside_the_audit_log
def make_cluster(slug: str = "", **columns: Any) -> Cluster:
    """A cluster of the local backend, without nodes."""
    slug = slug or f"cluster-{next(_numbers)}"
    return Cluster.objects.create(slug=slug, **{"name": slug.title(), **columns})


@_outside_the_audit_log
def make_site_storage(
    address: str,
    folder: str = "",
    *,
    clusters: dict[Cluster, str] | None = None,
    workspaces: Sequence[Workspace] | None = None,
    **columns: Any,
) -> SiteStorage:
    """A storage mapping of all clusters and workspaces, or of `clusters` with their own folders."""
    row = SiteStorage.objects.create(
        address=address,
        folder=folder,
        all_clusters=clusters is None,
        all_workspaces=workspaces is None,
        **{"name": address, **columns},
    )
    row.workspaces.set(workspaces or ())
    for cluster, own in (clusters or {}).items():
        SiteStorageCluster.objects.create(storage=row, cluster=cluster, folder=own)
    return row


@_outside_the_audit_log
def make_quota(
    workspace: Workspace | None = None, cluster: Cluster | None = None, slug: str = "", **columns: Any
) -> Quota:
    """A quota without limits."""
    slug = slug or f"quota-{next(_numbers)}"
    return Quota.objects.create(
        workspace=workspace or make_workspace(),
        cluster=cluster or make_cluster(),
        slug=slug,
        **{"name": slug.title(), **columns},
    )


def make_spec(**fields: Any) -> JobSpec:
    """A JobSpec of one role `main` that says hello; `fields` are the JobSpec's own."""
    return JobSpec(**{"name": "hello", "roles": (RoleSpec(name="main", command="echo hello"),), **fields})


@_outside_the_audit_log
def make_job(
    state: State = State.QUEUED,
    *,
    owner: User | None = None,
    quota: Quota | None = None,
    spec: JobSpec | None = None,
    text: str = "",
    **columns: Any,
) -> Job:
    """A job in `state`, with its file and first attempt and, from SUBMITTING on, its replicas and their logs.

    The owner becomes a member of the quota's workspace.  The ledger knows nothing of the job.
    """
    owner = owner or make_user()
    quota = quota or make_quota()
    Membership.objects.get_or_create(user=owner, workspace=quota.workspace)
    spec = spec or make_spec()
    job = Job.objects.create(
        owner=owner,
        quota=quota,
        workspace=quota.workspace,
        cluster=quota.cluster,
        **{**_job_columns(state, spec), **columns},
    )
    JobFile.objects.create(job=job, text=text, spec_json=spec.model_dump_json())
    attempt = new_attempt(job, 1)
    if state is not State.QUEUED:
        _lay_out(attempt, spec, state)
    job.refresh_from_db()
    return job


def _job_columns(state: State, spec: JobSpec) -> dict[str, Any]:
    reason = _REASONS[state]
    replica_state = _REPLICA_STATES.get(state)
    return {
        "name": spec.name,
        "dialect": "openpai-v1",
        "state": state,
        "phase": _PHASES.get(state, Phase.CREATING),
        "reason_code": reason.code,
        "reason_params": dict(reason.params),
        "replicas_total": spec.replicas,
        "replicas_running": spec.replicas if replica_state is ReplicaState.RUNNING else 0,
        "replicas_failed": spec.replicas if replica_state is ReplicaState.FAILED else 0,
        "started_at": now() if replica_state else None,
        "ended_at": now() if state in TERMINAL else None,
    }


def _lay_out(attempt: Attempt, spec: JobSpec, state: State) -> None:
    """The rows that `jobs.scheduling.observations` writes for a run, with every replica as `state` has it."""
    sent = state is not State.SUBMITTING
    Attempt.objects.filter(pk=attempt.pk).update(
        handle=attempt.key if sent else "",
        live=state in LIVE,
        submitted_at=now() if sent else None,
        ended_at=now() if state in TERMINAL else None,
    )
    Run.objects.create(attempt=attempt, number=1)
    for role in spec.roles:
        for index in range(role.replicas):
            make_replica(attempt, role.name, index, state=_REPLICA_STATES.get(state, ReplicaState.WAITING))


def attempt_of(job: Job) -> Attempt:
    """The job's current attempt."""
    return Attempt.objects.get(job=job, number=job.attempt_number)


def make_replica(
    attempt: Attempt,
    role: str = "main",
    index: int = 0,
    *,
    state: ReplicaState = ReplicaState.RUNNING,
    **columns: Any,
) -> Replica:
    """One more replica of `attempt`'s current run, and its empty log."""
    run = int(columns.pop("run", attempt.job.run_number))
    ordinal = Replica.objects.filter(attempt=attempt, run=run).count()
    LogStream.objects.create(attempt=attempt, run=run, role=role, index=index)
    ended = state in REPLICA_TERMINAL
    defaults = {
        "exit_code": {ReplicaState.SUCCEEDED: 0, ReplicaState.FAILED: 1}.get(state),
        "node": "" if state is ReplicaState.WAITING else "localhost",
        "started_at": None if state is ReplicaState.WAITING else now(),
        "ended_at": now() if ended else None,
    }
    place = {"attempt": attempt, "run": run, "ordinal": ordinal, "role": role, "index": index}
    return Replica.objects.create(**place, state=state, **{**defaults, **columns})


def replica_of(job: Job, role: str = "main", index: int = 0) -> Replica:
    """A replica of the job's current run."""
    return Replica.objects.get(attempt=attempt_of(job), run=job.run_number, role=role, index=index)


def make_endpoint(
    replica: Replica | None = None, *, port: int = 8888, label: str = "jupyter", **columns: Any
) -> Endpoint:
    """A ready port of `replica` on this machine; of a running job when no replica is given."""
    if replica is None:
        spec = make_spec(roles=(RoleSpec(name="main", command="serve", ports=(Port(label=label),)),))
        replica = replica_of(make_job(State.RUNNING, spec=spec))
    defaults = {"host": "127.0.0.1", "ready": True, "slug": f"endpoint-{next(_numbers)}"}
    return Endpoint.objects.create(replica=replica, port=port, label=label, **{**defaults, **columns})


TEMPLATE_FILE: Final = """{
  "DisplayName": "train",
  "JobType": "PyTorchJob",
  "JobSpecs": [
    {"Type": "Worker", "PodCount": 1, "Image": "torch:1", "ResourceConfig": {"CPU": "2", "Memory": "4Gi"}}
  ],
  "Envs": {"LR": "0.1"},
  "UserCommand": "python train.py --lr $LR"
}
"""
"""A job file of PAI-DLC's that a template may have."""


@_outside_the_audit_log
def make_template(
    owner: User | None = None,
    workspace: Workspace | None = None,
    name: str = "Training",
    text: str = TEMPLATE_FILE,
    dialect: str = "dlc",
    **content: Any,
) -> Template:
    """A template with one version that has `TEMPLATE_FILE`; the owner has to be one who may keep it."""
    said = templates.Content(Document(text, dialect), **content)
    return templates.create(owner or make_user(), templates.About(name), said, workspace)
