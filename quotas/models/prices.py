"""Prices of preemptible resources."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models.audited import Audited
from quotas.models.clusters import Cluster


class SpotPrice(Audited):
    """What preemptible resources cost on a cluster: at all times, or from one hour of the day to another.

    A row with hours goes before one without; hours are of the console's own time zone, `until_hour` is not
    part of them, and they may pass midnight.  Without a `gpu_type` it is the price of one core, for replicas
    that have no GPU.  Prices are an hour's, in millionths; `market_micro` is what a discount is taken from.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="prices")
    gpu_type = models.CharField(_("GPU type"), max_length=64, blank=True)
    from_hour = models.SmallIntegerField(
        _("from hour"), null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(23)]
    )
    until_hour = models.SmallIntegerField(
        _("until hour"), null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(24)]
    )
    market_micro = models.BigIntegerField(_("market price (millionths)"), validators=[MinValueValidator(0)])
    price_micro = models.BigIntegerField(_("price now (millionths)"), validators=[MinValueValidator(0)])

    class Meta:
        verbose_name = _("price of preemptible resources")
        verbose_name_plural = _("prices of preemptible resources")
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
