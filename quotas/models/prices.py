"""Prices: specs, preemptible resources, and the history of both."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from quotas.models.audit_base import Audited
from quotas.models.clusters import Cluster
from quotas.models.workspaces import Workspace


class PriceSpan(models.Model):
    """A price while it held: from `begins` until before `ends`, or until now without one.

    Written whenever a price changes, so that what was used is charged by the price of its time.  `row` is the
    key of the Spec, or with `spot` of the SpotPrice, of which the rest is a copy.
    """

    spot = models.BooleanField(default=False)
    row = models.BigIntegerField()
    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, related_name="+")
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="+")
    name = models.CharField(_("name"), max_length=100, blank=True)
    cpu_milli = models.BigIntegerField(default=0)
    memory_mib = models.BigIntegerField(default=0)
    gpus = models.JSONField(default=dict)
    from_hour = models.SmallIntegerField(null=True)
    until_hour = models.SmallIntegerField(null=True)
    price_micro = models.BigIntegerField(_("price per hour (millionths)"))
    begins = models.DateTimeField(_("from"))
    ends = models.DateTimeField(_("until"), null=True)

    class Meta:
        verbose_name = _("price period")
        verbose_name_plural = _("price periods")
        ordering = ("-begins", "-id")
        indexes = (models.Index(fields=("spot", "row", "-begins"), name="price_spans"),)

    def __str__(self) -> str:
        return f"{self.name} {self.begins:%Y-%m-%d %H:%M}"


class Priced(Audited):
    """A row with a price, which `PriceSpan` remembers."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic(savepoint=False):
            super().save(*args, **kwargs)
            self._remember(self.as_priced())

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        with transaction.atomic(savepoint=False):
            self._remember(None)
            return super().delete(*args, **kwargs)

    def as_priced(self) -> dict[str, Any]:
        """The columns of PriceSpan that say what costs how much."""
        raise NotImplementedError

    def _remember(self, new: dict[str, Any] | None) -> None:
        now = timezone.now()
        spot = isinstance(self, SpotPrice)
        open_ = PriceSpan.objects.filter(spot=spot, row=self.pk, ends=None)
        last = open_.first()
        if last is not None and new == {key: getattr(last, key) for key in new or ()}:
            return
        open_.update(ends=now)
        if new is not None:
            PriceSpan.objects.create(spot=spot, row=self.pk, begins=now, **new)


class Spec(Priced):
    """A ready-made size (DLC's EcsSpec) and what it costs in an hour, in millionths.

    Without a cluster it is one of all clusters, without a workspace one for everybody.
    """

    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=200, blank=True)
    cluster = models.ForeignKey(
        Cluster, models.CASCADE, null=True, blank=True, related_name="specs", verbose_name=_("cluster")
    )
    workspace = models.ForeignKey(
        Workspace, models.CASCADE, null=True, blank=True, related_name="specs", verbose_name=_("workspace")
    )
    cpu_milli = models.BigIntegerField(_("CPU (milli-cores)"), validators=[MinValueValidator(1)])
    memory_mib = models.BigIntegerField(_("memory (MiB)"), validators=[MinValueValidator(1)])
    gpus = models.JSONField(
        _("GPUs by type"),
        default=dict,
        blank=True,
        help_text=_('One GPU type and its count, e.g. {"A100": 8}.'),
    )
    price_micro = models.BigIntegerField(
        _("price per hour (millionths)"), default=0, validators=[MinValueValidator(0)]
    )
    offered = models.BooleanField(
        _("offered"),
        default=True,
        help_text=_("If not selected, new jobs can't use the spec. The price is kept."),
    )

    class Meta:
        verbose_name = _("instance spec")
        verbose_name_plural = _("instance specs")
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("name",), condition=models.Q(cluster=None, workspace=None), name="one_spec"
            ),
            models.UniqueConstraint(
                fields=("name", "cluster"), condition=models.Q(workspace=None), name="one_spec_of_cluster"
            ),
            models.UniqueConstraint(
                fields=("name", "workspace"), condition=models.Q(cluster=None), name="one_spec_of_workspace"
            ),
            models.UniqueConstraint(fields=("name", "cluster", "workspace"), name="one_spec_of_both"),
        )

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """GPUs are a number for at most one type."""
        gpus = self.gpus
        fine = isinstance(gpus, dict) and all(
            isinstance(count, int) and not isinstance(count, bool) and count > 0 for count in gpus.values()
        )
        if not fine or len(gpus) > 1:
            raise ValidationError({"gpus": _('Must be one GPU type and its count, e.g. {"A100": 8}.')})

    def as_priced(self) -> dict[str, Any]:
        return {
            "cluster_id": self.cluster_id,
            "workspace_id": self.workspace_id,
            "name": self.name,
            "cpu_milli": self.cpu_milli,
            "memory_mib": self.memory_mib,
            "gpus": self.gpus,
            "price_micro": self.price_micro,
        }


class SpotPrice(Priced):
    """A price of preemptible resources on a cluster, at all times or between two hours of the day.

    A row with hours goes before one without; hours are of the console's own time zone, `until_hour` is not
    part of them, and they may pass midnight.  Without a `gpu_type` it is the price of one core, for replicas
    that have no GPU.  Prices are an hour's, in millionths; `market_micro` is what a discount is taken from.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="prices", verbose_name=_("cluster"))
    gpu_type = models.CharField(_("GPU type"), max_length=64, blank=True)
    from_hour = models.SmallIntegerField(
        _("start hour"), null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(23)]
    )
    until_hour = models.SmallIntegerField(
        _("end hour"), null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(24)]
    )
    market_micro = models.BigIntegerField(_("market price (millionths)"), validators=[MinValueValidator(0)])
    price_micro = models.BigIntegerField(_("current price (millionths)"), validators=[MinValueValidator(0)])

    class Meta:
        verbose_name = _("spot price")
        verbose_name_plural = _("spot prices")
        ordering = ("cluster", "gpu_type", "from_hour")
        constraints = (
            models.CheckConstraint(
                condition=models.Q(from_hour=None, until_hour=None)
                | models.Q(from_hour__isnull=False, until_hour__isnull=False),
                name="price_hours_both_or_none",
            ),
        )

    def __str__(self) -> str:
        return f"{self.cluster} {self.gpu_type}"

    def as_priced(self) -> dict[str, Any]:
        return {
            "cluster_id": self.cluster_id,
            "name": self.gpu_type,
            "from_hour": self.from_hour,
            "until_hour": self.until_hour,
            "price_micro": self.price_micro,
        }
