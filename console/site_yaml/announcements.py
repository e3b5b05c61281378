"""Banners and maintenance windows in site.yaml, found by their text, their time and whom they are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from console.site_yaml.people import Writer
from console.site_yaml.shape import AnnouncementShape, BannerShape, MaintenanceShape, Site
from jobs.admin import admin_actions
from jobs.dialects.spans import escape
from quotas.models import Banner, Cluster, Maintenance, User, Workspace


def apply(site: Site, write: Writer) -> None:
    """Make them as the file says; owners of jobs are notified of a new window, as by the form."""
    _banners(site, write)
    _windows(site, write)


def _banners(site: Site, write: Writer) -> None:
    spaces = {row.slug: row for row in Workspace.objects.all()}
    names = {shape.person for shape in site.banners if shape.person}
    people = {row.username: row for row in User.objects.filter(username__in=names)}
    known = _by_key(Banner.objects.all(), "workspace_id", "person_id")
    for number, shape in enumerate(site.banners):
        at = f"/banners/{number}"
        if shape.workspace and shape.workspace not in spaces:
            write.fault(f"{at}/workspace", _("Workspace not found."))
            continue
        if shape.person and shape.person not in people:
            write.fault(f"{at}/person", _("User not found."))
            continue
        workspace = spaces[shape.workspace] if shape.workspace else None
        person = people[shape.person] if shape.person else None
        key = (shape.text, shape.from_at, workspace and workspace.pk, person and person.pk)
        row = _take(known, key) or Banner(
            text=shape.text, from_at=shape.from_at, workspace=workspace, person=person
        )
        write.put(row, at, _values(shape, {"level": shape.level}))
    _prune(write, known, "banners", site)


def _windows(site: Site, write: Writer) -> None:
    clusters = {row.slug: row for row in Cluster.objects.all()}
    known = _by_key(Maintenance.objects.all(), "cluster_id")
    for number, shape in enumerate(site.maintenance):
        at = f"/maintenance/{number}"
        if shape.cluster and shape.cluster not in clusters:
            write.fault(f"{at}/cluster", _("Cluster not found."))
            continue
        cluster = clusters[shape.cluster] if shape.cluster else None
        key = (shape.text, shape.from_at, cluster and cluster.pk)
        row = _take(known, key) or Maintenance(text=shape.text, from_at=shape.from_at, cluster=cluster)
        own = {"keeps_free": shape.keeps_free, "lead_hours": shape.lead_hours}
        if write.put(row, at, _values(shape, own)) and row.pk is not None:
            admin_actions.announce(row)
    _prune(write, known, "maintenance", site)


def _values(shape: BannerShape | MaintenanceShape, own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "text_zh_hans": shape.text_zh_hans,
        "text_ja": shape.text_ja,
        "until_at": shape.until_at,
        **own,
    }


def _by_key(rows: Iterable[Any], *names: str) -> dict[tuple[Any, ...], list[Any]]:
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        key = (row.text, row.from_at, *(getattr(row, name) for name in names))
        found.setdefault(key, []).append(row)
    return found


def _take(known: Mapping[tuple[Any, ...], list[Any]], key: tuple[Any, ...]) -> Any:
    rows = known.get(key)
    return rows.pop(0) if rows else None


def _prune(write: Writer, known: Mapping[Any, list[Any]], part: str, site: Site) -> None:
    if write.prune and part in site.model_fields_set:
        for row in (row for rows in known.values() for row in rows):
            write.remove(row, f"/{part}/{escape(row.text)}")


def export_banners() -> list[dict[str, Any]]:
    """Return banners as the file has them."""
    rows = Banner.objects.select_related("workspace", "person").order_by("pk")
    return [
        _lean(
            BannerShape,
            row,
            {
                "level": str(row.level),
                "workspace": row.workspace.slug if row.workspace else None,
                "person": row.person.username if row.person else None,
            },
        )
        for row in rows
    ]


def export_maintenance() -> list[dict[str, Any]]:
    """Return maintenance windows, past ones too, as the file has them."""
    rows = Maintenance.objects.select_related("cluster").order_by("from_at", "pk")
    return [
        _lean(MaintenanceShape, row, {"cluster": row.cluster.slug if row.cluster else None}) for row in rows
    ]


def _lean(shape: type[AnnouncementShape], row: Any, own: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, each in shape.model_fields.items():
        value = own[name] if name in own else getattr(row, name)
        if isinstance(value, datetime):
            value = value.isoformat()
        if each.is_required() or value != each.default:
            found[name] = value
    return found
