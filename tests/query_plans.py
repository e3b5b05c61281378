"""Judge statements by what the database does for them, on a small and on a grown database.

A cost that depends on how many jobs there were is found by comparison, with no list of queries:

    def grow() -> None:
        query_plans.multiply([ended_job, *Request.objects.filter(holder=attempt.key)], 400)

    assert query_plans.find_growing({"sweep": tasks.sweep, "list": lambda: client.get("/jobs")}, grow) == []

`find_growing` runs each of the named calls in a transaction that is rolled back, calls `grow`, and runs them
all once more.  A statement fails that does more for the rows that were added: it scans them, sorts them, or
is executed once for each.  A statement that reaches its rows by an index does the same work as before.  The
report names the caller, and has the statement with its plan as it was bound.

What is counted: on SQLite the instructions of its virtual machine, while the statement really runs with its
parameters bound; on PostgreSQL the rows that the nodes of the plan read (EXPLAIN ANALYZE, with sequential
pages at a hundred times their price, since a scan of a few hundred rows is cheap).
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from types import FrameType
from typing import Any, Final

from django.apps import apps
from django.db import connection, models, transaction
from django.db.models import F, ForeignKey, ForeignObjectRel, Model

from console.home import CHECKOUT

STEP: Final = 10
"""Instructions of SQLite between two counts."""

OFFSET: Final = 1_000_000
"""Distance of a copy's primary key from its original's; copies have negative ones, as if they were older."""

_OURS: Final = tuple(f"{CHECKOUT}/{package}/" for package in ("jobs", "quotas", "console"))
_SCAN: Final = re.compile(r" *SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")
_ALIAS: Final = re.compile(r'(?:FROM|JOIN) "(\w+)" (\w+)')
_LISTS: Final = re.compile(r"\(%s(?:, %s)*\)(?:, \(%s(?:, %s)*\))*")


@dataclass(slots=True)
class Statement:
    """A statement that was executed: where from, and what it cost (instructions, or rows)."""

    origin: str
    sql: str
    params: Any
    cost: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """The same for executions with other parameters, and with lists of another length."""
        return self.origin, _LISTS.sub("(…)", self.sql)


@contextmanager
def capture() -> Iterator[list[Statement]]:
    """Collect what is executed within the block, with its cost; queries and changes of rows alone."""
    statements: list[Statement] = []

    def execute(run: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if many or not sql.lstrip("( ").startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")):
            return run(sql, params, many, context)
        statements.append(Statement(_origin(), sql, params))
        if connection.vendor == "postgresql":
            statements[-1].cost = _rows_read(sql, params)
        return run(sql, params, many, context)

    def count() -> int:
        if statements:
            statements[-1].cost += STEP
        return 0

    connection.ensure_connection()
    if connection.vendor == "sqlite":
        connection.connection.set_progress_handler(count, STEP)
    else:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL seq_page_cost = 100")
    try:
        with connection.execute_wrapper(execute):
            yield statements
    finally:
        if connection.vendor == "sqlite":
            connection.connection.set_progress_handler(None, STEP)


def find_growing(
    calls: Mapping[str, Callable[[], object]],
    grow: Callable[[], int],
    least: float = 0.5,
    *,
    bounded: Collection[str] | None = None,
) -> list[str]:
    """Return a report of each statement that does more after `grow`, which returns how many jobs it added.

    A statement is reported from `least` instructions or rows for each of them.  Given the tables that stay
    small (`bounded`), it is also reported on SQLite when its plan scans another table whole, whatever that
    cost here: nothing may have led to the table, or it was empty.
    """
    before = {name: _costs(_measure(call)) for name, call in calls.items()}
    added = grow()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    reports, known = [], set[tuple[str, str]]()
    for name, call in calls.items():
        statements = _measure(call)
        examples = {each.key: each for each in sorted(statements, key=lambda each: each.cost)}
        for key, cost in _costs(statements).items():
            earlier = before[name][key]
            is_scan = bounded is not None and key not in known and scans(examples[key], bounded)
            known.add(key)
            if is_scan or cost - earlier > least * added:
                reports.append(_report(name, examples[key], earlier, cost))
    return reports


def make_older(rows: Iterable[Model], by: timedelta) -> None:
    """Set back every date of the rows, and of every row that refers to one of them."""
    for model, keys in _find(rows).items():
        dates = [each.name for each in model._meta.concrete_fields if isinstance(each, models.DateTimeField)]
        if dates and keys:
            model._base_manager.filter(pk__in=keys).update(**{name: F(name) - by for name in dates})


def multiply(rows: Iterable[Model], times: int) -> int:
    """Store `times` copies of the rows and of every row that refers to one of them; return `times`.

    Copies refer to copies.  The last six characters of a unique text are the copy's number; so a request's
    holder stays the key of its attempt.
    """
    found = _find(rows)
    with connection.constraint_checks_disabled() if connection.vendor == "sqlite" else transaction.atomic():
        for model in sorted(found, key=lambda each: _depth(each, found)):
            _copy(model, found, times)
    return times


def _measure(call: Callable[[], object]) -> list[Statement]:
    with transaction.atomic():
        with capture() as statements:
            call()
        transaction.set_rollback(True)
    return statements


def _costs(statements: Iterable[Statement]) -> Counter[tuple[str, str]]:
    sums: Counter[tuple[str, str]] = Counter()
    for each in statements:
        sums[each.key] += each.cost
    return sums


def _origin() -> str:
    """Return the file, line and function of ours that executes a statement; "" if none does."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_OURS):
            relative = path.removeprefix(f"{CHECKOUT}/")
            return f"{relative}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def _rows_read(sql: str, params: Any) -> int:
    """Execute the statement once for its plan, and undo that; return the rows that its nodes read."""
    with transaction.atomic():
        with connection.create_cursor() as cursor:  # Django's own would come here again
            cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", params)
            found = cursor.fetchone()[0]
        transaction.set_rollback(True)
    (plan,) = json.loads(found) if isinstance(found, str) else found
    return _rows_of(plan["Plan"])


