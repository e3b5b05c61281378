"""Move the clusters' setting `datasets` into storage mappings."""

from __future__ import annotations

from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from jobs.facilities import local_path
from quotas import encryption

MARK = "encrypted:"
ALL = "*"
COLUMNS = {
    "path": "mount_path",
    "read_only": "read_only",
    "bucket": "bucket",
    "endpoint": "endpoint",
    "region": "region",
    "access_key": "access_key",
}


def move(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Make a row of each entry; entries of several clusters that differ in the folder alone share one."""
    Cluster = apps.get_model("quotas", "Cluster")
    SiteStorage = apps.get_model("jobs", "SiteStorage")
    SiteStorageCluster = apps.get_model("jobs", "SiteStorageCluster")
    Workspace = apps.get_model("quotas", "Workspace")
    made: dict[Any, Any] = {}
    names: set[str] = set()
    for cluster in Cluster.objects.order_by("pk"):
        if "datasets" not in cluster.config:
            continue
        for address, entry in cluster.config.pop("datasets").items():
            values = {"folder": entry} if isinstance(entry, str) else dict(entry)
            folder = values.get("folder", "")
            folder = local_path(folder) or folder
            columns = {name: values[key] for key, name in COLUMNS.items() if values.get(key)}
            secret = values.get("secret_key", "")
            if secret:
                is_stored = secret.startswith(MARK)
                columns["ciphertext"] = secret.removeprefix(MARK) if is_stored else encryption.encrypt(secret)
            allowed = sorted(values.get("workspaces") or [ALL])
            key = (address, bool(folder), tuple(columns.items()), tuple(allowed))
            row = made.get(key)
            if row is None:
                name = address if address not in names else f"{address} ({cluster.slug})"
                row = made[key] = SiteStorage.objects.create(
                    name=name[:200],
                    address=address,
                    folder=folder,
                    all_clusters=False,
                    all_workspaces=ALL in allowed,
                    **columns,
                )
                names.add(row.name)
                if ALL not in allowed:
                    row.workspaces.set(Workspace.objects.filter(slug__in=allowed))
            own = "" if folder == row.folder else folder
            SiteStorageCluster.objects.create(storage=row, cluster=cluster, folder=own)
        cluster.save(update_fields=["config"])


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0043_site_storage"),
        ("quotas", "0025_vendor_ids"),
    ]

    operations = [migrations.RunPython(move, migrations.RunPython.noop)]
