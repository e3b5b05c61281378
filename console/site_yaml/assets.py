"""Assets in site.yaml, by their ids.  Passwords have no place in a file: they are entered in the console."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from console.site_yaml.shape import AssetShape, DatasetShape, Site
from jobs.assets import changes
from jobs.assets.addresses import Wrong, check_git, check_place
from jobs.dialects.spans import escape
from jobs.messages.assets import asset_message
from jobs.models import ASSETS, Asset, AssetKind, CodeSource, Dataset, DatasetVersion, Vpc
from quotas.models import Workspace

_PLACED: Final = {"workspace", "vpc", "versions", "default"}
"""Keys of the file that are no columns."""


def section(site: Site, kind: AssetKind) -> Mapping[str, AssetShape]:
    """Return the section of a kind of asset."""
    found: Mapping[str, AssetShape] = getattr(site.assets, kind)
    return found


class Applying:
    """Makes assets as the file says, by the `put` and the `fault` of the whole."""

    def __init__(
        self,
        site: Site,
        put: Callable[[Any, str, Mapping[str, Any]], bool],
        fault: Callable[[str, str], None],
    ) -> None:
        self._site, self._put, self._fault = site, put, fault
        self._spaces = {row.slug: row.pk for row in Workspace.objects.all()}

    def run(self) -> None:
        """VPCs first: datasets name them."""
        for kind in (AssetKind.VPC, AssetKind.IMAGE, AssetKind.DATASET, AssetKind.CODE, AssetKind.ROLE):
            known = {row.key: row for row in ASSETS[kind]._default_manager.all()}  # noqa: SLF001 of any kind
            for key, shape in section(self._site, kind).items():
                self._one(known.get(key) or ASSETS[kind](key=key), shape, f"/assets/{kind}/{escape(key)}")

    def left_out(self) -> Iterator[tuple[Asset, str]]:
        """Yield assets that the sections do not name, with their pointers."""
        for kind, model in ASSETS.items():
            if kind in self._site.assets.model_fields_set:
                named = section(self._site, kind)
                for row in model._default_manager.exclude(key__in=named):  # noqa: SLF001 likewise
                    yield row, f"/assets/{kind}/{escape(row.key)}"

    def _one(self, row: Asset, shape: AssetShape, at: str) -> None:
        values = {name: value for name, value in shape.model_dump().items() if name not in _PLACED}
        if shape.workspace is not None and shape.workspace not in self._spaces:
            self._fault(f"{at}/workspace", _("Workspace not found."))
            return
        values["workspace_id"] = self._spaces[shape.workspace] if shape.workspace else None
        if isinstance(shape, DatasetShape):
            vpc = Vpc.objects.filter(key=shape.vpc).first() if shape.vpc else None
            values["vpc_id"] = vpc.pk if vpc else None
        try:
            self._check(row, shape)
        except Wrong as wrong:
            self._fault(at, asset_message(wrong.code, wrong.detail))
            return
        self._put(row, at, values)
        if isinstance(shape, DatasetShape) and isinstance(row, Dataset) and row.pk is not None:
            self._versions(row, shape, at)

    def _check(self, row: Asset, shape: AssetShape) -> None:
        if isinstance(row, CodeSource):
            check_git(str(shape.model_dump()["repo"]))
        if isinstance(shape, DatasetShape):
            for uri in shape.versions:
                check_place(uri, shape.source)

    def _versions(self, dataset: Dataset, shape: DatasetShape, at: str) -> None:
        known = {row.number: row for row in dataset.versions.all()}
        for number, uri in enumerate(shape.versions, 1):
            row = known.get(number) or DatasetVersion(dataset=dataset, number=number)
            self._put(row, f"{at}/versions/{number - 1}", {"uri": uri})
            known[number] = row
        wanted = shape.default or len(shape.versions)
        chosen = known.get(wanted)
        if chosen is not None and not chosen.is_default:
            changes.choose_version(chosen)


def export() -> dict[str, dict[str, dict[str, Any]]]:
    """All of them, as the file has them, retired ones left out."""
    document: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, model in ASSETS.items():
        rows = model._default_manager.filter(retired_at=None).select_related("workspace")  # noqa: SLF001
        found = {
            row.key: _lean(_values(row, kind), kind)
            for row in rows.order_by("key")
            if not (isinstance(row, Dataset) and row.source == Dataset.Source.UPLOAD)  # stored here alone
        }
        if found:
            document[str(kind)] = found
    return document


def _values(row: Asset, kind: AssetKind) -> dict[str, Any]:
    names = _shape(kind).model_fields.keys() - _PLACED
    values = {name: getattr(row, name) for name in names}
    values["workspace"] = row.workspace.slug if row.workspace else None
    if isinstance(row, Dataset):
        versions = list(row.versions.order_by("number"))
        values["vpc"] = row.vpc.key if row.vpc else None
        values["versions"] = [each.uri for each in versions]
        last = versions[-1].number if versions else None
        default = next((each.number for each in versions if each.is_default), None)
        values["default"] = None if default == last else default
    return values


def _shape(kind: AssetKind) -> type[AssetShape]:
    annotation = type(Site(version=1).assets).model_fields[kind].annotation
    found: type[AssetShape] = annotation.__args__[1]  # type: ignore[union-attr]
    return found


def _lean(values: dict[str, Any], kind: AssetKind) -> dict[str, Any]:
    """Without what a file need not say, in the order of the shape."""
    fields = _shape(kind).model_fields
    lean = {}
    for name, field in fields.items():
        value = values[name]
        if field.is_required() or value != field.get_default(call_default_factory=True):
            lean[name] = str(value) if isinstance(value, str) else value
    return lean
