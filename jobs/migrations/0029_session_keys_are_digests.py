"""Visits to endpoints and terminals name their sign-in by a digest of the session's key from here on."""

from typing import Any

from django.db import migrations

from quotas.accounts.session_store import reference_of


def digest(apps: Any, schema_editor: Any) -> None:
    for model in ("EndpointVisit", "Entry"):
        rows = apps.get_model("jobs", model).objects
        for pk, key in list(rows.exclude(session_key="").values_list("pk", "session_key")):
            rows.filter(pk=pk).update(session_key=reference_of(key))


class Migration(migrations.Migration):
    dependencies = [("jobs", "0028_sweeps_of_arrays"), ("quotas", "0019_session_keys_are_digests")]

    operations = [migrations.RunPython(digest, migrations.RunPython.noop, elidable=True)]
