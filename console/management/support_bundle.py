"""The support bundle: a ZIP with what a stranger needs to find what is wrong, and no secrets.

Each part is made of named figures, never of whole rows; everything is masked once more before it is written
(`console.management.secret_masking`).  A part that can't be made says why, and the others are there.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Final

import structlog
from django.apps import apps
from django.conf import settings
from django.core.checks import run_checks
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from console.configuration.config import env
from console.management.secret_masking import SecretMasker, find_secrets
from console.monitoring import disk, health
from jobs.client.wheel_builder import version
from quotas.audit import MASK, safe
from quotas.models import Cluster, Node

log = structlog.get_logger(__name__)

LOG_BYTES: Final = 256 * 1024
"""So much of the end of each program's log."""


def write(file: IO[bytes]) -> None:
    """Write the bundle as a ZIP."""
    masker = SecretMasker(find_secrets())
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, make in _PARTS.items():
            bundle.writestr(f"{name}.json", _render(name, make, masker))
        for path in sorted(Path(settings.CONSOLE_HOME, "run").glob("*.log")):
            bundle.writestr(f"logs/{path.name}", masker.mask(_read_end(path)))


def _render(name: str, make: Callable[[], Any], masker: SecretMasker) -> str:
    try:
        part = make()
    except (DatabaseError, OSError) as error:
        log.warning("support_bundle.part_failed", part=name, error=str(error))
        part = {"failed": f"{type(error).__name__}: {error}"}
    masked = masker.mask_leaves(json.loads(json.dumps(part, default=str)))
    return json.dumps(masked, indent=2, ensure_ascii=False) + "\n"


def _read_end(path: Path) -> str:
    """Return the last whole lines of a log."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_BYTES))
        data = file.read(LOG_BYTES)
    if size > LOG_BYTES:
        data = data.partition(b"\n")[2]
    return data.decode(errors="replace")


def describe_versions() -> dict[str, Any]:
    """Return the release, what it runs on, and the installed packages."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT sqlite_version()" if connection.vendor == "sqlite" else "SHOW server_version")
        server = cursor.fetchone()[0]
    packages = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    return {
        "made_at": timezone.now().isoformat(timespec="seconds"),
        "version": version(),
        "installation": settings.CONSOLE_INSTALLATION,
        "python": sys.version,
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "database": f"{connection.vendor} {server}",
        "packages": dict(sorted(packages.items())),
    }


def describe_settings() -> dict[str, str]:
    """Return every setting that differs from its default; of a secret only that it is set."""
    return dict(_settings())


def _settings() -> Iterator[tuple[str, str]]:
    for name, variable in env.variables.items():
        is_secret = variable.kind.startswith("secret")
        given = os.environ.get(name, "") or (os.environ.get(f"{name}_FILE", "") if is_secret else "")
        if not given:
            continue
        if is_secret:
            yield name, MASK
        elif variable.kind == "JSON object":
            yield name, json.dumps(_masked_json(given), ensure_ascii=False)
        else:
            yield name, given


def _masked_json(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    return safe(value) if isinstance(value, dict) else {}


def describe_checks() -> list[dict[str, str]]:
    """Return what the system checks find."""
    return [{"id": each.id or "", "level": str(each.level), "message": each.msg} for each in run_checks()]


def describe_migrations() -> dict[str, Any]:
    """Return the newest applied migration of each application, and those that are missing."""
    loader = MigrationLoader(connection)
    applied = sorted(loader.applied_migrations)
    missing = sorted(key for key in loader.graph.nodes if key not in loader.applied_migrations)
    return {"applied": dict(applied), "missing": [".".join(key) for key in missing]}


def count_rows() -> dict[str, int]:
    """Return the number of rows of each table."""
    return {
        model._meta.label: model._base_manager.count()  # noqa: SLF001 documented, despite their names
        for model in apps.get_models()
        if not model._meta.proxy  # noqa: SLF001
    }


def describe_clusters() -> list[dict[str, Any]]:
    """Return the state of each cluster and of its nodes; of its settings only their names."""
    nodes: dict[int, list[dict[str, Any]]] = {}
    for node in Node.objects.order_by("name").defer("gpu_list"):
        state = {"name": node.name, "state": node.state, "schedulable": node.schedulable, "why": node.why_not}
        nodes.setdefault(node.cluster_id, []).append(state)
    return [
        {
            "slug": row.slug,
            "backend": row.backend,
            "enabled": row.enabled,
            "answered_at": row.answered_at,
            "trouble": row.trouble,
            "frozen": row.frozen_why if row.frozen_at else "",
            "settings": sorted(row.config),
            "nodes": nodes.get(row.pk, []),
        }
        for row in Cluster.objects.order_by("slug")
    ]


def describe_disk() -> dict[str, int]:
    """Return the free space on the console's disk and its floor, in MiB."""
    space = disk.measure()
    return {"free_mib": space.free_mib, "floor_mib": space.floor_mib}


_PARTS: Final[Mapping[str, Callable[[], Any]]] = {
    "versions": describe_versions,
    "settings": describe_settings,
    "checks": describe_checks,
    "health": health.parts,
    "disk": describe_disk,
    "migrations": describe_migrations,
    "rows": count_rows,
    "clusters": describe_clusters,
}
