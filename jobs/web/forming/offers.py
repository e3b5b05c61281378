"""What the workspace keeps and a job can be made of: images, datasets with their versions, code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from jobs.assets import sight
from jobs.models import AssetKind, CodeSource, Dataset, Image, Vpc
from jobs.web.forming.shown import Drawing, Options, ShownRow, ShownRows
from quotas.models import User

MOST: Final = 50


def images(user: User, drawing: Drawing) -> Options:
    """Official and custom images, by their ids."""
    rows: QuerySet[Image] = _choices(user, drawing, AssetKind.IMAGE)
    return [(row.key, _image(row)) for row in rows]


def _image(row: Image) -> str:
    """What an image is: its name, whose it is, and what is in it."""
    kind = _("official image") if row.official else _("custom image")
    framework = f"{row.framework} {row.version}".strip()
    python = f"Python {row.python}" if row.python else ""
    return " · ".join(part for part in (row.name, kind, framework, python, row.accelerator) if part)


def codes(user: User, drawing: Drawing) -> Options:
    """Registered code, by its ids."""
    rows: QuerySet[CodeSource] = _choices(user, drawing, AssetKind.CODE)
    return [(row.key, f"{row.name} · {row.repo}") for row in rows]


def datasets(user: User, drawing: Drawing) -> Options:
    """Datasets by their ids, and each of their versions."""
    rows: QuerySet[Dataset] = _choices(user, drawing, AssetKind.DATASET).prefetch_related("versions")
    found: list[tuple[str, str]] = []
    for row in rows:
        kind = _("public dataset") if row.workspace is None else _("custom dataset")
        found.append((row.key, f"{row.name} · {kind}"))
        several = list(row.versions.all())
        if len(several) > 1:
            found += [(f"{row.key}@v{each.number}", f"{row.name} · v{each.number}") for each in several]
    return found[:MOST]


def networks(user: User, drawing: Drawing, chosen: str) -> dict[str, Options]:
    """VPCs by the vendor's ids, and the switches and security groups of the one that is chosen."""
    rows: list[Vpc] = list(_choices(user, drawing, AssetKind.VPC))
    here = [row for row in rows if chosen in (row.vpc_id, row.key)]
    return {
        "vpc": [(row.vpc_id, " · ".join(filter(None, (row.name, row.region, row.cidr)))) for row in rows],
        "switch": [(name, row.name) for row in here for name in row.switches],
        "security-group": [(name, row.name) for row in here for name in row.security_groups],
    }


def offered(rows: ShownRows, cell: str, options: Options) -> ShownRows:
    """The rows, with values to choose from in one of their cells."""

    def with_options(row: ShownRow) -> ShownRow:
        cells = (replace(each, suggested=options) if each.field.key == cell else each for each in row.cells)
        return replace(row, cells=tuple(cells))

    blank = with_options(rows.blank) if rows.blank else None
    return replace(rows, elements=tuple(map(with_options, rows.elements)), blank=blank)


def _choices(user: User, drawing: Drawing, kind: AssetKind) -> QuerySet[Any]:
    quota = drawing.standing.quota
    return sight.choices(user, quota.workspace if quota else None, kind)[:MOST]
