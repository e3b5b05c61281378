"""Sentences about the reasons of jobs' states, which also say what would help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages import amounts, backend_texts
from jobs.messages.exits import exit_message
from jobs.messages.labels import state_label
from jobs.messages.refusals import refusal
from jobs.messages.sanity import sanity_word
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say
from jobs.states import ReasonCode

Params = Mapping[str, object]

_SENTENCES: Final[Mapping[ReasonCode, tuple[str, ...]]] = {
    ReasonCode.NEW: (_("Just submitted. Determining the queue position."),),
    ReasonCode.WAITING_TURN: (
        _("Waiting for its turn (%(ahead_jobs)s ahead)."),
        _("Waiting for its turn."),
    ),
    ReasonCode.WAITING_QUOTA: (
        _(
            "Waiting for quota %(quota)s: %(wanted)s requested, %(used)s of %(limit)s in use, "
            "%(left)s available."
        ),
        _(
            "Waiting for quota %(quota)s: %(wanted)s requested, %(used)s of %(limit)s in use. "
            "Starts when enough is released."
        ),
        _("Waiting for quota."),
    ),
    ReasonCode.WAITING_QUOTA_TURN: (
        _(
            "Waiting for its turn in quota %(person_quota)s: the owner's remaining share is reserved for an "
            "earlier job. To start now, set a time limit short enough to finish before that job can start."
        ),
        _(
            "Waiting for its turn in quota %(quota)s: the remaining quota is reserved for earlier "
            "jobs. To start now, set a time limit short enough to finish before they can start."
        ),
        _("Waiting for its turn in the quota."),
    ),
    ReasonCode.WAITING_PERSON: (
        _(
            "Waiting: quota %(quota)s allows %(limit)s per user. Owner uses %(used)s, %(wanted)s "
            "requested, %(left)s available."
        ),
        _(
            "Waiting: quota %(quota)s allows %(limit)s per user. Owner uses %(used)s, %(wanted)s "
            "requested. Starts when another job of the owner ends."
        ),
        _("Waiting: quota %(quota)s allows %(limit)s per user, %(wanted)s requested."),
        _("Waiting: the owner has reached the per-user limit of the quota."),
    ),
    ReasonCode.WAITING_HOURS: (
        _("Waiting: the GPU-hours of quota %(quota)s are used up. Starts in the next period."),
        _("Waiting: the GPU-hours of the quota are used up. Starts in the next period."),
    ),
    ReasonCode.WAITING_COMING: (
        _("Waiting for %(wanted)s being released by other jobs; %(free)s free on %(cluster)s so far."),
        _("Waiting for resources being released by other jobs."),
    ),
    ReasonCode.WAITING_IDLE: (
        _(
            "Waiting for idle resources on %(cluster)s: %(wanted)s requested, %(free)s idle now. "
            "%(fitting_tasks)s of this size could start now."
        ),
        _(
            "Waiting for idle resources on %(cluster)s: %(wanted)s requested, %(free)s idle now. "
            "Request %(left)s to start now."
        ),
        _("Waiting for idle resources on %(cluster)s: %(wanted)s requested, %(free)s idle now."),
        _("Waiting for idle resources that no job with its own claim is waiting for."),
    ),
    ReasonCode.OUTBID: (
        _("Waiting: preemptible resources cost %(price_money)s per hour now; the bid is %(bid_money)s."),
        _("Waiting: preemptible resources cost more than the bid."),
    ),
    ReasonCode.ENGINE_FULL: (
        _(
            "Waiting: %(pending_jobs)s of quota %(quota)s already pending in the cluster's queue. "
            "Submitted when one of them starts."
        ),
        _("Waiting: enough jobs of this quota are already pending in the cluster's queue."),
    ),
    ReasonCode.HELD: (
        _("Held by %(by)s: %(because)s. Waiting time keeps counting; starts once released."),
        _("Held by %(by)s. Waiting time keeps counting; starts once released."),
        _("Held by a user. Waiting time keeps counting; starts once released."),
    ),
    ReasonCode.WAITING_OTHERS: (
        _("Starts after %(succeeded)s (%(other_word)s) succeeds; also waiting for %(more_jobs)s."),
        _("Starts after %(succeeded)s (%(other_word)s) succeeds."),
        _("Starts after %(ended)s (%(other_word)s) ends; also waiting for %(more_jobs)s."),
        _("Starts after %(ended)s (%(other_word)s) ends."),
        _("Starts after %(failed_job)s (%(other_word)s) fails; also waiting for %(more_jobs)s."),
        _("Starts after %(failed_job)s (%(other_word)s) fails."),
        _("Waiting for its turn in the sweep (at most %(at_once_jobs)s at a time)."),
        _("Starts after other jobs."),
    ),
    ReasonCode.NOT_YET: (
        _("Waiting: earliest start %(moment)s."),
        _("Waiting for the earliest start time."),
    ),
    ReasonCode.FROZEN: (
        _("Waiting: an admin paused scheduling on %(cluster)s: %(because)s"),
        _("Waiting: an admin paused scheduling on %(cluster)s."),
        _("Waiting: an admin paused scheduling on the cluster."),
    ),
    ReasonCode.MAINTENANCE: (
        _(
            "Waiting: %(cluster)s is under maintenance from %(begin)s to %(moment)s, and the job "
            "could still be running then. Set a shorter time limit to start before; otherwise the "
            "job starts afterwards."
        ),
        _("Waiting: the cluster has a maintenance window, and the job could still be running then."),
    ),
    ReasonCode.WAITING_CAPACITY: (
        _("Waiting: port %(port)s is in use. Use another port to start now."),
        _("Waiting: all addresses for jobs' networks are in use (%(uplink_range)s)."),
        _(
            "Waiting: no node of %(node_cluster)s has room for a whole replica. Smaller replicas "
            "would start sooner."
        ),
        _(
            "Waiting for %(wanted)s: %(free)s free on %(cluster)s now. %(fitting_tasks)s of this "
            "size could start now."
        ),
        _("Waiting for %(wanted)s: %(free)s free on %(cluster)s now. Request %(left)s to start now."),
        _("Waiting for %(wanted)s: %(free)s free on %(cluster)s now. Starts when other jobs end."),
        _("Waiting for %(wanted)s: %(free)s free now. Starts when other jobs end."),
        _("Waiting for enough free resources on the cluster."),
    ),
    ReasonCode.EXCEEDS_QUOTA: (
        _(
            "%(wanted)s requested, but quota %(person_quota)s allows at most %(limit)s per user. "
            "Request less, use another quota, or ask an admin to raise the limit per user."
        ),
        _(
            "%(wanted)s requested, but quota %(quota)s allows at most %(limit)s. Request less, use "
            "another quota, or ask an admin to raise the limit."
        ),
        _("More requested than the quota allows. Request less, or ask an admin to raise the limit."),
    ),
    ReasonCode.EXCEEDS_CLUSTER: (
        _(
            "No node of %(node_cluster)s is large enough for one replica, even when nothing else "
            "runs. Request less per replica."
        ),
        _(
            "%(wanted)s requested, but %(cluster)s has only %(most)s in total. Request less, or "
            "use a larger cluster."
        ),
        _("More requested than the cluster has in total. Request less, or use a larger cluster."),
    ),
    ReasonCode.DISK_LOW: (
        _("Waiting: the console's disk has %(free_size)s free, less than the minimum of %(floor_size)s."),
        _("Waiting: the console's disk is almost full."),
    ),
    ReasonCode.NO_SUCH_GPU: (
        _(
            "Waiting: no %(gpu_type)s GPU on “%(cluster)s”. Select an available type (%(types)s), "
            "remove the GPU request or choose another cluster."
        ),
        _("Waiting: no %(gpu_type)s GPU on “%(cluster)s”. Remove the GPU request or choose another cluster."),
        _("Waiting: no %(gpu_type)s GPU on the cluster. Remove the GPU request or choose another cluster."),
        _("Waiting: the cluster has no GPU of the requested type."),
    ),
    ReasonCode.NO_SUCH_NODE: (
        _("Waiting: no node named %(missing)s on %(cluster)s. Select other nodes or none."),
        _(
            "Waiting: the job does not fit on the selected nodes (%(nodes)s), even when nothing "
            "else runs. Request less, or allow more nodes."
        ),
        _("Waiting: the job fits only on excluded nodes (%(shunned)s). Request less, or allow these nodes."),
        _("Waiting: the job does not fit on any allowed node. Request less, or allow other nodes."),
    ),
    ReasonCode.CLUSTER_AWAY: (
        _("Waiting: all suitable nodes of %(cluster)s are being drained: %(drained)s"),
        _("Waiting: all suitable nodes of %(draining_cluster)s are being drained."),
        _("Waiting for %(cluster)s: not responding, or no node ready. Retrying automatically."),
        _("Waiting for the cluster: not responding, or no node ready. Retrying automatically."),
    ),
    ReasonCode.NOT_SENT: (
        _("%(cluster)s did not accept the job. Resubmitting automatically."),
        _("The cluster did not accept the job. Resubmitting automatically."),
    ),
    ReasonCode.RETRYING: (
        _("Retrying automatically, attempt %(attempt)s. Previous attempt: %(cause)s"),
        _("Retrying automatically."),
    ),
    ReasonCode.SENDING: (_("Submitting to %(cluster)s."), _("Submitting to the cluster.")),
    ReasonCode.UNCONFIRMED: (
        _(
            "%(cluster)s has not confirmed the job. The console looks for the job before "
            "resubmitting, so that it can't run twice."
        ),
        _(
            "The cluster has not confirmed the job. The console looks for the job before "
            "resubmitting, so that it can't run twice."
        ),
    ),
    ReasonCode.STARTING: (
        _("Pulling image %(image_about)s."),
        _("Fetching code from %(code_about)s."),
        _("Fetching data from %(data_about)s."),
        _("Installing Python packages: %(packages_about)s."),
        _("Running init container %(init_about)s."),
        _("Starting replicas."),
    ),
    ReasonCode.RUNNING: (_("Checking the nodes: %(checking)s."), _("Running.")),
    ReasonCode.ENGINE_QUEUE: (
        _("Waiting in the cluster's queue: %(detail)s"),
        _("Waiting in the cluster's queue."),
    ),
    ReasonCode.COMPLETED: (_("All replicas succeeded."),),
    ReasonCode.COMPLETED_WITH_FAILURES: (
        _(
            "Succeeded although %(failed)s of %(total)s replicas failed, as the completion policy "
            "allows (minFailedTaskCount, minSucceededTaskCount)."
        ),
        _("Succeeded although some replicas failed, as the completion policy allows."),
    ),
    ReasonCode.EXIT_CODE: (
        _("Replica %(task)s failed: %(output)s"),
        _("Replica %(task)s failed. %(exit)s."),
        _("Failed. %(exit)s."),
        _("A replica failed."),
    ),
    ReasonCode.SIGNALLED: (
        _("Replica %(task)s failed: %(output)s. %(exit)s."),
        _("Replica %(task)s failed: %(output)s"),
        _("Replica %(task)s was terminated by a signal. %(exit)s."),
        _("Terminated by a signal. %(exit)s."),
        _("A replica was terminated by a signal."),
    ),
    ReasonCode.AFTER_NEVER: (
        _(
            "Stopped before starting: %(succeeded)s was required to succeed, but ended otherwise "
            "(%(other_word)s)."
        ),
        _(
            "Stopped before starting: %(failed_job)s was required to fail, but ended otherwise "
            "(%(other_word)s)."
        ),
        _("Stopped before starting: the dependency can no longer be met."),
    ),
    ReasonCode.OUT_OF_MEMORY: (
        _(
            "Replica %(task)s exceeded its memory limit of %(limit)s and was killed. Request more "
            "memory, or use less."
        ),
        _("Exceeded the memory limit of %(limit)s and was killed. Request more memory, or use less."),
        _("Exceeded the memory limit and was killed. Request more memory, or use less."),
    ),
    ReasonCode.TOO_MANY_PORTS: (
        _(
            "Replica %(task)s was stopped: it listened on %(ports)s ports of the job port range; "
            "at most %(most)s are allowed."
        ),
        _("Stopped: listened on too many ports of the job port range."),
    ),
    ReasonCode.FOLDER_TOO_LARGE: (
        _("Replica %(task)s was stopped: its folders exceed %(most_size)s."),
        _(
            "Replica %(task)s was stopped: only %(free_size)s free on the console's disk, and its "
            "folders kept growing."
        ),
        _("Stopped: its folders used too much of the console's disk."),
    ),
    ReasonCode.TIME_LIMIT: (
        _("Time limit of %(time)s reached."),
        _("Time limit reached."),
    ),
    ReasonCode.USER_STOP: (_("Stopped by %(by)s."), _("Stopped by a user.")),
    ReasonCode.ADMIN_STOP: (_("Stopped by admin %(by)s."), _("Stopped by an admin.")),
    ReasonCode.PREEMPTED: (_("Preempted to return borrowed resources."),),
    ReasonCode.DRAINED: (
        _("Stopped because node %(node)s is being drained."),
        _("Stopped because the node is being drained."),
    ),
    ReasonCode.REQUEUED: (
        _("Stopped and queued again by %(by)s."),
        _("Stopped and queued again by an admin."),
    ),
    ReasonCode.GROWTH: (_("Restarted with more replicas."),),
    ReasonCode.IDLE: (
        _("Stopped after %(time)s of not using its resources; the owner had been warned."),
        _("Stopped for not using its resources; the owner had been warned."),
    ),
    ReasonCode.EARLY_STOP: (_("Stopped early: other jobs of the sweep do better."),),
    ReasonCode.HANG: (
        _("No output from any replica for %(time)s; the job was ended as hanging."),
        _("No output from any replica for too long; the job was ended as hanging."),
    ),
    ReasonCode.LOG_PATTERN: (
        _("Replica %(task)s wrote a line with a pattern of the job's fault tolerance: %(line)s"),
        _("A replica wrote a line with a pattern of the job's fault tolerance."),
    ),
    ReasonCode.START_FAILED: (
        _("Replica %(task)s could not be started: %(error)s"),
        _("Could not be started: %(error)s"),
        _("A replica could not be started."),
    ),
    ReasonCode.IMAGE_FAILED: (
        _("The image of replica %(task)s could not be used: %(error)s"),
        _("The image could not be used: %(error)s"),
        _("The image could not be used."),
    ),
    ReasonCode.MOUNT_FAILED: (
        _("A mount of replica %(task)s could not be used: %(error)s"),
        _("A mount could not be used: %(error)s"),
        _("A mount could not be used."),
    ),
    ReasonCode.CODE_FAILED: (
        _("The code of replica %(task)s could not be fetched: %(error)s"),
        _("The code could not be fetched: %(error)s"),
        _("The code could not be fetched."),
    ),
    ReasonCode.REQUIREMENTS_FAILED: (
        _("The Python packages of replica %(task)s could not be installed: %(error)s"),
        _("The Python packages could not be installed: %(error)s"),
        _("The Python packages could not be installed."),
    ),
    ReasonCode.INIT_CONTAINER_FAILED: (
        _("Init container %(container)s of replica %(task)s failed: %(error)s"),
        _("Init container %(container)s failed: %(error)s"),
        _("Init container %(container)s of replica %(task)s failed with exit code %(exit_code)s."),
        _("Init container %(container)s failed with exit code %(exit_code)s."),
        _("An init container failed."),
    ),
    ReasonCode.SANITY_CHECK_FAILED: (
        _("Node %(node)s failed the sanity check (%(check)s): %(error)s"),
        _("Replica %(names)s failed the sanity check (%(check)s): %(error)s"),
        _("The nodes failed the sanity check."),
    ),
    ReasonCode.PORT_CONFLICT: (
        _("Port %(port)s was taken by another process during startup."),
        _("A required port was taken by another process during startup."),
    ),
    ReasonCode.WRAPPER_LOST: (
        _("The process monitoring replica %(task)s was killed; the replica's outcome is unknown."),
        _("The process monitoring a replica was killed; the replica's outcome is unknown."),
    ),
    ReasonCode.MACHINE_RESTARTED: (_("The machine was restarted."),),
    ReasonCode.NODE_LOST: (_("Node %(node)s was lost."), _("The node was lost.")),
    ReasonCode.LOST: (
        _(
            "%(cluster)s has no record of the job, and its outcome is unknown. Tracking resumes if "
            "the job reappears."
        ),
        _(
            "The cluster has no record of the job, and its outcome is unknown. Tracking resumes if "
            "the job reappears."
        ),
    ),
    ReasonCode.SETTLED_SUCCEEDED: (
        _("Lost; resolved as succeeded by %(by)s: %(because)s"),
        _("Lost; resolved as succeeded by an admin."),
    ),
    ReasonCode.SETTLED_FAILED: (
        _("Lost; resolved as failed by %(by)s: %(because)s"),
        _("Lost; resolved as failed by an admin."),
    ),
    ReasonCode.SETTLED_STOPPED: (
        _("Lost; resolved as stopped by %(by)s: %(because)s"),
        _("Lost; resolved as stopped by an admin."),
    ),
    ReasonCode.JOB_ENDED: (_("Stopped because the job's outcome was decided."),),
}


def reason_message(code: ReasonCode | str, params: Params) -> str:
    """Return the sentence for a reason; a code of a later version is shown as it is."""
    try:
        known = ReasonCode(code)
    except ValueError:
        return str(code)
    if known is ReasonCode.REFUSED:
        return refusal(params)
    if backend := backend_texts.backend_of(params):
        if known is ReasonCode.ENGINE_QUEUE:
            return backend_texts.pending_message(backend, params)
        if sentence := backend_texts.state_message(backend, params):
            return sentence
    why = say(_SENTENCES[known], {**params, **_in_words(known, params)})
    return _with_position(why, params)


_PLACES: Final = (
    _("%(why)s Position %(quota_position)s in the quota's queue (%(ahead_jobs)s ahead)."),
    _("%(why)s Position %(quota_position)s in the quota's queue."),
    _("%(why)s Position %(position)s in queue (%(ahead_jobs)s ahead, %(ahead_gpus)s requested)."),
    _("%(why)s Position %(position)s in queue (%(ahead_jobs)s ahead)."),
    _("%(why)s Position %(position)s in queue."),
)


def _with_position(why: str, params: Params) -> str:
    """Return the sentence with the job's position in the queue, if it has one."""
    position, ahead, gpus = params.get("position"), params.get("ahead"), params.get("ahead_gpus")
    if not isinstance(position, int):
        return why
    words: dict[str, object] = {"why": why}
    words["quota_position" if params.get("line") == "quota" else "position"] = position
    if isinstance(ahead, int) and ahead:
        words["ahead_jobs"] = amounts.quantity("jobs", ahead)
        words["ahead_gpus"] = amounts.quantity("gpu", gpus) if gpus else None
    return say(_PLACES, words)


