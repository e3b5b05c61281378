"""Jobs: create, list, get, update, stop, delete; their events and logs."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Operation
from jobs.api.vendors.pai_dlc import job_changes, job_events, job_logs
from jobs.api.vendors.pai_dlc.job_creation import CREATE_JOB
from jobs.api.vendors.pai_dlc.job_details import GET_JOB
from jobs.api.vendors.pai_dlc.job_list import LIST_JOBS

OPERATIONS: Final[tuple[Operation, ...]] = (
    CREATE_JOB,
    LIST_JOBS,
    GET_JOB,
    *job_changes.OPERATIONS,
    *job_events.OPERATIONS,
    job_logs.OPERATION,
)
