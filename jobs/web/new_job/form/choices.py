"""Choices of the form: the person's quotas, and the workspace's images, datasets, code and networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from jobs import submission
from jobs.assets import visibility
from jobs.messages.amounts import memory, money, quantity
from jobs.models import AssetKind, CodeSource, Dataset, Image, Vpc
from jobs.web.new_job.form.fields import FormBuilder, FormRow, FormRows, Options
from jobs.web.new_job.form.hints import TargetState
from quotas.amounts import Amounts
from quotas.ledger import reports
from quotas.ledger.reports import QuotaUse
from quotas.models import Node, Quota, Spec, User

MOST: Final = 50


def list_images(user: User, builder: FormBuilder) -> Options:
    """Official and custom images, by their ids."""
    rows: QuerySet[Image] = _choices(user, builder, AssetKind.IMAGE)
    return [(row.key, _image(row)) for row in rows]


def _image(row: Image) -> str:
    """Return an image's name, origin and software as a label."""
    kind = _("official image") if row.official else _("custom image")
    framework = f"{row.framework} {row.version}".strip()
    python = f"Python {row.python}" if row.python else ""
    return " · ".join(part for part in (row.name, kind, framework, python, row.accelerator) if part)


def list_code_sources(user: User, builder: FormBuilder) -> Options:
    """Registered code, by its ids."""
    rows: QuerySet[CodeSource] = _choices(user, builder, AssetKind.CODE)
    return [(row.key, f"{row.name} · {row.repo}") for row in rows]


def list_datasets(user: User, builder: FormBuilder) -> Options:
    """Datasets by their ids, and each of their versions."""
    rows: QuerySet[Dataset] = _choices(user, builder, AssetKind.DATASET).prefetch_related("versions")
    found: list[tuple[str, str]] = []
    for row in rows:
        kind = _("public dataset") if row.workspace is None else _("custom dataset")
        found.append((row.key, f"{row.name} · {kind}"))
        several = list(row.versions.all())
        if len(several) > 1:
            found += [(f"{row.key}@v{each.number}", f"{row.name} · v{each.number}") for each in several]
    return found[:MOST]


def list_networks(user: User, builder: FormBuilder, chosen: str) -> dict[str, Options]:
    """VPCs by the vendor's ids, and the switches and security groups of the one that is chosen."""
    rows: list[Vpc] = list(_choices(user, builder, AssetKind.VPC))
    matching = [row for row in rows if chosen in (row.vpc_id, row.key)]
    return {
        "vpc": [(row.vpc_id, " · ".join(filter(None, (row.name, row.region, row.cidr)))) for row in rows],
        "switch": [(name, row.name) for row in matching for name in row.switches],
        "security-group": [(name, row.name) for row in matching for name in row.security_groups],
    }


def offer_values(rows: FormRows, cell: str, options: Options) -> FormRows:
    """The rows, with values to choose from in one of their cells."""

    def with_options(row: FormRow) -> FormRow:
        cells = (replace(each, suggested=options) if each.field.key == cell else each for each in row.cells)
        return replace(row, cells=tuple(cells))

    blank = with_options(rows.blank) if rows.blank else None
    return replace(rows, elements=tuple(map(with_options, rows.elements)), blank=blank)


def _choices(user: User, builder: FormBuilder, kind: AssetKind) -> QuerySet[Any]:
    quota = builder.target_state.quota
    return visibility.choices(user, quota.workspace if quota else None, kind)[:MOST]


MOST_TARGETS: Final = 30
MOST_SPECS: Final = 100
MOST_NODES: Final = 20


def list_targets(user: User, target_state: TargetState) -> dict[str, Any]:
    """Return the quotas that are open to the person, what is free there, and hints about the chosen one."""
    quotas = list(submission.quotas_open_to(user)[:MOST_TARGETS])
    # What is free in the only one stands in the panel; the list is shown where there is something to choose.
    uses = {use.quota.pk: use for use in reports.quotas_of(user)} if len(quotas) > 1 else {}
    chosen = target_state.quota
    rows = [
        {
            "address": submission.target_address(quota),
            "quota": quota,
            "free": describe_free(uses.get(quota.pk)),
            "chosen": chosen is not None and quota.pk == chosen.pk,
        }
        for quota in quotas
    ]
    return {"chosen": chosen, "rows": rows, "hints": target_state.hints_of("kind", "source")}


def describe_free(use: QuotaUse | None) -> str:
    """Return what is free of a quota's limits, in words."""
    bars = [(bar.kind, bar.limit - bar.held) for bar in (use.bars if use else ()) if bar.limit is not None]
    return ", ".join(quantity(kind, max(0, left)) for kind, left in bars) or _("no limit")


def list_specs(quota: Quota | None) -> Options:
    """Return the offered sizes, each with its amounts and its price."""
    if quota is None:
        return ()
    matching = Q(cluster=None) | Q(cluster=quota.cluster_id)
    in_workspace = Q(workspace=None) | Q(workspace=quota.workspace_id)
    rows = Spec.objects.filter(matching, in_workspace, offered=True).order_by("price_micro", "name")[
        :MOST_SPECS
    ]
    return tuple((row.name, _spec(row)) for row in rows)


def _spec(spec: Spec) -> str:
    holds = Amounts(spec.cpu_milli, spec.memory_mib, dict(spec.gpus))
    gpus = [quantity(kind, count) for kind, count in holds.gpus.items()]
    words = ", ".join((quantity("cpu", holds.cpu_milli), memory(holds.memory_mib), *gpus))
    return _("%(holds)s: %(price)s per hour") % {"holds": words, "price": money(spec.price_micro)}


def list_nodes(quota: Quota | None) -> Sequence[Node]:
    """The nodes there, by name; of many the first."""
    return list(Node.objects.filter(cluster=quota.cluster_id).order_by("name")[:MOST_NODES]) if quota else []
