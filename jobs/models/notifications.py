"""Notifications: events to notify of, people's pages, channels with their rules, and deliveries."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from quotas import encryption
from quotas.models import Quota, Workspace

HOUR = (MinValueValidator(0), MaxValueValidator(23))


class Channel(models.Model):
    """One way to reach one person, or a workspace; exactly one of `person` and `workspace` is set.

    Where it leads (`ciphertext`, a JSON object) is never shown again: `shown` is what pages say instead.
    Everybody has one of kind PAGE, made when it is first needed.  `next_at` keeps messages apart;
    `failures` counts those that could not be delivered in a row.
    """

    class Kind(models.TextChoices):
        PAGE = "page", _("This console")
        EMAIL = "email", _("E-mail")
        WEBHOOK = "webhook", _("Webhook")
        SLACK = "slack", _("Slack")
        DINGTALK = "dingtalk", _("DingTalk")
        FEISHU = "feishu", _("Feishu or Lark")
        WECOM = "wecom", _("WeCom")
        MATTERMOST = "mattermost", _("Mattermost")
        DISCORD = "discord", _("Discord")
        TEAMS = "teams", _("Microsoft Teams")
        TELEGRAM = "telegram", _("Telegram")

    class Off(models.TextChoices):
        """Reason that a channel is off."""

        PERSON = "person", _("turned off")
        UNSUBSCRIBED = "unsubscribed", _("unsubscribed via message link")
        FAILED = "failed", _("turned off after failed deliveries")

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="channels"
    )
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, blank=True, related_name="channels")
    kind = models.CharField(_("kind"), max_length=16, choices=Kind)
    title = models.CharField(_("name"), max_length=100, blank=True)
    ciphertext = models.TextField(editable=False, blank=True)
    shown = models.CharField(_("destination"), max_length=200, blank=True)
    language = models.CharField(_("language"), max_length=16, blank=True)
    verified_at = models.DateTimeField(_("confirmed"), null=True, blank=True)
    off = models.CharField(_("off"), max_length=16, choices=Off, blank=True)
    quiet_from = models.SmallIntegerField(_("quiet hours start"), null=True, blank=True, validators=HOUR)
    quiet_until = models.SmallIntegerField(_("quiet hours end"), null=True, blank=True, validators=HOUR)
    failures = models.IntegerField(_("consecutive failures"), default=0)
    next_at = models.DateTimeField(_("next message after"), null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(_("added"), db_default=Now())

    class Meta:
        verbose_name = _("channel")
        verbose_name_plural = _("channels")
        ordering = ("id",)
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(person__isnull=False, workspace=None)
                | models.Q(person=None, workspace__isnull=False),
                name="channel_of_one",
            ),
            models.UniqueConstraint(
                fields=("person",), condition=models.Q(kind="page"), name="one_page_of_a_person"
            ),
        ]

    def __str__(self) -> str:
        return self.title or f"{self.get_kind_display()} {self.shown}".strip()

    def encrypt(self, address: Mapping[str, str]) -> None:
        """Encrypt the address into this row (not saved)."""
        self.ciphertext = encryption.encrypt(json.dumps(dict(address)))

    def address(self) -> dict[str, str]:
        """Return the address, for sending only."""
        found: dict[str, str] = json.loads(encryption.decrypt(self.ciphertext))
        return found

    @property
    def is_ready(self) -> bool:
        """Tell whether anything may be sent there."""
        return not self.off and self.verified_at is not None


class NotificationRule(models.Model):
    """The kinds of notifications of a channel, the jobs that they are about, and their delay.

    `events` holds values of `jobs.models.kinds.Kind`.  A person's rule about a workspace tells what its
    members may see; `log_lines` adds the end of a failed job's log where the person may read it.
    """

    class Scope(models.TextChoices):
        MINE = "mine", _("My own jobs")
        WORKSPACE = "workspace", _("All jobs of a workspace")
        QUOTA = "quota", _("All jobs in a quota")

    class Pace(models.TextChoices):
        NOW = "now", _("Immediately")
        HOURLY = "hourly", _("Hourly")
        DAILY = "daily", _("Daily")

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="rules")
    events = models.JSONField(_("events"), default=list)
    scope = models.CharField(_("scope"), max_length=16, choices=Scope, default=Scope.MINE)
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, blank=True, related_name="+")
    quota = models.ForeignKey(Quota, models.CASCADE, null=True, blank=True, related_name="+")
    pace = models.CharField(_("frequency"), max_length=8, choices=Pace, default=Pace.NOW)
    hour = models.SmallIntegerField(_("hour of day"), default=8, validators=HOUR)
    wait_minutes = models.IntegerField(_("notify after (minutes)"), default=60)
    quota_percent = models.IntegerField(_("quota threshold (percent)"), default=90)
    log_lines = models.BooleanField(_("with last log lines"), default=False)

    class Meta:
        verbose_name = _("notification rule")
        verbose_name_plural = _("notification rules")
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.channel} · {self.get_scope_display()}"


class NotificationEvent(models.Model):
    """An event to notify people of, stored in the transaction that makes it true; a worker routes it.

    `people` are the primary keys of those it is told to whatever their rules say; without any it is about
    `job` or `quota`, and rules decide.  `key` makes it unique where it may be noticed twice.  Sentences are
    made of `kind` and `params` when they are read, in the reader's language.
    """

    kind = models.CharField(_("event"), max_length=24)
    params = models.JSONField(_("details"), default=dict)
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="+")
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, blank=True, related_name="+")
    quota = models.ForeignKey(Quota, models.SET_NULL, null=True, blank=True, related_name="+")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    people = models.JSONField(_("people"), default=list)
    key = models.CharField(max_length=100, null=True, blank=True, unique=True)
    routed = models.BooleanField(_("routed"), default=False)
    at = models.DateTimeField(_("time"), db_default=Now())

    class Meta:
        verbose_name = _("notification event")
        verbose_name_plural = _("notification events")
        ordering = ("id",)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("id",), condition=models.Q(routed=False), name="occasions_new"),
            models.Index(fields=("at",), name="occasions_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class Notification(models.Model):
    """A notification on one person's page in the console."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notifications")
    event = models.ForeignKey(NotificationEvent, models.CASCADE, related_name="+")
    read_at = models.DateTimeField(_("read"), null=True, blank=True)

    class Meta:
        verbose_name = _("notification")
        verbose_name_plural = _("notifications")
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("person", "event"), name="one_notice"),)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("person", "-id"), name="notices_of_person"),
            models.Index(fields=("person",), condition=models.Q(read_at=None), name="notices_unread"),
        ]

    def __str__(self) -> str:
        return f"{self.person} · {self.event}"


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
    public_id = models.UUIDField(_("ID"), unique=True, default=uuid.uuid4)
    test = models.BooleanField(_("test message"), default=False)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.WAITING)
    attempts = models.IntegerField(_("delivery attempts"), default=0)
    due_at = models.DateTimeField(_("next attempt"), db_default=Now())
    lease_token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    code = models.IntegerField(_("response code"), null=True, blank=True)
    error = models.CharField(_("error"), max_length=32, blank=True)
    detail = models.CharField(_("error details"), max_length=300, blank=True)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    tried_at = models.DateTimeField(_("last attempt"), null=True, blank=True)

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        ordering = ("-id",)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("channel", "-id"), name="deliveries_of_channel"),
            models.Index(fields=("due_at",), condition=models.Q(state="waiting"), name="deliveries_waiting"),
            models.Index(fields=("created_at",), name="deliveries_by_age"),
        ]

    def __str__(self) -> str:
        return str(self.public_id)


class DeliveryItem(models.Model):
    """An event for a channel, due at `due_at`; `delivery` is the message that it is part of."""

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="items")
    event = models.ForeignKey(NotificationEvent, models.CASCADE, related_name="+")
    delivery = models.ForeignKey(Delivery, models.CASCADE, null=True, blank=True, related_name="items")
    due_at = models.DateTimeField(_("from"), db_default=Now())
    log_lines = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("delivery item")
        verbose_name_plural = _("delivery items")
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=("channel", "event"), name="told_once"),)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("due_at",), condition=models.Q(delivery=None), name="items_to_pack"),
        ]

    def __str__(self) -> str:
        return f"{self.channel} · {self.event}"


class QuotaLevel(models.Model):
    """Percent of a quota that was used at its last notification, so that it is not repeated."""

    quota = models.OneToOneField(Quota, models.CASCADE, related_name="+")
    percent = models.IntegerField(default=0)

    class Meta:
        verbose_name = _("quota usage level")
        verbose_name_plural = _("quota usage levels")

    def __str__(self) -> str:
        return f"{self.quota} {self.percent}%"
