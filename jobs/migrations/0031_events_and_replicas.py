"""Fields take the names of the models that they refer to: events and replicas."""

from __future__ import annotations

from typing import Final

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

CONSTRAINTS: Final = (
    ("deliveryitem", "told_once", ("channel", "event")),
    ("endpoint", "one_endpoint", ("replica", "label", "ordinal")),
    ("notification", "one_notice", ("person", "event")),
)
"""A constraint names its fields, which the renaming of a field leaves alone: it is dropped and added again."""

FIELDS: Final = (
    ("accesssession", "task", "replica"),
    ("deliveryitem", "occasion", "event"),
    ("endpoint", "task", "replica"),
    ("job", "tasks_failed", "replicas_failed"),
    ("job", "tasks_running", "replicas_running"),
    ("job", "tasks_total", "replicas_total"),
    ("notification", "occasion", "event"),
    ("replicausage", "task", "replica"),
)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0030_standard_names"),
    ]

    operations = [
        *(migrations.RemoveConstraint(model, name) for model, name, _fields in CONSTRAINTS),
        *(migrations.RenameField(model, old, new) for model, old, new in FIELDS),
        *(
            migrations.AddConstraint(model, models.UniqueConstraint(fields=fields, name=name))
            for model, name, fields in CONSTRAINTS
        ),
        migrations.AlterModelOptions(
            name="endpoint",
            options={
                "ordering": ("replica", "label", "ordinal"),
                "verbose_name": "endpoint",
                "verbose_name_plural": "endpoints",
            },
        ),
        migrations.AlterField(
            model_name="notification",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notifications",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="replica",
            name="attempt",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="replicas",
                to="jobs.attempt",
                verbose_name="attempt",
            ),
        ),
    ]
