"""Actions on jobs at slurmrestd as one of the console's users, by a token for that user."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from jobs.backends.base import NotSubmitted, Person, Refused, Unknown, Unreachable
from jobs.backends.remote import attempts
from jobs.backends.remote.attempts import InvalidKey
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.client.rest.controller import RestController
from jobs.backends.slurm.client.rest.tokens import NoToken
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity import unix_users
from jobs.backends.slurm.identity.unix_users import Account

VERIFIED_S: Final = 3600
"""How long it is not checked again that Slurm means the same user by a name."""

_verified: dict[tuple[str, str, int], float] = {}


class TokenActions:
    """See `jobs.backends.slurm.client.controller.JobActions`."""

    def __init__(self, config: SlurmConfig, user: str) -> None:
        self._config = config
        self._user = user

    def submit(self, key: str, script: str) -> int:
        """See `JobActions`."""
        try:
            account = self._account()
        except Unreachable as error:
            raise NotSubmitted.not_sent(error) from error
        rest = RestController(self._config, account)
        try:
            number = rest.submit(key, script)
        except Unknown as error:
            if self._is_refused(rest):
                detail = f"Slurm does not accept the token that was made for {self._user}"
                raise NotSubmitted.not_sent(detail) from error
            raise
        self._check_user(rest, number, account)
        return number

    def release(self, numbers: Sequence[int]) -> None:
        """See `JobActions`."""
        self._rest().release(numbers)

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """See `JobActions`; only jobs that the console submitted."""
        rest = self._rest()
        ours = [number for number in numbers if self._is_ours(rest, number)]
        rest.cancel(ours, waiting_only=waiting_only, name=name)

    def jobs_of_name(self, key: str) -> list[ListedJob]:
        """Return their jobs of that name, also where Slurm hides them from the console."""
        return list(self._rest().list_jobs([key]))

    def _rest(self) -> RestController:
        try:
            return RestController(self._config, self._account())
        except Refused as refused:
            raise NoToken(f"Nothing is done as {self._user}: {refused.reason.params['why']}") from refused

    def _account(self) -> Account:
        return unix_users.resolve_account(Person("", 0, self._user), unix_users.slurm_user(self._config))

    def _is_refused(self, rest: RestController) -> bool:
        """Return whether the token is refused: slurmctld answers the console, and not this user."""
        try:
            return not rest.is_answered() and RestController(self._config).is_answered()
        except Unreachable:
            return False

    def _check_user(self, rest: RestController, number: int, account: Account) -> None:
        """Check the job's user: Slurm runs jobs of unknown users as nobody.  Raises Refused."""
        user = (self._config.url, account.pw_name, account.pw_uid)
        if _verified.get(user, 0.0) > time.monotonic():
            return
        try:
            uids = [job.get("user_id") for job in rest.jobs_of_number(number)]
        except Unreachable as error:
            raise Unknown(str(error)) from error
        if account.pw_uid not in uids:
            with suppress(Unreachable):  # it is held, and would run as nobody
                RestController(self._config).cancel([number])
            detail = f"slurmctld does not know {account.pw_name}, or by another number than {account.pw_uid}"
            raise Refused.by_engine(detail)
        _verified[user] = time.monotonic() + VERIFIED_S

    def _is_ours(self, rest: RestController, number: int) -> bool:
        """Return whether the console submitted the job."""
        for job in rest.jobs_of_number(number):
            try:
                folder = attempts.attempt_folder(self._config.root, str(job.get("name")))
            except InvalidKey:
                continue
            return job.get("current_working_directory") == str(folder)
        return False
