"""Columns of the list of jobs: the usual ones, or those that a person chose.

The best and the last value of a metric are columns too, named `best:METRIC` and `last:METRIC`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from jobs.models import ChosenColumns
from jobs.search.job_pages import NEWEST, OLDEST, SORTS, JobListing
from jobs.training_metrics.results import TrainingResult
from quotas.models import User


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `style` are its CSS classes.

    `width` is the class of usual columns that narrow screens leave out; `url` leads to the order that its
    heading chooses, and `order` is the one it has, as ARIA says it.
    """

    name: str
    label: str
    style: str = ""
    width: str = ""
    order: str = ""
    url: str = ""


_COLUMNS: Final = (
    Column("reason", gettext_noop("Reason"), "muted", "wide-only"),
    Column("owner", gettext_noop("Owner"), "col-owner", "mid-only"),
    Column("location", gettext_noop("Location"), "col-place muted", "widest-only"),
    Column("workspace", gettext_noop("Workspace")),
    Column("cluster", gettext_noop("Cluster")),
    Column("quota", gettext_noop("Resource quota")),
    Column("gpus", gettext_noop("GPUs"), "col-gpus num", "mid-only"),
    Column("replicas", gettext_noop("Replicas"), "col-count num", "mid-only"),
    Column("priority", gettext_noop("Priority"), "num"),
    Column("tags", gettext_noop("Tags")),
    Column("description", gettext_noop("Description"), "muted"),
    Column("submitted", gettext_noop("Submitted"), "col-when nowrap"),
    Column("started", gettext_noop("Started"), "nowrap"),
    Column("ended", gettext_noop("Ended"), "nowrap"),
    Column("duration", gettext_noop("Duration"), "col-ran num", "mid-only"),
)
_NAMES: Final = frozenset(each.name for each in _COLUMNS)
USUAL: Final = ("reason", "owner", "location", "gpus", "replicas", "submitted", "duration")
ONLY_FOR_READERS: Final = frozenset({"tags", "description"})
"""Columns that are empty in rows of jobs that the person may not read; so are those of metrics."""

MOST_METRICS: Final = 10
"""Columns of metrics."""

_KINDS: Final = ("best", "last")
_LONGEST: Final = 260


def choose_columns(user: User, names: Sequence[str]) -> None:
    """Keep the columns that a person chose; the usual ones are not kept."""
    metrics = [name for name in dict.fromkeys(names) if _is_metric(name)][:MOST_METRICS]
    chosen = [*(each.name for each in _COLUMNS if each.name in names), *metrics]
    if set(chosen) in ({*USUAL}, set()):
        ChosenColumns.objects.filter(user=user).delete()
    else:
        ChosenColumns.objects.update_or_create(user=user, defaults={"names": chosen})


def columns_of(user: User, listing: JobListing, *, several_places: bool) -> list[Column]:
    """Return the columns of a person's list, each with the address of its order."""
    kept = ChosenColumns.objects.filter(user=user).first()
    names = [*kept.names] if kept else [each for each in USUAL if each != "location" or several_places]
    chosen = [each for each in _COLUMNS if each.name in names]
    chosen += [Column(name, _metric_label(name), "num") for name in names if _is_metric(name)]
    shown = [replace(each, style=f"{each.style} {'' if kept else each.width}".strip()) for each in chosen]
    return [_with_order(each, listing) for each in shown]


def column_choices(columns: Sequence[Column], metrics: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Return the name and label of every column, and whether it is shown; `metrics` may be shown too."""
    shown = {each.name for each in columns}
    offered = [f"{kind}:{metric}" for metric in metrics for kind in _KINDS]
    labels = {each.name: _(each.label) for each in _COLUMNS}
    labels |= {name: _metric_label(name) for name in [*offered, *filter(_is_metric, shown)]}
    return [(name, label, name in shown) for name, label in labels.items()]


def metrics_of(columns: Sequence[Column]) -> set[str]:
    """Return the metrics that columns show."""
    return {each.name.partition(":")[2] for each in columns if _is_metric(each.name)}


def metric_values(
    columns: Sequence[Column], results: Mapping[int, Mapping[str, TrainingResult]]
) -> dict[int, dict[str, float]]:
    """Return the values of columns by job and column, of the results of jobs by metric."""
    names = [each.name for each in columns if _is_metric(each.name)]
    return {job: dict(_list_values(names, found)) for job, found in results.items()}


def _list_values(names: Sequence[str], found: Mapping[str, TrainingResult]) -> Iterator[tuple[str, float]]:
    for name in names:
        kind, _colon, metric = name.partition(":")
        result = found.get(metric)
        if result is None:
            continue
        value = result.best if kind == "best" else result.last
        if value is not None:
            yield name, value


def _is_metric(name: str) -> bool:
    kind, _colon, metric = name.partition(":")
    return kind in _KINDS and bool(metric) and len(name) <= _LONGEST and metric.isprintable()


def _metric_label(name: str) -> str:
    kind, _colon, metric = name.partition(":")
    text = _("%(metric)s (best)") if kind == "best" else _("%(metric)s (last)")
    return text % {"metric": metric}


def name_column(listing: JobListing) -> Column:
    """Return the column of names, which is always there."""
    return _with_order(Column("name", gettext_noop("Name"), "col-name"), listing)


def _with_order(column: Column, listing: JobListing) -> Column:
    """Return the column with a heading in the reader's language, and an order if there is one."""
    labelled = column if _is_metric(column.name) else replace(column, label=_(column.label))
    if column.name not in SORTS and column.name != OLDEST:
        return labelled
    descending, ascending = f"-{column.name}", column.name
    first = descending if column.name in _LARGEST_FIRST else ascending
    then = ascending if first == descending else descending
    url = listing.address(sort=then if listing.sort == first else first)
    order = {descending: "descending", ascending: "ascending"}.get(listing.sort, "")
    return replace(labelled, url=url, order=order)


_LARGEST_FIRST: Final = frozenset({"gpus", "replicas", "priority", "started", "ended", NEWEST.lstrip("-")})
