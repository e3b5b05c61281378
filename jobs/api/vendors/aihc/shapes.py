"""Jobs and their pods as AIHC shows them, of both versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobs.access.sessions import current_replicas, safe_role
from jobs.api.vendors.aihc import names
from jobs.api.vendors.operations import Call, JsonObject, render_time
from jobs.dialects.aihc.renderer import render_spec
from jobs.models import Event, Job, JobFile, Replica
from jobs.spec import Framework, JobSpec
from jobs.states import ReplicaState
from quotas.access import Verb, those

MOST_PODS: Final = 1000
"""Pods that one answer lists."""

_JOB_TYPES: Final[Mapping[Framework | None, str]] = {Framework.TENSORFLOW: "tensorflow", Framework.MPI: "mpi"}
_LABEL: Final = "aijob.cce.baidubce.com"
_PRIVATE: Final = ("image", "imageConfig", "envs", "command")
"""Keys of a JobSpec that only those read who may read the job's file."""


@dataclass(frozen=True, slots=True)
class RenderedJob:
    """A job, and its file as AIHC would write it.

    `is_open` tells whether the caller may read its file; otherwise command, images, variables and data
    sources are left out.
    """

    job: Job
    spec: JobSpec
    body: JsonObject
    is_open: bool

    @property
    def first_role(self) -> JsonObject:
        """Return the first JobSpec, which is the only one unless the job is a TFJob."""
        specs = self.role_specs
        return next(iter(specs.values())) if "replicas" not in specs else specs

    @property
    def role_specs(self) -> JsonObject:
        """Return `jobSpec`: one JobSpec, or a map of them."""
        found: JsonObject = self.body["jobSpec"]
        if "replicas" in found:
            return self._select(found)
        return {name: self._select(inner) for name, inner in found.items()}

    def _select(self, role: JsonObject) -> JsonObject:
        hidden = {"imageConfig"} if self.is_open else set(_PRIVATE)
        return {"resources": [], "envs": [], **{key: role[key] for key in role if key not in hidden}}

    @property
    def priority(self) -> str:
        """Return the priority: the present one, or AIHC's default where the file names none."""
        named = self.spec.priority is not None or self.job.priority != 1
        return names.priority_word(self.job.priority) if named else "normal"

    @property
    def labels(self) -> list[JsonObject]:
        """Return the labels, with those that AIHC adds."""
        owner = self.job.owner.get_username()
        added = {
            **({f"{_LABEL}/create-from-aihcp-api": "true"} if self.job.dialect == "aihc" else {}),
            f"{_LABEL}/ai-user-id": owner,
            f"{_LABEL}/ai-user-name": owner,
        }
        own = (
            [each for each in self.body.get("labels", []) if each["key"] not in added] if self.is_open else []
        )
        return own + [{"key": key, "value": value} for key, value in added.items()]

    @property
    def common(self) -> JsonObject:
        """Return the fields that both versions have."""
        job = self.job
        return {
            "jobId": names.job_id(job),
            "name": job.name,
            "resourcePoolId": job.cluster.slug,
            "queue": job.quota.slug,
            "status": names.status_of(job),
            "createdAt": render_time(job.created_at),
            "runningAt": render_time(job.started_at),
            "finishedAt": render_time(job.ended_at),
            "command": self.spec.roles[0].command if self.is_open else "",
            "datasources": self.body.get("datasources", []) if self.is_open else [],
            "labels": self.labels,
            "priority": self.priority,
            "enableBccl": False,
            "enableFaultTolerance": self.spec.fault_tolerance.enabled,
            "faultToleranceArgs": self.spec.fault_tolerance.arguments if self.is_open else "",
        }


