"""Notices: what there is to tell, who has it on their page, and what is sent to where."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.channels import Channel
from jobs.models.jobs import Job
from quotas.models import Quota, Workspace


class Occasion(models.Model):
    """Something worth telling, written in the transaction that made it true; a worker finds out to whom.

    `people` are the primary keys of those it is told to whatever their rules say; without any it is about
    `job` or `quota`, and rules decide.  `key` makes it unique where it may be noticed twice.  Sentences are
    made of `kind` and `params` when they are read, in the reader's language.
    """

    kind = models.CharField(_("what"), max_length=24)
    params = models.JSONField(_("details"), default=dict)
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="+")
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, blank=True, related_name="+")
    quota = models.ForeignKey(Quota, models.SET_NULL, null=True, blank=True, related_name="+")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    people = models.JSONField(_("people"), default=list)
    key = models.CharField(max_length=100, null=True, blank=True, unique=True)
    routed = models.BooleanField(_("on its way"), default=False)
    at = models.DateTimeField(_("when"), db_default=Now())

    class Meta:
        verbose_name = _("occasion")
        verbose_name_plural = _("occasions")
        ordering = ("id",)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("id",), condition=models.Q(routed=False), name="occasions_new"),
            models.Index(fields=("at",), name="occasions_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class Notice(models.Model):
    """An occasion on one person's page in the console."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notices")
    occasion = models.ForeignKey(Occasion, models.CASCADE, related_name="+")
    read_at = models.DateTimeField(_("read"), null=True, blank=True)

    class Meta:
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("person", "occasion"), name="one_notice"),)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("person", "-id"), name="notices_of_person"),
            models.Index(fields=("person",), condition=models.Q(read_at=None), name="notices_unread"),
        ]

    def __str__(self) -> str:
        return f"{self.person} · {self.occasion}"


class Delivery(models.Model):
    """One message to one channel, through all its tries.

    Whoever sends it holds the lease.  A sender that was killed may have sent it: it is sent again under the
    same `public_id`, by which the receiver knows it.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        SENT = "sent", _("delivered")
        FAILED = "failed", _("not delivered")

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="deliveries")
    public_id = models.UUIDField(_("id"), unique=True, default=uuid.uuid4)
    test = models.BooleanField(_("a test"), default=False)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.WAITING)
    attempts = models.IntegerField(_("tries"), default=0)
    due_at = models.DateTimeField(_("next try"), db_default=Now())
    lease_token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    code = models.IntegerField(_("answer"), null=True, blank=True)
    error = models.CharField(_("what went wrong"), max_length=32, blank=True)
    detail = models.CharField(_("in its own words"), max_length=300, blank=True)
    created_at = models.DateTimeField(_("made"), db_default=Now())
    tried_at = models.DateTimeField(_("last try"), null=True, blank=True)

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        ordering = ("-id",)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("channel", "-id"), name="deliveries_of_channel"),
            models.Index(fields=("due_at",), condition=models.Q(state="waiting"), name="deliveries_waiting"),
        ]

    def __str__(self) -> str:
        return str(self.public_id)


class DeliveryItem(models.Model):
    """An occasion that a channel is told of from `due_at` on; `delivery` is the message it went into."""

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="items")
    occasion = models.ForeignKey(Occasion, models.CASCADE, related_name="+")
    delivery = models.ForeignKey(Delivery, models.CASCADE, null=True, blank=True, related_name="items")
    due_at = models.DateTimeField(_("from"), db_default=Now())
    log_lines = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("delivery item")
        verbose_name_plural = _("delivery items")
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=("channel", "occasion"), name="told_once"),)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("due_at",), condition=models.Q(delivery=None), name="items_to_pack"),
        ]

    def __str__(self) -> str:
        return f"{self.channel} · {self.occasion}"


class QuotaLevel(models.Model):
    """How much of a quota was used, in percent, when people were last told: so that it is not repeated."""

    quota = models.OneToOneField(Quota, models.CASCADE, related_name="+")
    percent = models.IntegerField(default=0)

    class Meta:
        verbose_name = _("quota level")
        verbose_name_plural = _("quota levels")

    def __str__(self) -> str:
        return f"{self.quota} {self.percent}%"
