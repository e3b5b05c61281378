"""Rows of sessions and of sign-ins are found by a digest of the session's key from here on."""

from typing import Any

from django.db import migrations

from quotas.accounts.session_store import reference_of


def digest(apps: Any, schema_editor: Any) -> None:
    for app, model in (("sessions", "Session"), ("quotas", "SignIn")):
        rows = apps.get_model(app, model).objects
        for key in list(rows.values_list("session_key", flat=True)):
            rows.filter(session_key=key).update(session_key=reference_of(key))


class Migration(migrations.Migration):
    dependencies = [("sessions", "0001_initial"), ("quotas", "0018_cluster_facilities")]

    operations = [migrations.RunPython(digest, migrations.RunPython.noop, elidable=True)]
