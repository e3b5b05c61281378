"""Drafts are encrypted, those too that are there already."""

from __future__ import annotations

import re

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import jobs.models.sealed
from quotas import encryption

ADDRESS = re.compile(r"upload://[0-9a-f]{64}")
AT_ONCE = 200


def seal(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Each text is plain here: the model of this state has a plain column."""
    for name in ("Draft", "DraftVersion"):
        for row in apps.get_model("jobs", name).objects.exclude(text="").iterator(AT_ONCE):
            if name == "Draft":
                row.trees = " ".join(sorted(set(ADDRESS.findall(row.text))))
            row.text = encryption.encrypt(row.text)
            row.save(update_fields=["text", "trees"] if name == "Draft" else ["text"])


def unseal(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Back to plain text."""
    for name in ("Draft", "DraftVersion"):
        for row in apps.get_model("jobs", name).objects.exclude(text="").iterator(AT_ONCE):
            row.text = encryption.decrypt(row.text)
            row.save(update_fields=["text"])


class Migration(migrations.Migration):
    dependencies = [("jobs", "0016_confided")]

    operations = [
        migrations.AddField("draft", "trees", models.TextField(blank=True, default="", editable=False)),
        migrations.RunPython(seal, unseal),
        migrations.AlterField(
            "draft", "text", jobs.models.sealed.SealedTextField(blank=True, verbose_name="text")
        ),
        migrations.AlterField(
            "draftversion", "text", jobs.models.sealed.SealedTextField(blank=True, verbose_name="text")
        ),
    ]
