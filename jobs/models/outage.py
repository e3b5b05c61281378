"""A database that is away, or that others keep busy, is nobody's mistake: the same request may work later."""

from __future__ import annotations

import sqlite3
from typing import Final

from django.db import InterfaceError, OperationalError

RETRY_AFTER_S: Final = 5
"""When to try again; SQLite has been waited for much longer by then."""


def is_outage(error: BaseException | None) -> bool:
    """Whether `error` says that the database could not be reached, or did not get its turn.

    Django says OperationalError for that; SQLite also means a wrong statement by it, with SQLITE_ERROR.
    """
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    cause = error.__cause__
    return not (isinstance(cause, sqlite3.Error) and _primary_code(cause) == sqlite3.SQLITE_ERROR)


def _primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without what it adds in the higher bytes; 0 where Python itself raised it."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
