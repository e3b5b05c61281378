"""After a test that commits: what it wrote goes, and nothing else is touched.

Django flushes each of some ninety tables and makes every permission and content type anew, which takes most
such tests longer than what they test.
"""

from typing import Final

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

KEPT: Final = frozenset({"django_migrations", "django_content_type", "auth_permission"})
"""What `migrate` makes, and tests leave as it is."""


def empty_after_a_test(case: TransactionTestCase) -> None:
    """Takes the place of `TransactionTestCase._fixture_teardown`."""
    for name in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        empty(connections[name])


def empty(connection: BaseDatabaseWrapper) -> None:
    """Delete all rows, but those of the tables in KEPT; foreign keys are looked at when all are gone."""
    tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT
    quoted = sorted(connection.ops.quote_name(table) for table in tables)
    looks = (f"SELECT '{each}' FROM (SELECT 1 AS one FROM {each} LIMIT 1) AS seen" for each in quoted)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # whoever still writes is waited for, as SQLite does by itself
            cursor.execute(f"LOCK TABLE {', '.join(quoted)} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(" UNION ALL ".join(looks))
        for (table,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {table}")
