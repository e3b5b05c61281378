"""Banners, maintenance windows, the read-only mode, and the record of admin actions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NoReturn

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connection, models
from django.db.models.functions import Now
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from quotas.models.audit_base import Audited
from quotas.models.clusters import Cluster
from quotas.models.workspaces import Workspace


class Announcement(Audited):
    """A text in the languages of the console; where one is missing, the English one is shown."""

    text = models.CharField(_("string"), max_length=500)
    text_zh_hans = models.CharField(_("text in Chinese"), max_length=500, blank=True)
    text_ja = models.CharField(_("text in Japanese"), max_length=500, blank=True)

    class Meta:
        abstract = True

    @property
    def localized_text(self) -> str:
        """The text in the language of whoever reads."""
        other = {"zh-hans": self.text_zh_hans, "ja": self.text_ja}.get(get_language() or "", "")
        return other or self.text


class Banner(Announcement):
    """A text on every page for everybody, the members of one workspace, or one person."""

    class Level(models.TextChoices):
        INFO = "info", _("Info")
        WARN = "warn", _("Warning")
        BAD = "bad", _("Error")

    level = models.CharField(_("level"), max_length=8, choices=Level, default=Level.INFO)
    workspace = models.ForeignKey(
        Workspace,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("workspace"),
        help_text=_("Shown only to members of this workspace. Empty: shown to everyone."),
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("user"),
        help_text=_("Shown only to this user."),
    )
    from_at = models.DateTimeField(_("from"), null=True, blank=True)
    until_at = models.DateTimeField(_("until"), null=True, blank=True)

    class Meta:
        verbose_name = _("banner")
        verbose_name_plural = _("banners")
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.text

    def clean(self) -> None:
        """It ends after it begins."""
        if self.from_at and self.until_at and self.until_at <= self.from_at:
            raise ValidationError({"until_at": _("The end must be after the start.")})


class Maintenance(Announcement):
    """A time in which a cluster, or every one, is worked on.

    With `keeps_free` nothing is started that could still run when it begins: what declares a longest time is
    judged by that, and what declares none is not started any more `lead_hours` before.
    """

    cluster = models.ForeignKey(
        Cluster,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="maintenance",
        verbose_name=_("cluster"),
        help_text=_("Empty: all clusters."),
    )
    from_at = models.DateTimeField(_("from"))
    until_at = models.DateTimeField(_("until"))
    keeps_free = models.BooleanField(
        _("don't start jobs that would overlap the window"),
        default=True,
        help_text=_("If not selected, the maintenance is only announced."),
    )
    lead_hours = models.IntegerField(
        _("lead time for jobs without a time limit (hours)"),
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(24 * 60)],
        help_text=_(
            "Jobs without a time limit could still be running when the maintenance begins. None is "
            "started within this many hours before it; 0: they start until it begins."
        ),
    )

    class Meta:
        verbose_name = _("maintenance window")
        verbose_name_plural = _("maintenance windows")
        ordering = ("-from_at",)
        indexes = (models.Index(fields=("until_at",), name="maintenance_until"),)

    def __str__(self) -> str:
        return self.text

    def clean(self) -> None:
        """It ends after it begins."""
        begins: datetime | None = self.from_at  # None while the form says so
        ends: datetime | None = self.until_at
        if begins is not None and ends is not None and ends <= begins:
            raise ValidationError({"until_at": _("The end must be after the start.")})


class ReadOnly(models.Model):
    """The read-only mode: at most one row, which exists while the mode is on."""

    one = models.BooleanField(primary_key=True, default=True, editable=False)
    why = models.CharField(_("reason"), max_length=500)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    since = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("read-only mode")
        verbose_name_plural = _("read-only mode")

    def __str__(self) -> str:
        return self.why

    @classmethod
    def is_on(cls) -> bool:
        """Return whether the mode is on; in plain SQL, as each request that may change something asks."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM quotas_readonly LIMIT 1")
            return cursor.fetchone() is not None


class WrittenOnce(models.QuerySet["AdminAction"]):
    """Rows that are written once."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError("what was done stays as it was written")

    def delete(self) -> NoReturn:
        raise TypeError("what was done stays as it was written")


ACTS: Final[Mapping[tuple[str, str], object]] = {
    ("jobs", "stop"): _("stopped jobs"),
    ("jobs", "hold"): _("held jobs"),
    ("jobs", "release"): _("released jobs"),
    ("jobs", "prioritise"): _("changed the priority of jobs"),
    ("jobs", "move"): _("moved jobs to another quota"),
    ("jobs", "adopt"): _("adopted an orphaned job"),
    ("jobs", "end_orphan"): _("ended an orphaned job"),
    ("jobs", "next"): _("put jobs first in the queue"),
    ("jobs", "up"): _("moved a job up in the queue"),
    ("jobs", "down"): _("moved a job down in the queue"),
    ("jobs", "usual"): _("reset the queue order of jobs"),
    ("jobs", "requeue"): _("requeued jobs"),
    ("jobs", "restart"): _("stopped and requeued jobs"),
    ("nodes", "schedulable"): _("uncordoned nodes"),
    ("nodes", "cordoned"): _("cordoned nodes"),
    ("nodes", "draining"): _("drained nodes"),
}
"""Acts of one kind, by their `act` or `state`."""


class AdminAction(models.Model):
    """An action of an admin: who, when, from where, on what, and why.  Written once."""

    class Kind(models.TextChoices):
        FREEZE = "freeze", _("paused scheduling")
        UNFREEZE = "unfreeze", _("resumed scheduling")
        READ_ONLY = "read_only", _("turned on read-only mode")
        READ_WRITE = "read_write", _("turned off read-only mode")
        END_PERSON = "end_person", _("stopped all activity of a user")
        OFFBOARD = "offboard", _("offboarded a user")
        TELL_OWNERS = "tell_owners", _("notified job owners on a node")
        SETTLE = "settle", _("resolved a lost job")
        NODES = "nodes", _("changed node state")
        JOBS = "jobs", _("changed jobs")
        QUOTAS = "quotas", _("changed the quota tree")

    at = models.DateTimeField(_("time"), db_default=Now())
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", verbose_name=_("actor")
    )
    address = models.CharField(_("from"), max_length=64, blank=True)
    kind = models.CharField(_("event"), max_length=16, choices=Kind)
    about = models.CharField(_("affected object"), max_length=300)
    why = models.CharField(_("reason"), max_length=500, blank=True)
    params = models.JSONField(_("details"), default=dict)

    objects = WrittenOnce.as_manager()

    class Meta:
        verbose_name = _("admin action")
        verbose_name_plural = _("admin actions")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.done}: {self.about}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Once."""
        if not self._state.adding:
            raise TypeError("what was done stays as it was written")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Never."""
        raise TypeError("what was done stays as it was written")

    @property
    def done(self) -> str:
        """Return the action in words, as exactly as it was recorded."""
        word = self.params.get("act") or self.params.get("state")
        exact = ACTS.get((self.kind, str(word)))
        return str(exact or self.get_kind_display())
