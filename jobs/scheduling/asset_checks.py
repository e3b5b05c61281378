"""Asset checks: whether an asset can be used, as the person who asks, on a node, in a job's sandbox.

A check is one small attempt that its backend prepares like any job's, and that has a row of its own only: the
image is pulled, the code cloned, the data listed, and the output of the tools is the answer.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import structlog
from django.db.models.functions import Now

from jobs.assets import personal_secrets, resolution, site_storage
from jobs.backends.base import (
    Backend,
    Gone,
    Handle,
    NotSubmitted,
    Observation,
    Person,
    Refused,
    ReplicaRef,
    Submission,
    Unknown,
    Unreachable,
    Unseen,
)
from jobs.clusters import backend_for
from jobs.dialects.base import Parsed
from jobs.lifecycle import transitions
from jobs.messages import reason_message
from jobs.models import ASSETS, Asset, AssetCheck, AssetKind
from jobs.spec import CodeSource, JobSpec, Mount, Resources, RoleSpec
from jobs.states import TERMINAL, Reason, State

log = structlog.get_logger(__name__)

ROLE: Final = "trial"
ROOM: Final = Resources(cpu_milli=500, memory_mib=512)
LONGEST_S: Final = 900
MOST_SAID: Final = 16 * 1024
LOST_AFTER: Final = timedelta(seconds=2 * LONGEST_S)

_PLACE: Final = "/job/trial"
_LOOK: Final = f"ls -A {_PLACE} | head -n 20"
_CLONED: Final = f"git -C {_PLACE} log -1 --format='%h %ad %s' 2>/dev/null; ls -A {_PLACE} | head -n 20"

_State = AssetCheck.State


def begin(cluster_id: int) -> None:
    """Submit every check that waits on the cluster."""
    waiting = AssetCheck.objects.filter(cluster_id=cluster_id, state=_State.WAITING, ended_at=None)
    for pk in list(waiting.order_by("id").values_list("pk", flat=True)[:20]):
        mine = AssetCheck.objects.filter(pk=pk, state=_State.WAITING)
        if mine.update(state=_State.TRYING, begun_at=Now()):
            _begin(AssetCheck.objects.select_related("cluster", "asker", "workspace").get(pk=pk))


def _begin(check: AssetCheck) -> None:
    asset = ASSETS[AssetKind(check.kind)]._default_manager.filter(key=check.key).first()  # noqa: SLF001
    if asset is None:
        _end(check, "lost")
        return
    spec = spec_of(asset, check.version)
    made_of = resolution.resolve_spec(check.asker, Parsed(spec), check.workspace)
    if made_of.problems:
        _end(check, made_of.problems[0].code, str(made_of.problems[0].params.get("name", "")))
        return
    secrets = resolution.read_passwords(made_of.uses)
    submission = Submission(
        key=_key(check),
        job_id=check.public_id,
        attempt=1,
        spec=made_of.spec,
        person=Person(check.asker.get_username(), check.asker_id, check.asker.unix_name),
        workspace=check.workspace.slug,
        secrets={**personal_secrets.values_of(check.asker, made_of.spec), **secrets},
        storage=site_storage.supply_mappings(check.cluster_id, check.workspace_id),
        is_check=True,
    )
    try:
        backend_for(check.cluster).submit(submission)
    except Refused as refused:
        _end(check, "refused", _sentence(refused.reason))
    except NotSubmitted as not_sent:
        _end(check, "no_room", _sentence(not_sent.reason))
    except (Unknown, Unreachable) as error:
        log.warning("asset_check_unconfirmed", check=check.pk, error=str(error))


def spec_of(asset: Asset, version: int | None = None) -> JobSpec:
    """Return the job that checks the asset."""
    role = RoleSpec(name=ROLE, command="true", resources=ROOM)
    values: dict[str, object] = {}
    if asset.KIND is AssetKind.IMAGE:
        role = role.model_copy(update={"image": asset.key})
    elif asset.KIND is AssetKind.DATASET:
        key = f"{asset.key}@{version}" if version else asset.key
        role = role.model_copy(update={"command": _LOOK})
        values["mounts"] = (Mount(id=key, path=_PLACE, read_only=True),)
    else:
        role = role.model_copy(update={"command": _CLONED})
        values["code"] = CodeSource(id=asset.key, path=_PLACE)
    return JobSpec(name=ROLE, roles=(role,), time_limit_s=LONGEST_S, **values)  # type: ignore[arg-type]


def look(cluster_id: int) -> None:
    """Observe the cluster's checks and record those that have ended."""
    rows = AssetCheck.objects.filter(cluster_id=cluster_id, state=_State.TRYING, ended_at=None)
    checks = {Handle(_key(row)): row for row in rows.select_related("cluster").order_by("id")[:200]}
    if not checks:
        return
    try:
        backend = backend_for(next(iter(checks.values())).cluster)
        seen = backend.observe(list(checks))
    except Unreachable as error:
        log.warning("asset_checks_unobserved", cluster=cluster_id, error=str(error))
        return
    for handle, check in checks.items():
        what = seen[handle]
        if isinstance(what, Unseen):
            continue
        if isinstance(what, Gone):
            _lose(check)
        elif what.state in TERMINAL:
            _answer(backend, handle, check, what)


def _answer(backend: Backend, handle: Handle, check: AssetCheck, seen: Observation) -> None:
    said = backend.read_log(handle, ReplicaRef(ROLE, 0), "", MOST_SAID).data.decode(errors="replace")
    unused = check.kind == AssetKind.IMAGE and any(one.image_used is False for one in seen.replicas)
    if unused:
        _end(check, "image_not_used", said)
    elif seen.state is State.SUCCEEDED:
        _end(check, "worked", said, works=True)
    else:
        _end(check, "failed", said.strip() or _sentence(seen.reason))
    try:
        backend.forget(handle)
    except Unreachable as error:
        log.warning("asset_check_not_removed", check=check.pk, error=str(error))


def _lose(check: AssetCheck) -> None:
    """End a check that its backend does not know, LOST_AFTER its beginning."""
    if AssetCheck.objects.filter(pk=check.pk, begun_at__lt=Now() - LOST_AFTER).exists():
        _end(check, "lost")


def _end(check: AssetCheck, code: str, said: str = "", *, works: bool = False) -> None:
    state = _State.WORKS if works else _State.FAILED
    text = said.replace("\0", "")[-MOST_SAID:]
    AssetCheck.objects.filter(pk=check.pk, ended_at=None).update(
        state=state, code=code, said=text, ended_at=Now()
    )


def _sentence(reason: Reason) -> str:
    return reason_message(reason.code, reason.params)


def _key(check: AssetCheck) -> str:
    return transitions.key_of(check.public_id, 1)