def _in_words(code: ReasonCode, params: Params) -> dict[str, object]:
    """Return the parameters that are amounts, replicas or ends, in words."""
    error, step = params.get("error") or params.get("detail"), params.get("step")
    check, checking = params.get("check"), params.get("sanity_phase")
    words: dict[str, object] = {
        "error": error,
        f"{step}_about": params.get("about"),
        "check": sanity_word(check) if isinstance(check, str) else None,
        "checking": sanity_word(checking) if isinstance(checking, str) else None,
        **_describe_replica(params),
    }
    words["draining_cluster"] = params.get("cluster") if params.get("draining") else None
    words["person_quota"] = params.get("quota") if params.get("of") == "person" else None
    words |= _moments(params)
    if code in _AMOUNTS:
        words |= _amounts(params)
    ahead, limit_s, limit_mib = params.get("ahead"), params.get("limit_s"), params.get("limit_mib")
    if isinstance(params.get("pending"), int):
        words["pending_jobs"] = amounts.quantity("jobs", params["pending"])
    words |= _of_others(params)
    for name in ("price", "bid"):
        if isinstance(micro := params.get(name), int):
            words[f"{name}_money"] = amounts.money(micro)
    if isinstance(ahead, int) and "position" not in params:
        words["ahead_jobs"] = amounts.quantity("jobs", ahead) if ahead else None
    if isinstance(limit_s, int):
        words["time"] = amounts.duration(limit_s)
    words |= _sizes(params)
    if isinstance(limit_mib, int):
        words["limit"] = amounts.memory(limit_mib)
    if code is ReasonCode.RETRYING and params.get("code"):
        words["cause"] = reason_message(str(params["code"]), {})
    return words


