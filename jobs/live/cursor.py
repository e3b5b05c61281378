"""The position of a page in the workspaces' streams: one short word for all of them.

A Redis stream's ids begin with the server's clock in milliseconds, so one moment says where a reader is in
every stream at once.  `epoch` is a number that Redis itself keeps: when Redis has lost its streams it has
lost that number too, and a page of an earlier epoch starts afresh.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jobs.live import bus

if TYPE_CHECKING:
    from redis.asyncio import Redis

EPOCH_KEY: Final = "changes:epoch"
_SHAPE: Final = re.compile(r"(\d{1,15})-(\d{1,10})")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A moment (milliseconds of Redis' clock) in an epoch; written `<moment>-<epoch>`."""

    moment: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.moment}-{self.epoch}"

    @property
    def before(self) -> str:
        """The stream id to read after.

        Changes of the moment itself are sent again: a name sent twice costs a look, a missed one is an error.
        """
        return f"{max(0, self.moment - 1)}-{2**64 - 1}"


def parse(text: str | None) -> Cursor | None:
    """Parse a cursor; None for any other text."""
    found = _SHAPE.fullmatch(text or "")
    return Cursor(int(found[1]), int(found[2])) if found else None


def at_render() -> str:
    """Return the cursor of a page that is about to read the database; "" while Redis is away."""
    answers = bus.attempt(lambda redis: _ask(redis.pipeline(transaction=False)).execute())
    return str(_cursor(answers)) if answers else ""


async def now(client: Redis) -> Cursor:
    """Return the cursor of this moment.  Raises RedisError."""
    async with client.pipeline(transaction=False) as pipe:
        return _cursor(await _ask(pipe).execute())


def _ask(pipe: Any) -> Any:
    pipe.set(EPOCH_KEY, secrets.randbelow(2**31), nx=True)
    pipe.get(EPOCH_KEY)
    pipe.time()
    return pipe


def _cursor(answers: list[Any]) -> Cursor:
    _set, epoch, (seconds, microseconds) = answers
    return Cursor(seconds * 1000 + microseconds // 1000, int(epoch))
