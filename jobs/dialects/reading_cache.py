"""A document's readings are kept with it: reading a text costs more than anything after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from jobs.dialects.base import Refused

if TYPE_CHECKING:
    from jobs.dialects.document import Document

P = ParamSpec("P")
R = TypeVar("R")


def read_once(read: Callable[Concatenate[Document, P], R]) -> Callable[Concatenate[Document, P], R]:
    """Have a reader's answer about a document kept there, its Refused included.

    Nothing that was read may be changed.
    """

    @wraps(read)
    def wrapper(document: Document, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # A default that is left out (None, False) asks the same as one that is given.
        given = tuple(each for each in (*args, *kwargs.values()) if each is not None and each is not False)
        question = (read, *map(id, given))
        if question not in document.readings:
            try:
                document.readings[question] = (read(document, *args, **kwargs), given)
            except Refused as refused:
                document.readings[question] = (Refused(refused.problems), given)
        answer = document.readings[question][0]
        if isinstance(answer, Refused):
            raise Refused(answer.problems)
        return answer  # type: ignore[return-value]  # what `read` answered to just that

    return wrapper
