"""A task of a job, as OpenPAI describes it: state, node, ports, log and exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.db.models import QuerySet

from jobs import messages
from jobs.access import sessions
from jobs.api.vendors.openpai import states
from jobs.api.vendors.openpai.job_names import name_of
from jobs.api.vendors.openpai.job_summaries import to_ms
from jobs.api.vendors.openpai.states import Version
from jobs.api.vendors.operations import Call
from jobs.models import Attempt, Endpoint, Job, Replica
from jobs.spec import RoleSpec
from jobs.states import ReplicaState

_LOGS: Final = (
    "/rest-server/api/v2/jobs/{job}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}"
    "/attempts/{run}/logs/"
)


@dataclass(frozen=True, slots=True)
class TaskView:
    """The tasks of an attempt, as far as the caller may see them."""

    call: Call
    job: Job
    attempt: Attempt
    version: Version
    shows_ports: bool

    def describe(self, role: str, index: int, replica: Replica | None) -> dict[str, Any]:
        """Return a task; without a replica it was not started yet."""
        if replica is None:
            return self._describe_waiting(role, index)
        endpoints = list(replica.endpoints.all()) if self.shows_ports else []
        task = {
            "taskIndex": index,
            "taskState": replica.state,
            "containerId": sessions.login_name(self.job, replica),
            "containerIp": endpoints[0].host if endpoints else replica.node,
            "containerPorts": _ports(endpoints),
            "containerGpus": None,
            "containerLog": self._log_address(replica),
            "containerExitCode": states.exit_code_of_task(replica),
        }
        return task if self.version is Version.V1 else {**task, **self._second_version(replica)}

    def _describe_waiting(self, role: str, index: int) -> dict[str, Any]:
        state = ReplicaState.STOPPED if self.job.is_ended else ReplicaState.WAITING
        never = Replica(attempt=self.attempt, role=role, index=index, state=state, run=1)
        task: dict[str, Any] = {
            "taskIndex": index,
            "taskState": state.value,
            "containerId": "",
            "containerIp": "",
            "containerPorts": {},
            "containerGpus": None,
            "containerLog": "",
            "containerExitCode": None,
        }
        return task if self.version is Version.V1 else {**task, **self._second_version(never)}

    def _second_version(self, replica: Replica) -> dict[str, Any]:
        code = states.exit_code_of_task(replica)
        ended = messages.exit_message(replica.exit_code, replica.signal) if code is not None else None
        return {
            "taskUid": sessions.login_name(self.job, replica),
            "containerNodeName": replica.node,
            "containerExitSpec": None,
            "containerExitDiagnostics": ended,
            "retries": replica.run - 1,
            "accountableRetries": 0,
            "createdTime": to_ms(self.attempt.created_at),
            "launchedTime": to_ms(replica.started_at),
            "completedTime": to_ms(replica.ended_at),
            "attemptId": replica.run - 1,
            "attemptState": replica.state,
            "hived": {"affinityGroupName": None, "lazyPreempted": None, "lazyPreemptionStatus": None},
        }

    def _log_address(self, replica: Replica) -> str:
        path = _LOGS.format(
            job=quote(name_of(self.job), safe="~"),
            attempt=self.attempt.number - 1,
            role=quote(replica.role, safe=""),
            index=replica.index,
            run=replica.run - 1,
        )
        return self.call.request.build_absolute_uri(path)

    def roles(self, roles: Iterable[RoleSpec], replicas: Iterable[Replica]) -> dict[str, Any]:
        """Return all roles with their tasks, in the order of the job file."""
        found = {(row.role, row.index): row for row in replicas}
        return {
            role.name: {
                "taskRoleStatus": {"name": role.name},
                "taskStatuses": [
                    self.describe(role.name, index, found.get((role.name, index)))
                    for index in range(role.replicas)
                ],
            }
            for role in roles
        }


def _ports(endpoints: Iterable[Endpoint]) -> Mapping[str, str]:
    """Return the ports by label, several of one label separated by commas."""
    found: dict[str, list[str]] = {}
    for endpoint in endpoints:
        found.setdefault(endpoint.label, []).append(str(endpoint.port))
    return {label: ",".join(ports) for label, ports in found.items()}


def newest_replicas(attempt: Attempt) -> QuerySet[Replica]:
    """Return the replicas of an attempt's newest run, with their endpoints."""
    rows = Replica.objects.filter(attempt=attempt)
    newest = rows.order_by("-run").values("run")[:1]
    return rows.filter(run=newest).order_by("ordinal").prefetch_related("endpoints")