def _sizes(params: Params) -> dict[str, object]:
    """Return the free space of a disk, with its unit."""
    found = {name: params.get(f"{name}_mib") for name in ("free", "floor", "most")}
    return {f"{name}_size": amounts.memory(mib) for name, mib in found.items() if isinstance(mib, int)}


_AMOUNTS: Final = frozenset(
    {
        ReasonCode.WAITING_QUOTA,
        ReasonCode.WAITING_PERSON,
        ReasonCode.WAITING_CAPACITY,
        ReasonCode.WAITING_COMING,
        ReasonCode.WAITING_IDLE,
        ReasonCode.EXCEEDS_QUOTA,
        ReasonCode.EXCEEDS_CLUSTER,
    }
)


def _amounts(params: Params) -> dict[str, object]:
    """Return `wanted`, `free`, `used`, `limit`, `most` and `left` with their units."""
    kind = params.get("kind") or params.get("resource") or params.get("unit") or params.get("gpu_type")
    if kind == "one_node":
        return {"wanted": None, "node_cluster": params.get("cluster")}
    names = ("wanted", "free", "used", "limit", "most")
    words: dict[str, object] = {name: amounts.quantity(kind, params.get(name)) for name in names}
    limit, used, fits = params.get("limit"), params.get("used"), params.get("fits_now")
    left = limit - used if isinstance(limit, int) and isinstance(used, int) else params.get("free")
    if "ahead" in params:  # what is free may lie on several nodes: admission says what one of them has
        left = params.get("gpus_now")
    if isinstance(left, int) and left > 0:
        words["left"] = amounts.quantity(kind, left)
    if isinstance(fits, int) and fits > 0:
        words["fitting_tasks"] = amounts.tasks(fits)
    return words


def _of_others(params: Params) -> dict[str, object]:
    """Return the state of the other job of a dependency, and the number of further ones."""
    state, more = params.get("other_state"), params.get("more")
    at_once = params.get("at_once")
    if not isinstance(state, str):
        return {"at_once_jobs": amounts.quantity("jobs", at_once)} if isinstance(at_once, int) else {}
    words: dict[str, object] = {"other_word": state_label(state), "failed_job": params.get("failed")}
    return words | ({"more_jobs": amounts.quantity("jobs", more)} if isinstance(more, int) else {})


def _moments(params: Params) -> dict[str, object]:
    """Return `until` and `begins` as times in the reader's zone."""
    times = {"moment": params.get("until"), "begin": params.get("begins")}
    return {name: amounts.moment(time) for name, time in times.items() if isinstance(time, str)}


def _describe_replica(params: Params) -> dict[str, object]:
    """Return the replica's name, and how its process ended."""
    role, index = params.get("role"), params.get("index")
    code, signal = params.get("exit_code"), params.get("signal")
    replica = None if role is None or index is None else f"{role}-{index}"
    exit_ = exit_message(_whole(code), _whole(signal))
    return {"task": replica, "exit": exit_}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
