"""Channels: where people and workspaces want to be told, and of what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

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
        """Why a channel is off."""

        PERSON = "person", _("turned off")
        UNSUBSCRIBED = "unsubscribed", _("unsubscribed by a link in a message")
        FAILED = "failed", _("turned off after messages could not be delivered")

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="channels"
    )
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, blank=True, related_name="channels")
    kind = models.CharField(_("kind"), max_length=16, choices=Kind)
    title = models.CharField(_("name"), max_length=100, blank=True)
    ciphertext = models.TextField(editable=False, blank=True)
    shown = models.CharField(_("leads to"), max_length=200, blank=True)
    language = models.CharField(_("language"), max_length=16, blank=True)
    verified_at = models.DateTimeField(_("confirmed"), null=True, blank=True)
    off = models.CharField(_("off"), max_length=16, choices=Off, blank=True)
    quiet_from = models.SmallIntegerField(_("quiet from"), null=True, blank=True, validators=HOUR)
    quiet_until = models.SmallIntegerField(_("quiet until"), null=True, blank=True, validators=HOUR)
    failures = models.IntegerField(_("failures in a row"), default=0)
    next_at = models.DateTimeField(_("next message not before"), null=True, blank=True)
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

    def put(self, address: Mapping[str, str]) -> None:
        """Encrypt where it leads into this row (not saved)."""
        self.ciphertext = encryption.encrypt(json.dumps(dict(address)))

    def address(self) -> dict[str, str]:
        """Where it leads, for sending only."""
        found: dict[str, str] = json.loads(encryption.decrypt(self.ciphertext))
        return found

    @property
    def is_ready(self) -> bool:
        """Whether anything may be sent there."""
        return not self.off and self.verified_at is not None


class Rule(models.Model):
    """What is told through a channel, of which jobs, and how soon.

    `events` holds values of `jobs.models.kinds.Kind`.  A person's rule about a workspace tells what its
    members may see; `log_lines` adds the end of a failed job's log where the person may read it.
    """

    class Scope(models.TextChoices):
        MINE = "mine", _("My own jobs")
        WORKSPACE = "workspace", _("All jobs of a workspace")
        QUOTA = "quota", _("All jobs in a quota")

    class Pace(models.TextChoices):
        NOW = "now", _("At once")
        HOURLY = "hourly", _("Once an hour")
        DAILY = "daily", _("Once a day")

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="rules")
    events = models.JSONField(_("events"), default=list)
    scope = models.CharField(_("of which jobs"), max_length=16, choices=Scope, default=Scope.MINE)
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, blank=True, related_name="+")
    quota = models.ForeignKey(Quota, models.CASCADE, null=True, blank=True, related_name="+")
    pace = models.CharField(_("how soon"), max_length=8, choices=Pace, default=Pace.NOW)
    hour = models.SmallIntegerField(_("at what hour"), default=8, validators=HOUR)
    wait_minutes = models.IntegerField(_("a wait is long after"), default=60)
    quota_percent = models.IntegerField(_("a quota is nearly used from"), default=90)
    log_lines = models.BooleanField(_("with the last lines of the log"), default=False)

    class Meta:
        verbose_name = _("rule")
        verbose_name_plural = _("rules")
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.channel} · {self.get_scope_display()}"
