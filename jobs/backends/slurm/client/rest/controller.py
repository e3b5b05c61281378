"""Slurm's controller by slurmrestd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from jobs.backends.base import NotSubmitted, QueuedJob, Refused, Unknown, Unreachable
from jobs.backends.remote import attempts
from jobs.backends.slurm.client import programs
from jobs.backends.slurm.client import queue as queued
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.client.rest import options, parsing
from jobs.backends.slurm.client.rest.client import (
    UNSPECIFIED,
    WITH_PARSERS,
    NotConnected,
    RestAnswer,
    RestClient,
)
from jobs.backends.slurm.client.rest.tokens import NoToken
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.identity.unix_users import Account
from jobs.backends.thread_pool import ThreadPool
from jobs.dialects.sbatch import hosts

T = TypeVar("T")

GONE: Final = ("invalid job id", "unable to find jobid", "already finished", "already completing")
PARALLEL: Final = 4
"""The number of parallel requests where there is one for each job."""

JOBS_PER_URL: Final = 200
"""The number of jobs whose numbers fit into one URL."""

NOTHING: Final = ("nothing found",)

_NOT_FOUND: Final = 404
_WRONG: Final = 400


class RestController:
    """See `jobs.backends.slurm.client.controller.Controller`.  With an `account` that user asks."""

    def __init__(self, config: SlurmConfig, account: Account | None = None) -> None:
        self._config = config
        self._client = RestClient(config, account.pw_name if account else "")
        self._user = account.pw_name if account else config.user
        self._is_for_all = config.tells_apart and account is None
        self._environment = programs.login_environment(config, account)

    def submit(self, key: str, script: str) -> int:
        """See `JobActions`.  The script itself names the job and its folder."""
        try:
            version = self._client.version()
        except Unreachable as error:
            raise NotSubmitted.not_sent(error) from error
        fields = options.build_body(script, version, self._environment)
        try:
            answer = self._client.ask("POST", f"/slurm/v0.0.{version}/job/submit", fields)
        except (NotConnected, NoToken) as error:
            raise NotSubmitted.not_sent(error) from error
        except Unreachable as error:
            raise Unknown(str(error)) from error
        return self._number(answer)

    def list_jobs(self, names: Sequence[str] = ()) -> Iterator[ListedJob]:
        """See `Controller`.  slurmrestd can't filter jobs: it returns all."""
        wanted = frozenset(names)
        for job in self._list("jobs"):
            name = job.get("name")
            is_ours = self._is_for_all or job.get("user_name") == self._user
            if not is_ours or (name not in wanted if wanted else not attempts.is_key(str(name))):
                continue
            if (found := self._parse_listed(job)) is not None:
                yield found

    def find_forgotten(self, forgotten: Mapping[int, str]) -> list[ListedJob] | None:
        """See `Controller`."""
        numbers, found = list(map(str, forgotten)), list[ListedJob]()
        for first in range(0, len(numbers), JOBS_PER_URL):
            few = numbers[first : first + JOBS_PER_URL]
            jobs = self._query_accounting(
                f"skip_steps=true&step={'%2C'.join(few)}"
            )  # a plain comma is refused
            if jobs is None:
                return None
            found += map(parsing.parse_accounted, jobs)
        return found

    def find_accounted(self, names: Sequence[str], since: float) -> list[ListedJob] | None:
        """See `Controller`."""
        query = f"job_name={'%2C'.join(names)}&start_time=uts{int(since)}&skip_steps=true"
        if (jobs := self._query_accounting(query)) is None:
            return None
        own = self._config.user
        return [
            replace(parsing.parse_accounted(job), user="" if job.get("user") == own else str(job.get("user")))
            for job in jobs
            if parsing.is_first_component(job)
        ]

    def _query_accounting(self, query: str) -> list[Mapping[str, Any]] | None:
        """Return jobs of slurmdbd, None where there is none.  Raises Unreachable."""
        version = self._client.version()
        answer = self._client.ask("GET", f"/slurmdb/v0.0.{version}/jobs?{query}")
        if answer.status == _NOT_FOUND:
            return None
        jobs = answer.body.get("jobs")
        if not isinstance(jobs, list) or not (answer.is_good or answer.says(*NOTHING)):
            raise Unreachable(f"slurmrestd: {answer.complaint}")
        return jobs

    def find_named(self, jobs: Sequence[SlurmJob]) -> Iterator[ListedJob]:
        """See `Controller`."""
        answers = self._in_parallel([partial(self.jobs_of_number, job.number) for job in jobs])
        for sent, answer in zip(jobs, answers, strict=True):
            for job in answer:
                if job.get("name") == sent.key and (found := self._parse_listed(job)) is not None:
                    yield found

    def release(self, numbers: Sequence[int]) -> None:
        """See `JobActions`."""
        version = self._client.version()
        infinite = {"set": True, "infinite": True, "number": 0}
        fields = {"priority": infinite} if version >= WITH_PARSERS else {"hold": False}
        calls = [partial(self._call, "POST", f"/job/{number}", fields) for number in numbers]
        for answer in self._in_parallel(calls):
            self._check(answer)

    def _in_parallel(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        with ThreadPool(PARALLEL) as hands:
            answers = [hands.do(call) for call in calls]
        return [answer.result() for answer in answers]

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """See `JobActions`.  A waiting job is held first, so that it does not begin meanwhile."""
        for number in numbers:
            if name and not any(job.get("name") == name for job in self.jobs_of_number(number)):
                continue
            if waiting_only:
                if not self._is_waiting(number):
                    continue
                self._check(self._call("POST", f"/job/{number}", {"hold": True}))
                if not self._is_waiting(number):
                    continue
            self._check(self._call("DELETE", f"/job/{number}"))

    def nodes(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        return map(parsing.parse_node, self._list("nodes"))

    def nodes_of(self, number: int) -> Iterator[str]:
        """See `Controller`."""
        components = self._components(number)
        return (name for job in components for name in hosts.expand(str(job.get("nodes") or "")) or ())

    def reservations(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        return map(parsing.parse_reservation, self._list("reservations"))

    def queue(self) -> Iterator[QueuedJob]:
        """See `Controller`."""
        for job in self._list("jobs"):
            if parsing.parse_state(job.get("job_state")) in queued.STATES:
                yield queued.read_job(parsing.parse_queued(job), self._config.root)

    def is_answered(self) -> bool:
        """Return whether slurmctld answers, which it does for every token that it accepts."""
        return self._call("GET", "/ping").is_good

    def jobs_of_number(self, number: int) -> list[Mapping[str, Any]]:
        """Return the job of that number, if there is one."""
        return [job for job in self._components(number) if job.get("job_id") == number]

    def _parse_listed(self, job: Mapping[str, Any]) -> ListedJob | None:
        found = parsing.parse_job(job)
        user = str(job.get("user_name") or job.get("user_id") or "")  # an unnamed user is not the console
        return found and replace(found, user="" if user == self._user else user)

    def _is_waiting(self, number: int) -> bool:
        jobs = self.jobs_of_number(number)
        return any(parsing.parse_state(job.get("job_state")) == "PENDING" for job in jobs)

    def _components(self, number: int) -> Sequence[Mapping[str, Any]]:
        """Return the job of that number, and its other components."""
        answer = self._call("GET", f"/job/{number}")
        jobs: Sequence[Mapping[str, Any]] = answer.body.get("jobs") or []
        if not jobs:
            self._check(answer)
        return jobs

    def _number(self, answer: RestAnswer) -> int:
        """Return the number of a submitted job.  Raises Refused, NotSent or Unknown."""
        result = answer.body.get("result")
        number = answer.body.get("job_id") or (result.get("job_id") if isinstance(result, Mapping) else None)
        if isinstance(number, int) and number > 0:
            return number
        if answer.status == _NOT_FOUND:
            self._client.forget_version()
        elif answer.says(*programs.NO_ANSWER):
            raise Unknown(answer.complaint)
        elif not answer.says(*programs.NO_CONNECTION, *programs.NOT_NOW):
            if answer.status == _WRONG or _is_decided(answer):
                raise Refused.by_engine(answer.complaint)
            raise Unknown(answer.complaint)
        raise NotSubmitted.not_sent(answer.complaint)

    def _list(self, key: str) -> list[Mapping[str, Any]]:
        answer = self._call("GET", f"/{key}")
        found = answer.body.get(key)
        if not answer.is_good or not isinstance(found, list):
            raise Unreachable(f"slurmrestd: {answer.complaint}")
        return found

    def _call(self, method: str, path: str, fields: Mapping[str, Any] | None = None) -> RestAnswer:
        version = self._client.version()
        answer = self._client.ask(method, f"/slurm/v0.0.{version}{path}", fields)
        if answer.status == _NOT_FOUND and not _is_gone(answer):
            self._client.forget_version()
            raise Unreachable(f"slurmrestd: {answer.complaint}")
        return answer

    def _check(self, answer: RestAnswer) -> None:
        if not answer.is_good and not _is_gone(answer):
            raise Unreachable(f"slurmrestd: {answer.complaint}")


SLURMCTLD_ERRORS: Final = range(2000, 9000)
"""Numbers of slurmctld's errors about the job itself (slurm_errno.h)."""


def _is_gone(answer: RestAnswer) -> bool:
    """Return whether there is no such job any more, or none that waits.

    Where slurmctld did not answer, or did not accept the token, v0.0.38 says that the job can't be found, for
    an unspecified reason.
    """
    return answer.says(*GONE, *programs.PAST) and not answer.says(*UNSPECIFIED)


def _is_decided(answer: RestAnswer) -> bool:
    """Return whether slurmctld itself refused the job."""
    errors = answer.body.get("errors") or []
    codes = [each.get("error_code") or each.get("error_number") for each in errors]
    return any(isinstance(code, int) and code in SLURMCTLD_ERRORS for code in codes)
