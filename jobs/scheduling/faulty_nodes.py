"""Nodes with faults: the next attempts of a job avoid them, and a cluster's setting cordons them.

Only where the engine schedules: the console knows one node of a local cluster, and there is no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from jobs.fault_tolerance.decisions import NODE_FAULTS, Fault
from jobs.fault_tolerance.policy import policy_of
from jobs.faults import fault
from jobs.messages.faults import fault_message
from jobs.models import Attempt, Job, SanityCheck
from jobs.spec import JobSpec
from quotas.clusters import inventory
from quotas.models import Admission, Node, NodeState

log = structlog.get_logger(__name__)


def list_avoided(attempts: Sequence[Attempt]) -> Mapping[int, tuple[str, ...]]:
    """Return the nodes that each of a cluster's attempts avoids.

    They are those on which its job met their faults, those that failed its sanity checks whatever its fault
    tolerance, and those that were cordoned for faults.  A cluster without as many other nodes as the job has
    replicas leaves it all of them.
    """
    if not attempts or attempts[0].job.cluster.admission != Admission.ENGINE:
        return {}
    cluster = attempts[0].job.cluster
    faulty = _list_faulty([each for each in attempts if each.number > 1])
    if not (faulty or cluster.cordons_faulty):
        return {}
    nodes = list(Node.objects.filter(cluster=cluster).only("name", "schedulable", "state", "state_by"))
    cordoned = {node.name for node in nodes if is_cordoned(node)}
    found: dict[int, tuple[str, ...]] = {}
    for attempt in attempts:
        avoided = (faulty.get(attempt.job_id, set()) & {node.name for node in nodes}) | cordoned
        others = sum(node.takes_jobs and node.name not in avoided for node in nodes)
        if avoided and others >= attempt.job.replicas_total:
            found[attempt.pk] = tuple(sorted(avoided))
    return found


def is_cordoned(node: Node) -> bool:
    """Tell whether a node was cordoned for a fault, not by an admin."""
    return node.state == NodeState.CORDONED and node.state_by_id is None


def _list_faulty(attempts: Sequence[Attempt]) -> dict[int, set[str]]:
    """Return the nodes with faults, or failed checks, that the jobs of these attempts met, by job."""
    faulty: dict[int, set[str]] = {}
    if not attempts:
        return faulty
    checks = SanityCheck.objects.filter(attempt__job__in=[each.job_id for each in attempts])
    for job_id, names in checks.exclude(failed_nodes=[]).values_list("attempt__job_id", "failed_nodes"):
        faulty.setdefault(job_id, set()).update(names)
    tolerant = [each.job_id for each in attempts if _replaces_nodes(each.job)]
    rows = Attempt.objects.filter(job__in=tolerant, fault__isnull=False)
    for job_id, value in rows.values_list("job_id", "fault"):
        found = Fault.from_json(value or {})
        if found.node and found.code in NODE_FAULTS:
            faulty.setdefault(job_id, set()).add(found.node)
    return faulty


def _replaces_nodes(job: Job) -> bool:
    policy = policy_of(job.file.spec) if job.tolerates_faults else None
    return policy is not None and policy.replaces_nodes


def exclude_nodes(spec: JobSpec, nodes: Sequence[str]) -> JobSpec:
    """Return the job with roles that run on none of these nodes."""
    roles = []
    for role in spec.roles:
        never = tuple(dict.fromkeys((*role.nodes.never, *nodes)))
        only = tuple(name for name in role.nodes.only if name not in nodes)
        chosen = role.nodes.model_copy(update={"never": never, "only": only or role.nodes.only})
        roles.append(role.model_copy(update={"nodes": chosen}))
    return spec.model_copy(update={"roles": tuple(roles)})


def cordon(job: Job, found: Fault) -> bool:
    """Cordon the node of a fault, where the cluster's settings say so; return whether it was done.

    Never more than the set share of a cluster's nodes is cordoned so, but always one.
    """
    cluster = job.cluster
    if not (cluster.cordons_faulty and found.node and found.code in NODE_FAULTS):
        return False
    nodes = list(Node.objects.select_for_update().filter(cluster=cluster).order_by("name"))
    cordoned = sum(map(is_cordoned, nodes))
    if cordoned >= max(1, len(nodes) * cluster.cordon_percent // 100):
        log.warning("cordon_share_used", cluster=cluster.slug, node=found.node, cordoned=cordoned)
        return False
    mine = Node.objects.filter(cluster=cluster, name=found.node, state=NodeState.SCHEDULABLE)
    why = f"{job.public_id}: {fault_message(found)}"
    is_done = inventory.decide(mine, NodeState.CORDONED, by=None, why=why) > 0
    fault("cordon.before_commit")
    return is_done
