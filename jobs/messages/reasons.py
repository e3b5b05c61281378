"""Sentences about the reasons of jobs' states, which also say what would help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages import amounts
from jobs.messages.backend_texts import texts_for
from jobs.messages.exits import exit_message
from jobs.messages.labels import state_label
from jobs.messages.refusals import refusal
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say
from jobs.states import ReasonCode

Params = Mapping[str, object]

_SENTENCES: Final[Mapping[ReasonCode, tuple[str, ...]]] = {
    ReasonCode.NEW: (_("Just submitted; its place in the queue is being worked out."),),
    ReasonCode.WAITING_TURN: (
        _("Waits for its turn; ahead of it in the queue: %(ahead_jobs)s."),
        _("Waits for its turn."),
    ),
    ReasonCode.WAITING_QUOTA: (
        _(
            "Waits for quota %(quota)s: it asks for %(wanted)s, and %(used)s of %(limit)s are in use; "
            "there is room for %(left)s."
        ),
        _(
            "Waits for quota %(quota)s: it asks for %(wanted)s, and %(used)s of %(limit)s are in use; "
            "it starts when enough of that is given back."
        ),
        _("Waits until its quota has room."),
    ),
    ReasonCode.WAITING_QUOTA_TURN: (
        _(
            "Waits for its turn in quota %(person_quota)s: what its owner may still use there is kept for an "
            "earlier job. With a time limit that ends before that one can start, it starts now."
        ),
        _(
            "Waits for its turn in quota %(quota)s: what is left there is kept for earlier jobs. With a time "
            "limit that ends before they can start, it starts now."
        ),
        _("Waits for its turn in its quota."),
    ),
    ReasonCode.WAITING_PERSON: (
        _(
            "Waits because in quota %(quota)s one person may hold %(limit)s and its owner holds %(used)s: it "
            "asks for %(wanted)s; there is room for %(left)s."
        ),
        _(
            "Waits because in quota %(quota)s one person may hold %(limit)s and its owner holds %(used)s: it "
            "asks for %(wanted)s, and starts when another job of its owner ends."
        ),
        _("Waits because in quota %(quota)s one person may hold %(limit)s: it asks for %(wanted)s."),
        _("Waits until its owner holds less in its quota."),
    ),
    ReasonCode.WAITING_HOURS: (
        _("Waits because the GPU-hours of quota %(quota)s are used up: it starts in the next period."),
        _("Waits because the GPU-hours of its quota are used up: it starts in the next period."),
    ),
    ReasonCode.WAITING_COMING: (
        _("Waits for %(wanted)s that others are giving back now; %(free)s free on %(cluster)s so far."),
        _("Waits for what others are giving back now."),
    ),
    ReasonCode.WAITING_IDLE: (
        _(
            "Waits until %(wanted)s are idle on %(cluster)s: %(free)s now; %(fitting_tasks)s of its kind "
            "would start now."
        ),
        _(
            "Waits until %(wanted)s are idle on %(cluster)s: %(free)s now; asking for %(left)s it would "
            "start now."
        ),
        _("Waits until %(wanted)s are idle on %(cluster)s: %(free)s now."),
        _("Waits until enough is idle that nobody with a right to it waits for."),
    ),
    ReasonCode.OUTBID: (
        _("Waits because preemptible resources cost %(price_money)s an hour now, and it bids %(bid_money)s."),
        _("Waits because preemptible resources cost more than it bids."),
    ),
    ReasonCode.ENGINE_FULL: (
        _(
            "Waits here because %(pending_jobs)s of quota %(quota)s already wait in the cluster's own queue; "
            "it is handed over when one of them starts."
        ),
        _("Waits here because enough jobs of its quota already wait in the cluster's own queue."),
    ),
    ReasonCode.HELD: (
        _("Held by %(by)s: %(because)s. It keeps its age and starts once it is released."),
        _("Held by %(by)s. It keeps its age and starts once it is released."),
        _("Held back by a person: it keeps its age and starts once it is released."),
    ),
    ReasonCode.WAITING_OTHERS: (
        _("Starts after %(succeeded)s (%(other_word)s) succeeds, and %(more_jobs)s besides."),
        _("Starts after %(succeeded)s (%(other_word)s) succeeds."),
        _("Starts after %(ended)s (%(other_word)s) ends, and %(more_jobs)s besides."),
        _("Starts after %(ended)s (%(other_word)s) ends."),
        _("Starts after %(failed_job)s (%(other_word)s) fails, and %(more_jobs)s besides."),
        _("Starts after %(failed_job)s (%(other_word)s) fails."),
        _("Starts when it is its turn in its sweep; at most %(at_once_jobs)s of it are under way at a time."),
        _("Starts after other jobs."),
    ),
    ReasonCode.NOT_YET: (
        _("Waits because it asked not to start before %(moment)s."),
        _("Waits because it asked not to start yet."),
    ),
    ReasonCode.FROZEN: (
        _("Waits because an admin starts nothing on %(cluster)s for now: %(because)s"),
        _("Waits because an admin starts nothing on %(cluster)s for now."),
        _("Waits because an admin starts nothing on its cluster for now."),
    ),
    ReasonCode.MAINTENANCE: (
        _(
            "Waits because %(cluster)s is maintained from %(begin)s until %(moment)s and it could still run "
            "then: a job with a shorter longest running time starts before, this one after it."
        ),
        _("Waits because its cluster is maintained and it could still run then."),
    ),
    ReasonCode.WAITING_CAPACITY: (
        _("Waits for port %(port)s, which something else uses; any other port would start it."),
        _(
            "Waits until one node of %(node_cluster)s has room for a whole task; smaller tasks would start "
            "sooner."
        ),
        _(
            "Waits for %(wanted)s: %(free)s free on %(cluster)s now; %(fitting_tasks)s of its kind would "
            "start now."
        ),
        _("Waits for %(wanted)s: %(free)s free on %(cluster)s now; asking for %(left)s it would start now."),
        _("Waits for %(wanted)s: %(free)s free on %(cluster)s now; it starts when others end."),
        _("Waits for %(wanted)s: %(free)s free now; it starts when others end."),
        _("Waits until the cluster has room for all of it."),
    ),
    ReasonCode.EXCEEDS_QUOTA: (
        _(
            "Asks for %(wanted)s, but in quota %(person_quota)s one person is never allowed more than "
            "%(limit)s: it starts with less, in another quota, or when an admin raises the limit of one "
            "person."
        ),
        _(
            "Asks for %(wanted)s, but quota %(quota)s never allows more than %(limit)s: it starts with less, "
            "in another quota, or when an admin raises the limit."
        ),
        _("Asks for more than its quota allows: it starts with less, or when an admin raises the limit."),
    ),
    ReasonCode.EXCEEDS_CLUSTER: (
        _(
            "No single node of %(node_cluster)s can hold one of its tasks, even when nothing else runs: it "
            "starts with less for each task."
        ),
        _(
            "Asks for %(wanted)s, but all of %(cluster)s together has %(most)s: it starts with less, or on a "
            "larger cluster."
        ),
        _("Asks for more than the cluster has: it starts with less, or on a larger cluster."),
    ),
    ReasonCode.DISK_LOW: (
        _("Waiting: the console's disk has %(free_size)s free, less than the floor of %(floor_size)s."),
        _("Waiting: the console's disk is nearly full."),
    ),
    ReasonCode.NO_SUCH_GPU: (
        _(
            "Waits because %(cluster)s has no %(gpu_type)s GPU: it would start with a type that is there "
            "(%(types)s), without GPUs, or on another cluster."
        ),
        _(
            "Waits because %(cluster)s has no %(gpu_type)s GPU: it would start without GPUs, or on a cluster "
            "that has one."
        ),
        _(
            "Waits because the cluster has no %(gpu_type)s GPU: it would start without GPUs, or on a cluster "
            "that has one."
        ),
        _("Waits because the cluster has no GPU of the type it asks for."),
    ),
    ReasonCode.NO_SUCH_NODE: (
        _(
            "Waits because %(cluster)s has no node called %(missing)s: it would start with other nodes, "
            "or without naming any."
        ),
        _(
            "Waits because the nodes to which it is bound (%(nodes)s) can't hold it, even when nothing "
            "else runs: it would start with less, or on other nodes too."
        ),
        _(
            "Waits because only nodes that it keeps away from (%(shunned)s) could hold it: it would "
            "start with less, or if it might use them."
        ),
        _(
            "Waits because no node on which it may run can hold it: it would start with less, or on "
            "other nodes."
        ),
    ),
    ReasonCode.CLUSTER_AWAY: (
        _("Waits because every node of %(cluster)s that could run it is being drained: %(drained)s"),
        _("Waits because every node of %(draining_cluster)s that could run it is being drained."),
        _("Waits for %(cluster)s, which does not answer or has no node ready; it is asked again by itself."),
        _("Waits for its cluster, which does not answer or has no node ready; it is asked again by itself."),
    ),
    ReasonCode.NOT_SENT: (
        _("%(cluster)s did not take it just now; it is sent again by itself."),
        _("The cluster did not take it just now; it is sent again by itself."),
    ),
    ReasonCode.RETRYING: (
        _("Runs again by itself, attempt %(attempt)s. The one before: %(cause)s"),
        _("Runs again by itself."),
    ),
    ReasonCode.SENDING: (_("Is being handed to %(cluster)s."), _("Is being handed to the cluster.")),
    ReasonCode.UNCONFIRMED: (
        _(
            "%(cluster)s has not confirmed that it has the job; it is looked for before anything is sent "
            "again, so that it can't run twice."
        ),
        _(
            "The cluster has not confirmed that it has the job; it is looked for before anything is sent "
            "again, so that it can't run twice."
        ),
    ),
    ReasonCode.STARTING: (
        _("The cluster has it; the image %(image_about)s is being fetched."),
        _("The cluster has it; its code is being fetched from %(code_about)s."),
        _("The cluster has it; its Python packages are being installed: %(packages_about)s."),
        _("The cluster has it; its tasks are being started."),
    ),
    ReasonCode.RUNNING: (_("Its tasks are running."),),
    ReasonCode.ENGINE_QUEUE: (
        _("Waits in the cluster's own queue: %(detail)s"),
        _("Waits in the cluster's own queue."),
    ),
    ReasonCode.COMPLETED: (_("Completed without a failed task."),),
    ReasonCode.COMPLETED_WITH_FAILURES: (
        _(
            "Succeeded, %(failed)s of %(total)s tasks failed: its counts (minFailedTaskCount, "
            "minSucceededTaskCount) let the job succeed all the same."
        ),
        _("Succeeded although tasks failed: its counts let it."),
    ),
    ReasonCode.EXIT_CODE: (
        _("Task %(task)s failed. %(exit)s."),
        _("Failed. %(exit)s."),
        _("A task failed."),
    ),
    ReasonCode.SIGNALLED: (
        _("Task %(task)s was ended by a signal. %(exit)s."),
        _("Ended by a signal. %(exit)s."),
        _("A task was ended by a signal."),
    ),
    ReasonCode.AFTER_NEVER: (
        _(
            "Stopped before it started: it was to start after %(succeeded)s succeeds, and that one has "
            "ended otherwise (%(other_word)s)."
        ),
        _(
            "Stopped before it started: it was to start after %(failed_job)s fails, and that one has ended "
            "otherwise (%(other_word)s)."
        ),
        _("Stopped before it started: what it was to start after can't come true any more."),
    ),
    ReasonCode.OUT_OF_MEMORY: (
        _("Task %(task)s used more than its %(limit)s of memory and was ended: give it more, or use less."),
        _("Used more than its %(limit)s of memory and was ended: give it more, or use less."),
        _("Used more memory than it was given and was ended: give it more, or use less."),
    ),
    ReasonCode.TOO_MANY_PORTS: (
        _(
            "Task %(task)s was ended because it listened on %(ports)s ports of the range that jobs are "
            "given; %(most)s are allowed."
        ),
        _("Ended because it listened on too many ports of the range that jobs are given."),
    ),
    ReasonCode.FOLDER_TOO_LARGE: (
        _("Task %(task)s was ended because its folders hold more than %(most_size)s."),
        _(
            "Task %(task)s was ended because the console's disk had only %(free_size)s free and its folders "
            "went on growing."
        ),
        _("Ended because its folders took too much of the console's disk."),
    ),
    ReasonCode.TIME_LIMIT: (
        _("Ended after %(time)s, the longest it was allowed to run."),
        _("Ended because the longest time it was allowed to run was over."),
    ),
    ReasonCode.USER_STOP: (_("Stopped by %(by)s."), _("Stopped by a person.")),
    ReasonCode.ADMIN_STOP: (_("Stopped by the admin %(by)s."), _("Stopped by an admin.")),
    ReasonCode.PREEMPTED: (_("Ended to give what it had borrowed back to others."),),
    ReasonCode.DRAINED: (
        _("Ended because its node %(node)s is being emptied."),
        _("Ended because its node is being emptied."),
    ),
    ReasonCode.IDLE: (
        _("Ended because it had not used what it held for %(time)s, after its owner had been warned."),
        _("Ended because it did not use what it held, after its owner had been warned."),
    ),
    ReasonCode.START_FAILED: (
        _("Task %(task)s could not be started: %(error)s"),
        _("Could not be started: %(error)s"),
        _("A task could not be started."),
    ),
    ReasonCode.IMAGE_FAILED: (
        _("The image of task %(task)s could not be used: %(error)s"),
        _("Its image could not be used: %(error)s"),
        _("Its image could not be used."),
    ),
    ReasonCode.MOUNT_FAILED: (
        _("A place that task %(task)s mounts could not be used: %(error)s"),
        _("A place that it mounts could not be used: %(error)s"),
        _("A place that it mounts could not be used."),
    ),
    ReasonCode.CODE_FAILED: (
        _("The code of task %(task)s could not be fetched: %(error)s"),
        _("Its code could not be fetched: %(error)s"),
        _("Its code could not be fetched."),
    ),
    ReasonCode.REQUIREMENTS_FAILED: (
        _("The Python packages of task %(task)s could not be installed: %(error)s"),
        _("Its Python packages could not be installed: %(error)s"),
        _("Its Python packages could not be installed."),
    ),
    ReasonCode.PORT_CONFLICT: (
        _("Port %(port)s was taken by something else while it started."),
        _("A port it needed was taken by something else while it started."),
    ),
    ReasonCode.WRAPPER_LOST: (
        _("What watched over task %(task)s was killed, so nobody saw how the task ended."),
        _("What watched over a task was killed, so nobody saw how the task ended."),
    ),
    ReasonCode.MACHINE_RESTARTED: (_("The machine it ran on was restarted."),),
    ReasonCode.NODE_LOST: (_("Its node %(node)s was lost."), _("Its node was lost.")),
    ReasonCode.LOST: (
        _("%(cluster)s no longer knows it and left no sign of how it ended; if it reappears it is taken up."),
        _("Its cluster no longer knows it and left no sign of how it ended; if it reappears it is taken up."),
    ),
    ReasonCode.SETTLED_SUCCEEDED: (
        _("It was lost; %(by)s settled it as succeeded: %(because)s"),
        _("It was lost, and an admin settled it as succeeded."),
    ),
    ReasonCode.SETTLED_FAILED: (
        _("It was lost; %(by)s settled it as failed: %(because)s"),
        _("It was lost, and an admin settled it as failed."),
    ),
    ReasonCode.SETTLED_STOPPED: (
        _("It was lost; %(by)s settled it as stopped: %(because)s"),
        _("It was lost, and an admin settled it as stopped."),
    ),
    ReasonCode.JOB_ENDED: (_("Ended with the job, whose outcome was decided."),),
}


def reason_message(code: ReasonCode | str, params: Params) -> str:
    """Return the sentence for a reason; a code of a later version is shown as it is."""
    try:
        known = ReasonCode(code)
    except ValueError:
        return str(code)
    if known is ReasonCode.REFUSED:
        return refusal(params)
    if engine := texts_for(params):
        texts, word = engine
        if known is ReasonCode.ENGINE_QUEUE:
            return str(texts.pending_message(params))
        if sentence := texts.state_message(word, params):
            return str(sentence)
    why = say(_SENTENCES[known], {**params, **_in_words(known, params)})
    return _with_position(why, params)


_PLACES: Final = (
    _("%(why)s Place %(quota_position)s in the queue of its quota; ahead of it: %(ahead_jobs)s."),
    _("%(why)s Place %(quota_position)s in the queue of its quota."),
    _("%(why)s Place %(position)s in the queue; ahead of it: %(ahead_jobs)s that ask for %(ahead_gpus)s."),
    _("%(why)s Place %(position)s in the queue; ahead of it: %(ahead_jobs)s."),
    _("%(why)s Place %(position)s in the queue."),
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
    words: dict[str, object] = {
        "error": error,
        f"{step}_about": params.get("about"),
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
