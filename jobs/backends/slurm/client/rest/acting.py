"""Jobs at slurmrestd as one of the users as whom they run, by a token for that user."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from jobs.backends.base import NotSent, Person, Refused, Unknown, Unreachable
from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.client.rest.controller import Rest
from jobs.backends.slurm.client.rest.tokens import NoToken
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity import whom
from jobs.backends.slurm.identity.whom import Account
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.script.layout import NotOurs
from jobs.states import Reason, ReasonCode

BELIEVED_S: Final = 3600
"""So long it is not looked again whether Slurm means the same user by a name."""

_meant: dict[tuple[str, str, int], float] = {}


class ByToken:
    """See `jobs.backends.slurm.identity.acting.Acting`."""

    def __init__(self, config: SlurmConfig, user: str) -> None:
        self._config = config
        self._user = user

    def submit(self, key: str, script: str) -> int:
        """See `Acting`.  The script itself names the job and its folder."""
        try:
            account = self._account()
        except Unreachable as error:
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": str(error)})) from error
        rest = Rest(self._config, account)
        try:
            number = rest.submit(script)
        except Unknown as error:
            if self._is_refused(rest):
                detail = f"Slurm does not accept the token that was made for {self._user}"
                raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": detail})) from error
            raise
        self._check_whose(rest, number, account)
        return number

    def release(self, numbers: Sequence[int]) -> None:
        """See `Acting`."""
        self._rest().release(numbers)

    def end(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """See `Acting`.  Of that user's jobs only those that were sent from here."""
        rest = self._rest()
        ours = [number for number in numbers if self._is_ours(rest, number)]
        rest.cancel(ours, waiting_only=waiting_only, name=name)

    def called(self, key: str) -> list[Listed]:
        """Their jobs of that name, also where Slurm hides them from the console."""
        return list(self._rest().listing([key]))

    def _rest(self) -> Rest:
        try:
            return Rest(self._config, self._account())
        except Refused as refused:
            raise NoToken(f"Nothing is done as {self._user}: {refused.reason.params['why']}") from refused

    def _account(self) -> Account:
        return whom.account(Person("", 0, self._user), whom.slurm_user(self._config))

    def _is_refused(self, rest: Rest) -> bool:
        """Whether slurmctld answers the console, and not this user; only then it is the token."""
        try:
            return not rest.is_answered() and Rest(self._config).is_answered()
        except Unreachable:
            return False

    def _check_whose(self, rest: Rest, number: int, account: Account) -> None:
        """Slurm runs as nobody what comes from a user that it does not know.  Raises Refused."""
        who = (self._config.url, account.pw_name, account.pw_uid)
        if _meant.get(who, 0.0) > time.monotonic():
            return
        try:
            uids = [told.get("user_id") for told in rest.told(number)]
        except Unreachable as error:
            raise Unknown(str(error)) from error
        if account.pw_uid not in uids:
            with suppress(Unreachable):  # it is held, and will be nobody's
                Rest(self._config).cancel([number])
            detail = f"slurmctld does not know {account.pw_name}, or by another number than {account.pw_uid}"
            raise Refused(Reason(ReasonCode.REFUSED, {"detail": detail}))
        _meant[who] = time.monotonic() + BELIEVED_S

    def _is_ours(self, rest: Rest, number: int) -> bool:
        """Whether it is a job that the console sent."""
        for told in rest.told(number):
            try:
                folder = layout.attempt(self._config.root, str(told.get("name")))
            except NotOurs:
                continue
            return told.get("current_working_directory") == str(folder)
        return False
