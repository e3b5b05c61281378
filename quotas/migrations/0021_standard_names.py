"""Models take the words that people use for them; permissions and content types follow."""

from __future__ import annotations

from typing import Final

from django.db import migrations

from quotas.migrations._permissions import rename_permissions

RENAMES: Final = {"Act": "AdminAction", "Standing": "QueueSnapshot"}


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("quotas", "0020_directory_ids"),
    ]

    operations = [
        *(migrations.RenameModel(old, new) for old, new in RENAMES.items()),
        rename_permissions("quotas", RENAMES),
    ]
