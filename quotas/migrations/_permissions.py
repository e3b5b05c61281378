"""Permissions that keep up with a model's new name, which Django leaves as they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import migrations

ACTIONS = ("add", "change", "delete", "view")


def rename_permissions(app_label: str, renames: Mapping[str, str]) -> migrations.RunPython:
    """Return the operation that names permissions after `renames`, from old to new names of models.

    Whoever has one keeps it.  It comes after the models' own renaming, with which content types change.
    """

    def rename(apps: Any, names: Mapping[str, str]) -> None:
        permissions = apps.get_model("auth", "Permission").objects
        for old, new in names.items():
            for action in ACTIONS:
                permissions.filter(
                    content_type__app_label=app_label,
                    content_type__model__in=(old.lower(), new.lower()),
                    codename=f"{action}_{old.lower()}",
                ).update(codename=f"{action}_{new.lower()}")

    return migrations.RunPython(
        lambda apps, _editor: rename(apps, renames),
        lambda apps, _editor: rename(apps, {new: old for old, new in renames.items()}),
        elidable=True,
    )
