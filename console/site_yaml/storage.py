"""Storage mappings in site.yaml.  Secret keys are entered in the admin, never in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from console.site_yaml.shape import StorageShape
from jobs.assets import site_storage
from jobs.dialects.spans import escape
from jobs.models import SiteStorage, SiteStorageCluster
from quotas.models import Cluster, Workspace

_LINKED: Final = {"workspaces", "clusters", "folders"}
"""Keys of the file that are no columns."""


class Applying:
    """Makes storage mappings as the file says, by the `put`, the `fault` and the `note` of the whole."""

    def __init__(
        self,
        shapes: Mapping[str, StorageShape],
        put: Callable[[Any, str, Mapping[str, Any]], bool],
        fault: Callable[[str, str], None],
        note: Callable[[str, Mapping[str, tuple[Any, Any]]], None],
    ) -> None:
        self._shapes, self._put, self._fault, self._note = shapes, put, fault, note
        self._workspaces = {row.slug: row for row in Workspace.objects.all()}
        self._clusters = {row.slug: row for row in Cluster.objects.all()}

    def run(self) -> None:
        """Make each of them, and refuse two of one address on a cluster."""
        known = {row.name: row for row in SiteStorage.objects.all()}
        made = [
            (self._one(known.get(name) or SiteStorage(name=name), shape, pointer), pointer)
            for name, shape in self._shapes.items()
            for pointer in (f"/storage/{escape(name)}",)
        ]
        for row, pointer in made:
            if row is not None:
                self._check_conflict(row, pointer)

    def left_out(self) -> Iterator[tuple[SiteStorage, str]]:
        """Yield mappings that the file does not name, with their pointers."""
        for row in SiteStorage.objects.exclude(name__in=self._shapes):
            yield row, f"/storage/{escape(row.name)}"

    def _one(self, row: SiteStorage, shape: StorageShape, at: str) -> SiteStorage | None:
        if not self._check_names(shape, at):
            return None
        before = (row.describe_target(), row.access_key)
        values: dict[str, Any] = shape.model_dump(exclude=_LINKED)
        values["address"] = shape.address or row.name
        values["all_workspaces"] = shape.workspaces is None
        values["all_clusters"] = shape.clusters is None
        target = {name: values[name] for name in row.describe_target()}
        if before != (target, shape.access_key):
            row.encrypt("")
        self._put(row, at, values)
        if not row.pk:  # a problem was reported
            return None
        self._link_workspaces(row, shape, at)
        self._link_clusters(row, shape, at)
        return row

    def _check_names(self, shape: StorageShape, at: str) -> bool:
        strangers = [
            *(
                (f"{at}/workspaces", _("Workspace not found."))
                for each in shape.workspaces or ()
                if each not in self._workspaces
            ),
            *(
                (f"{at}/clusters", _("Cluster not found."))
                for each in shape.clusters or ()
                if each not in self._clusters
            ),
            *(
                (f"{at}/folders/{escape(each)}", _("Cluster not found."))
                for each in shape.folders
                if each not in self._clusters or each not in (shape.clusters or self._clusters)
            ),
        ]
        for pointer, text in strangers:
            self._fault(pointer, text)
        return not strangers

    def _link_workspaces(self, row: SiteStorage, shape: StorageShape, at: str) -> None:
        before, after = (
            sorted(each.slug for each in row.workspaces.all()),
            sorted(set(shape.workspaces or ())),
        )
        if before != after:
            row.workspaces.set([self._workspaces[each] for each in after])
            self._note(f"{at}/workspaces", {"workspaces": (before, after)})

    def _link_clusters(self, row: SiteStorage, shape: StorageShape, at: str) -> None:
        rows = {each.cluster.slug: each for each in row.clusters.select_related("cluster")}
        after = {slug: shape.folders.get(slug, "") for slug in (shape.clusters or shape.folders)}
        if _folders(row) == after:
            return
        for slug in rows.keys() - after.keys():
            rows[slug].delete()
            self._note(f"{at}/clusters", {slug: (rows[slug].folder or row.folder, None)})
        for slug, folder in after.items():
            own = rows.get(slug) or SiteStorageCluster(storage=row, cluster=self._clusters[slug])
            self._put(own, f"{at}/folders/{escape(slug)}", {"folder": folder})

    def _check_conflict(self, row: SiteStorage, at: str) -> None:
        named = [each.cluster_id for each in row.clusters.all()]
        other = site_storage.find_conflict(row, named)
        if other is not None:
            text = _("“%(name)s” maps this address on the same cluster already.")
            self._fault(f"{at}/address", text % {"name": other.name})


def _folders(row: SiteStorage) -> dict[str, str]:
    """Return the clusters that say something, with their own folders."""
    rows = row.clusters.select_related("cluster").order_by("cluster__slug")
    return {each.cluster.slug: each.folder for each in rows if each.folder or not row.all_clusters}


def export() -> dict[str, dict[str, Any]]:
    """Return all of them as the file has them."""
    fields = StorageShape.model_fields
    document = {}
    for row in SiteStorage.objects.prefetch_related("workspaces").order_by("name"):
        folders = _folders(row)
        values = {name: getattr(row, name) for name in fields.keys() - _LINKED}
        values["address"] = "" if row.address == row.name else row.address
        values["workspaces"] = (
            None if row.all_workspaces else sorted(each.slug for each in row.workspaces.all())
        )
        values["clusters"] = None if row.all_clusters else list(folders)
        values["folders"] = {slug: folder for slug, folder in folders.items() if folder}
        document[row.name] = {
            name: values[name]
            for name, field in fields.items()
            if values[name] != field.get_default(call_default_factory=True)
        }
    return document