def _rows_of(node: Mapping[str, Any]) -> int:
    removed = sum(value for key, value in node.items() if key.startswith("Rows Removed"))
    own = (node["Actual Rows"] + removed) * node["Actual Loops"]
    return int(own) + sum(map(_rows_of, node.get("Plans", ())))


def _report(name: str, statement: Statement, before: int, after: int) -> str:
    return "\n".join(
        [f"{name}: {statement.origin}: {before} → {after}", statement.sql, *explain(statement), ""]
    )


def explain(statement: Statement) -> Sequence[str]:
    """Return the lines of the statement's plan, with its parameters bound."""
    prefix = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{prefix} {statement.sql}", statement.params)
        return [f"  {row[-1]}" for row in cursor.fetchall()]


def scans(statement: Statement, bounded: Collection[str]) -> bool:
    """Tell whether SQLite reads all of a table that is not in `bounded`; never on PostgreSQL.

    All of a partial index may be read, and a statement without conditions that is limited.
    """
    if connection.vendor != "sqlite" or not statement.sql.startswith(("SELECT", "UPDATE", "DELETE")):
        return False
    if " LIMIT " in statement.sql and " WHERE " not in statement.sql:
        return False
    tables = {model._meta.db_table for model in apps.get_models()} - {*bounded}
    aliases = {alias: table for table, alias in _ALIAS.findall(statement.sql)}
    for line in explain(statement):
        found = _SCAN.match(line)
        if found and aliases.get(found[1], found[1]) in tables and found[2] not in _list_partial_indexes():
            return True
    return False


@cache
def _list_partial_indexes() -> frozenset[str]:
    indexes = (index for model in apps.get_models() for index in model._meta.indexes)
    return frozenset(index.name for index in indexes if index.condition is not None)


# --- copies ----------------------------------------------------------------------------------------------


def _find(rows: Iterable[Model]) -> dict[type[Model], set[Any]]:
    """Return the keys of the rows, and of what refers to them, by model."""
    found: dict[type[Model], set[Any]] = {}
    for row in rows:
        _collect(type(row), {row.pk}, found)
    return found


def _collect(model: type[Model], keys: set[Any], found: dict[type[Model], set[Any]]) -> None:
    """Add the rows with these keys, and what refers to them."""
    new = keys - found.setdefault(model, set())
    if not new:
        return
    found[model] |= new
    for relation in model._meta.get_fields(include_hidden=True):
        if isinstance(relation, ForeignObjectRel) and isinstance(relation.field, ForeignKey):
            related = relation.related_model
            rows = related._base_manager.filter(**{f"{relation.field.name}__in": new})
            _collect(related, set(rows.values_list("pk", flat=True)), found)


def _depth(model: type[Model], found: Mapping[type[Model], set[Any]]) -> int:
    """Return how many tables have to be copied before the model's."""
    others = [field.related_model for field in _references(model, found) if field.related_model is not model]
    return 1 + max((_depth(other, found) for other in others), default=0)


def _references(model: type[Model], found: Mapping[type[Model], set[Any]]) -> list[ForeignKey[Any, Any]]:
    fields = model._meta.concrete_fields
    return [field for field in fields if isinstance(field, ForeignKey) and field.related_model in found]


def _copy(model: type[Model], found: Mapping[type[Model], set[Any]], times: int) -> None:
    if not found[model]:
        return
    quote = connection.ops.quote_name
    key = model._meta.pk
    assert key is not None
    columns, values = [], []
    moved = {*_references(model, found), *([key] if _is_number(key) else [])}
    for field in model._meta.concrete_fields:
        name = quote(str(field.column))
        columns.append(name)
        if field in moved:
            values.append(f"{name} - copy * {OFFSET}")
        elif field.unique:
            values.append(f"substr({name}, 1, length({name}) - 6) || (100000 + copy)")
        else:
            values.append(name)
    table = quote(model._meta.db_table)
    keys = ", ".join(["%s"] * len(found[model]))
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE copies(copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies"
            f" WHERE copy < {times})"
            f" INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)}"
            f" FROM {table}, copies WHERE {quote(str(key.column))} IN ({keys})",
            list(found[model]),
        )


def _is_number(field: models.Field[Any, Any]) -> bool:
    return isinstance(field, models.IntegerField | models.AutoField)