def load(call: Call, jobs: Sequence[Job]) -> list[RenderedJob]:
    """Return jobs with their files; two queries, however many there are."""
    readable = {job.pk for job in those(call.person, Verb.READ, jobs)}
    files = {row.pk: row.spec for row in JobFile.objects.filter(job__in=jobs).only("spec_json")}
    return [
        RenderedJob(
            job, spec, render_spec(spec, {}), is_open=job.pk in readable and call.has_scope_to_read(job)
        )
        for job in jobs
        if (spec := files.get(job.pk))
    ]


def render_v2(found: RenderedJob) -> JsonObject:
    """Return a job as version 2 shows it."""
    return {
        **found.common,
        "userId": found.job.owner.get_username(),
        "queueId": found.job.quota.slug,
        "jobType": _JOB_TYPES.get(found.spec.framework, "pytorch"),
        "jobSpec": found.role_specs,
        "replicas": found.spec.replicas,
    }


def render_v1(found: RenderedJob) -> JsonObject:
    """Return a job as version 1 shows it."""
    role = found.first_role
    return {
        **found.common,
        "jobFramework": found.body["jobType"],
        "image": role.get("image", ""),
        "resources": role["resources"],
        "envs": role["envs"],
        "enableRDMA": bool(role.get("enableRDMA")),
        "hostNetwork": False,
        "replicas": found.spec.replicas,
        "scheduledAt": "",
        "k8sNamespace": found.job.workspace.slug,
        "k8sUID": "",
    }


def list_pods(job: Job) -> list[Replica]:
    """Return the replicas of the current run in their order, at most `MOST_PODS`."""
    return list(current_replicas(job).order_by("ordinal")[:MOST_PODS])


def render_pod(job: Job, row: Replica) -> JsonObject:
    """Return a pod, with the fields of both versions.

    The command line counts pods with the status READY.
    """
    state = ReplicaState(row.state)
    phase = names.POD_PHASES[state]
    name = names.pod_name(job, row.role, row.index)
    return {
        "PodIP": "",
        "podIP": "",
        "podName": name,
        "nodeName": row.node,
        "objectMeta": {
            "name": name,
            "namespace": job.workspace.slug,
            "creationTimestamp": render_time(row.started_at),
            "labels": {},
            "annotations": {},
        },
        "podStatus": {"podPhase": phase, "status": "READY" if state is ReplicaState.RUNNING else phase},
        "replicaType": safe_role(row.role),
        "restartCount": job.attempt_number + job.run_number - 2,
        "createdAt": render_time(row.started_at),
        "finishedAt": render_time(row.ended_at),
        "envs": [],
        "reason": row.reason_code,
    }


def render_pods(found: RenderedJob) -> list[JsonObject]:
    """Return a job's pods; none for whoever may not read the job."""
    return [render_pod(found.job, row) for row in list_pods(found.job)] if found.is_open else []


_TIMELINE: Final = {
    Event.Kind.SUBMITTED: "Created",
    Event.Kind.ADMITTED: "Scheduled",
    Event.Kind.STARTED: "Running",
    Event.Kind.QUEUED_AGAIN: "FaultTolerantStart",
    Event.Kind.REQUEUED: "FaultTolerantStart",
    Event.Kind.END_WANTED: "ManualTermination",
}


def render_timeline(found: RenderedJob) -> list[JsonObject]:
    """Return the steps of a job's life, the first one first."""
    if not found.is_open:
        return []
    kinds = [*_TIMELINE, Event.Kind.ENDED, Event.Kind.LOST]
    rows = Event.objects.filter(job=found.job, kind__in=kinds).order_by("pk")[:MOST_PODS]
    return [_step(found.job, row) for row in rows]


def _step(job: Job, row: Event) -> JsonObject:
    condition = _TIMELINE.get(Event.Kind(row.kind)) or names.status_of(job)
    return {
        "conditionType": condition,
        "conditionMessage": str(row.params.get("reason") or row.params.get("why") or ""),
        "time": render_time(row.at),
    }


def distinct(texts: Iterable[Any]) -> list[Any]:
    """Return what is not empty, each once, in its order."""
    return [text for text in dict.fromkeys(texts) if text]
