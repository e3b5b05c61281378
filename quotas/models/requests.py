"""Requests for resources, and reservations of them.

`holder` is opaque here: this application never learns what a job is.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from quotas.models.clusters import Cluster
from quotas.models.expressions import Literal
from quotas.models.limits import Quota


class RequestQuerySet(models.QuerySet["Request"]):
    """Requests by their state."""

    def filter_waiting(self) -> Self:
        """Return those that wait, by the condition of their index literally."""
        return self.filter(state=Literal(Request.State.WAITING))


class Request(models.Model):
    """A request for all of `parts` at once (a gang).

    `parts` is a list of [count, amounts]: equal replicas are stored together so that a request of 2,000
    replicas stays one short row.  Where not every node will do, {"only": names, "never": names} follows.
    `idle` says whether it may run on what others leave idle (accept), only there (force), or not ("").
    `bids` has one entry a part: {} (any price), {"percent": of the market price} or {"micro": millionths an
    hour}.  `others` says that it stands in line only once others have ended.  `since` is when it began to
    wait, less what earlier attempts waited.  The ranks are an order that admins set; 0 is none, the highest
    is first.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        ADMITTED = "admitted", _("Admitted")
        CLOSED = "closed", _("Closed")

    holder = models.CharField(_("holder"), max_length=64, unique=True)
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="requests", verbose_name=_("cluster"))
    quota = models.ForeignKey(
        Quota, models.PROTECT, related_name="requests", verbose_name=_("resource quota")
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", verbose_name=_("owner")
    )
    parts = models.JSONField(_("parts"), default=list)
    priority = models.SmallIntegerField(_("priority"), default=1)
    declared_s = models.IntegerField(_("declared time (s)"), null=True, blank=True)
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.WAITING)
    idle = models.CharField(_("idle resources"), max_length=8, blank=True)
    bids = models.JSONField(_("bids"), default=list, blank=True)
    held = models.BooleanField(_("held"), default=False)
    cluster_rank = models.IntegerField(_("rank on the cluster"), default=0, db_default=0)
    workspace_rank = models.IntegerField(_("rank in the workspace"), default=0, db_default=0)
    others = models.BooleanField(_("waiting for dependencies"), default=False)
    not_before = models.DateTimeField(_("earliest start"), null=True, blank=True)
    since = models.DateTimeField(_("waiting since"), default=timezone.now)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = RequestQuerySet.as_manager()

    class Meta:
        verbose_name = _("request")
        verbose_name_plural = _("requests")
        indexes = (
            models.Index(
                fields=("cluster", "-priority", "id"),
                condition=models.Q(state="waiting"),
                name="requests_waiting",
            ),
            models.Index(
                fields=("cluster", "state"),
                condition=models.Q(state="waiting"),
                name="requests_in_line",
            ),
        )

    def __str__(self) -> str:
        return self.holder


class Reservation(models.Model):
    """Resources held from admission until the end was observed.

    `placement` is a list of [node name, amounts]; `amounts` is its sum, stored so that usage is one query;
    `devices` are the indexes of its GPUs by node, where they are known.  What is `borrowed` counts against no
    limit and is taken back when its owners need it; what was requested back counts as coming.  `counts` are
    the replicas of each part of an elastic request that has fewer than it wants, else None.  Only
    `quotas.ledger` writes here.
    """

    request = models.OneToOneField(
        Request, models.PROTECT, related_name="reservation", verbose_name=_("request")
    )
    cluster = models.ForeignKey(
        Cluster, models.PROTECT, related_name="reservations", verbose_name=_("cluster")
    )
    quota = models.ForeignKey(
        Quota, models.PROTECT, related_name="reservations", verbose_name=_("resource quota")
    )
    amounts = models.JSONField(_("amounts"), default=dict)
    placement = models.JSONField(_("placement"), default=list)
    devices = models.JSONField(_("GPU indexes by node"), default=dict, blank=True)
    counts = models.JSONField(_("replicas"), null=True, blank=True, editable=False)
    active = models.BooleanField(_("active"), default=True)
    borrowed = models.BooleanField(_("borrowed"), default=False)
    gpus = models.IntegerField(_("GPUs"), default=0)
    created_at = models.DateTimeField(_("since"), auto_now_add=True)
    started_at = models.DateTimeField(_("running since"), null=True, blank=True)
    asked_back_at = models.DateTimeField(_("return requested"), null=True, blank=True)
    released_at = models.DateTimeField(_("released"), null=True, blank=True)

    class Meta:
        verbose_name = _("reservation")
        verbose_name_plural = _("reservations")
        indexes = (
            models.Index(fields=("cluster",), condition=models.Q(active=True), name="reservations_active"),
            models.Index(fields=("quota", "released_at"), name="reservations_released"),
            models.Index(fields=("released_at",), name="reservations_by_release"),
        )

    def __str__(self) -> str:
        return str(self.request)
