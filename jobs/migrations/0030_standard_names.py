"""Models take the words that people use for them; permissions and content types follow."""

from __future__ import annotations

from typing import Final

from django.db import migrations

from quotas.migrations._permissions import rename_permissions

RENAMES: Final = {
    "AssetTrial": "AssetCheck",
    "Entry": "AccessSession",
    "Notice": "Notification",
    "Occasion": "NotificationEvent",
    "OtherJob": "ExternalJob",
    "Rule": "NotificationRule",
    "Task": "Replica",
    "TaskUse": "ReplicaUsage",
}


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0029_session_keys_are_digests"),
        ("quotas", "0021_standard_names"),
    ]

    operations = [
        *(migrations.RenameModel(old, new) for old, new in RENAMES.items()),
        rename_permissions("jobs", RENAMES),
    ]
