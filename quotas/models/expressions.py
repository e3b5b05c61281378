"""Conditions by which SQLite finds the few open rows among the many closed ones.

It plans a statement before it knows the parameters, and without statistics: a partial index is used only
where the statement has the index's condition literally, and of two indexes the one with more known columns
wins, however many rows it leads to.
"""

from __future__ import annotations

import re
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, Value
from django.db.models.sql.compiler import SQLCompiler


class Literal(Value):
    """A word that stands in the statement itself, as in the condition of a partial index.

    Only words of the code are taken, such as states: letters and underscores, else ValueError.
    """

    def __init__(self, word: str) -> None:
        if not re.fullmatch(r"[A-Za-z_]+", word):
            raise ValueError(f"Not a word: {word!r}")
        super().__init__(str(word))

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        """Return the quoted word, without parameters."""
        return f"'{self.value}'", []


class Unindexed(Func):
    """A numeric column for which no index of its own is used, since another column leads to fewer rows."""

    function = ""
    template = "+%(expressions)s"
    arity = 1
