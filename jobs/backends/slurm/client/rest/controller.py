"""Slurm's controller by slurmrestd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from jobs.backends.base import NotSent, QueuedJob, Refused, Unknown, Unreachable
from jobs.backends.hands import Hands
from jobs.backends.slurm.client import everybody, programs
from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.client.rest import options, reading, versions
from jobs.backends.slurm.client.rest.client import UNSPECIFIED, Answer, Client, NotConnected
from jobs.backends.slurm.client.rest.tokens import NoToken
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity.whom import Account
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.script.layout import Sent
from jobs.dialects.sbatch import hosts
from jobs.states import Reason, ReasonCode

GONE: Final = ("invalid job id", "unable to find jobid", "already finished", "already completing")
AT_ONCE: Final = 4
"""So many requests are under way at the same time where there is one for each job."""

ASKED_AT_ONCE: Final = 200
"""So many numbers of jobs fit into the address of one request."""

NOTHING: Final = ("nothing found",)

_NOT_FOUND: Final = 404
_WRONG: Final = 400


class Rest:
    """See `jobs.backends.slurm.client.controller.Controller`.  With an `account` it is that user who asks."""

    def __init__(self, config: SlurmConfig, account: Account | None = None) -> None:
        self._config = config
        self._client = Client(config, account.pw_name if account else "")
        self._user = account.pw_name if account else config.user
        self._everybody = config.tells_apart and account is None
        self._environment = programs.of_login(config, account)

    def submit(self, script: str) -> int:
        """See `Controller`."""
        try:
            version = versions.of(self._client)
        except Unreachable as error:
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": str(error)})) from error
        told = options.body(script, version, self._environment)
        try:
            answer = self._client.ask("POST", f"/slurm/v0.0.{version}/job/submit", told)
        except (NotConnected, NoToken) as error:
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": str(error)})) from error
        except Unreachable as error:
            raise Unknown(str(error)) from error
        return self._number(answer)

    def listing(self, names: Sequence[str] = ()) -> Iterator[Listed]:
        """See `Controller`.  slurmrestd can't be asked for some jobs: it tells of all."""
        wanted = frozenset(names)
        for told in self._asked("jobs", "/jobs"):
            name = told.get("name")
            is_ours = self._everybody or told.get("user_name") == self._user
            if not is_ours or (name not in wanted if wanted else not layout.is_key(str(name))):
                continue
            if (found := self._listed(told)) is not None:
                yield found

    def history(self, forgotten: Mapping[int, str]) -> list[Listed] | None:
        """See `Controller`."""
        numbers = list(map(str, forgotten))
        version = versions.of(self._client)
        found: list[Listed] = []
        for first in range(0, len(numbers), ASKED_AT_ONCE):
            few = "%2C".join(numbers[first : first + ASKED_AT_ONCE])  # slurmrestd takes no other comma
            answer = self._client.ask("GET", f"/slurmdb/v0.0.{version}/jobs?skip_steps=true&step={few}")
            if answer.status == _NOT_FOUND:
                return None
            told = answer.body.get("jobs")
            if not isinstance(told, list) or not (answer.is_good or answer.says(*NOTHING)):
                raise Unreachable(f"slurmrestd: {answer.complaint}")
            found += map(reading.past, told)
        return found

    def remembered(self, names: Sequence[str], since: float) -> list[Listed] | None:
        """See `Controller`."""
        version = versions.of(self._client)
        asked = f"job_name={'%2C'.join(names)}&start_time=uts{int(since)}&skip_steps=true"
        answer = self._client.ask("GET", f"/slurmdb/v0.0.{version}/jobs?{asked}")
        if answer.status == _NOT_FOUND:
            return None
        told = answer.body.get("jobs")
        if not isinstance(told, list) or not (answer.is_good or answer.says(*NOTHING)):
            raise Unreachable(f"slurmrestd: {answer.complaint}")
        return [
            replace(
                reading.past(each), user="" if each.get("user") == self._config.user else each.get("user")
            )
            for each in told
            if reading.is_first(each)
        ]

    def known(self, jobs: Sequence[Sent]) -> Iterator[Listed]:
        """See `Controller`."""
        with Hands(AT_ONCE) as hands:
            answers = [(sent, hands.do(partial(self.told, sent.number))) for sent in jobs]
        for sent, answer in answers:
            for told in answer.result():
                if told.get("name") == sent.key and (found := self._listed(told)) is not None:
                    yield found

    def release(self, numbers: Sequence[int]) -> None:
        """See `Controller`."""
        version = versions.of(self._client)
        infinite = {"set": True, "infinite": True, "number": 0}
        told = {"priority": infinite} if version >= versions.WITH_PARSERS else {"hold": False}
        with Hands(AT_ONCE) as hands:
            answers = [hands.do(partial(self._call, "POST", f"/job/{number}", told)) for number in numbers]
        for answer in answers:
            self._done(answer.result())

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """See `Controller`.  A waiting job is held first, so that it does not begin meanwhile."""
        for number in numbers:
            if name and not any(told.get("name") == name for told in self.told(number)):
                continue
            if waiting_only:
                if not self._waits(number):
                    continue
                self._done(self._call("POST", f"/job/{number}", {"hold": True}))
                if not self._waits(number):
                    continue
            self._done(self._call("DELETE", f"/job/{number}"))

    def nodes(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        return (reading.node(told) for told in self._asked("nodes", "/nodes"))

    def nodes_of(self, number: int) -> Iterator[str]:
        """See `Controller`."""
        components = self._components(number)
        return (name for told in components for name in hosts.names(str(told.get("nodes") or "")) or ())

    def reservations(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        return (reading.reservation(told) for told in self._asked("reservations", "/reservations"))

    def queue(self) -> Iterator[QueuedJob]:
        """See `controller.Controller`."""
        for told in self._asked("jobs", "/jobs"):
            if reading.state(told.get("job_state")) in everybody.STATES:
                yield everybody.read(reading.queued(told), self._config.root)

    def is_answered(self) -> bool:
        """Whether slurmctld answers, which it does to whoever shows a token that it takes."""
        return self._call("GET", "/ping").is_good

    def _listed(self, told: Mapping[str, Any]) -> Listed | None:
        found = reading.listed(told)
        user = str(told.get("user_name") or told.get("user_id") or "")  # whose name it can't tell is not ours
        return found and replace(found, user="" if user == self._user else user)

    def _waits(self, number: int) -> bool:
        return any(reading.state(told.get("job_state")) == "PENDING" for told in self.told(number))

    def told(self, number: int) -> list[Mapping[str, Any]]:
        """The job of that number, if there is one."""
        return [told for told in self._components(number) if told.get("job_id") == number]

    def _components(self, number: int) -> Sequence[Mapping[str, Any]]:
        """The same, with all that it is made of."""
        answer = self._call("GET", f"/job/{number}")
        jobs: Sequence[Mapping[str, Any]] = answer.body.get("jobs") or []
        if not jobs and not answer.is_good and not _is_gone(answer):
            raise Unreachable(f"slurmrestd: {answer.complaint}")
        return jobs

    def _number(self, answer: Answer) -> int:
        """The number of what was submitted."""
        result = answer.body.get("result")
        number = answer.body.get("job_id") or (result.get("job_id") if isinstance(result, Mapping) else None)
        if isinstance(number, int) and number > 0:
            return number
        if answer.status == _NOT_FOUND:
            versions.forget(self._client)
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": answer.complaint}))
        if answer.says(*programs.NO_ANSWER):
            raise Unknown(answer.complaint)
        if answer.says(*programs.NO_CONNECTION, *programs.NOT_NOW):
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": answer.complaint}))
        if answer.status == _WRONG or _is_decided(answer):
            raise Refused(Reason(ReasonCode.REFUSED, {"detail": answer.complaint}))
        raise Unknown(answer.complaint)

    def _asked(self, key: str, path: str) -> list[Mapping[str, Any]]:
        answer = self._call("GET", path)
        found = answer.body.get(key)
        if not answer.is_good or not isinstance(found, list):
            raise Unreachable(f"slurmrestd: {answer.complaint}")
        return found

    def _call(self, method: str, path: str, told: Mapping[str, Any] | None = None) -> Answer:
        version = versions.of(self._client)
        answer = self._client.ask(method, f"/slurm/v0.0.{version}{path}", told)
        if answer.status == _NOT_FOUND and not _is_gone(answer):
            versions.forget(self._client)
            raise Unreachable(f"slurmrestd: {answer.complaint}")
        return answer

    def _done(self, answer: Answer) -> None:
        if not answer.is_good and not _is_gone(answer):
            raise Unreachable(f"slurmrestd: {answer.complaint}")


SLURMS_OWN: Final = 2000
"""Numbers of errors from here on are slurmctld's about the job itself (slurm_errno.h)."""


def _is_gone(answer: Answer) -> bool:
    """Whether there is no such job any more, or none that waits.  Where slurmctld did not answer, or did not
    take the token, v0.0.38 says that the job can't be found, for an unspecified reason.
    """
    return answer.says(*GONE, *programs.PAST) and not answer.says(*UNSPECIFIED)


def _is_decided(answer: Answer) -> bool:
    """Whether slurmctld looked at the job and said no."""
    told = answer.body.get("errors") or []
    codes = [each.get("error_code") or each.get("error_number") for each in told]
    return any(isinstance(code, int) and SLURMS_OWN <= code < 9000 for code in codes)
