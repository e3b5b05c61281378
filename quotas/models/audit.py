"""The audit log: who changed what, from where, and what was refused."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from quotas.models.workspaces import Workspace

TEXT_LENGTH: Final = 200


class Way(models.TextChoices):
    """By which way somebody came."""

    PAGE = "page", _("Page")
    ADMIN = "admin", _("Administration")
    API = "api", _("API")
    SSH = "ssh", _("SSH")
    ENDPOINT = "endpoint", _("Endpoint")
    COMMAND = "command", _("Command")
    SYSTEM = "system", _("System")


class Action(models.TextChoices):
    """An audited action, done or refused."""

    CREATE = "create", _("created")
    UPDATE = "update", _("changed")
    DELETE = "delete", _("deleted")
    SIGN_IN = "sign_in", _("signed in")
    SIGN_IN_FAILED = "sign_in_failed", _("sign-in failed")
    SIGN_OUT = "sign_out", _("signed out")
    SIGN_IN_ENDED = "sign_in_ended", _("sign-in ended")
    BREAK_GLASS = "break_glass", _("break-glass sign-in")
    PASSWORD = "password", _("password set")
    SUBMIT = "submit", _("submitted")
    STOP = "stop", _("stop requested")
    HOLD = "hold", _("held")
    RELEASE = "release", _("released")
    SHARE = "share", _("shared")
    PRIORITY = "priority", _("priority changed")
    ENTER = "enter", _("accessed")
    USE = "use", _("used")
    EXPORT = "export", _("exported")
    APPLY = "apply", _("applied")
    TIDY = "tidy", _("cleaned up")
    ACT = "act", _("admin override")
    FILE_READ = "file_read", _("file read")
    FILE_ZIP = "file_zip", _("downloaded as ZIP")
    FILE_UPLOAD = "file_upload", _("file uploaded")
    FILE_FOLDER = "file_folder", _("folder created")
    FILE_RENAME = "file_rename", _("file renamed")
    FILE_DELETE = "file_delete", _("files deleted")
    FILE_SAVE = "file_save", _("saved as dataset")


class Entries(models.QuerySet["AuditEntry"]):
    """Rows that are written once; only `quotas.audit.audit_log` deletes old ones."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError("The audit log is append-only.")

    def delete(self) -> NoReturn:
        raise TypeError("The audit log is append-only.")

    def forget(self) -> int:
        """Remove these rows all the same: their time is over."""
        return int(self._raw_delete(self.db) or 0)

    def log_create(self, instance: models.Model, force_log: bool = False, **kwargs: Any) -> AuditEntry | None:
        """Called by django-auditlog for a row that was saved or deleted."""
        from quotas import audit  # noqa: PLC0415  # which needs the models

        changes = kwargs.get("changes")
        return audit.log_row(kwargs["action"], instance, changes) if changes or force_log else None

    def log_m2m_changes(
        self, changed_queryset: Any, instance: models.Model, operation: str, field_name: str, **kwargs: Any
    ) -> AuditEntry | None:
        """Called by django-auditlog for links between rows."""
        from quotas import audit  # noqa: PLC0415  # likewise

        names = [str(each) for each in changed_queryset]
        change = [[], names] if operation == "add" else [names, []]
        return audit.log_row(Action.UPDATE, instance, {field_name: change}) if names else None


class AuditEntry(models.Model):
    """One change or one refusal, as it was known then: names stay when what they named is gone.

    `changes` has [before, after] for each field, without secrets.  `person` is whom it is about: the member,
    the owner of the key or token.  No reference is enforced and nothing is ever set to null: a row does not
    change.  This is the model that django-auditlog writes (AUDITLOG_LOGENTRY_MODEL), through `quotas.audit`.
    """

    Action = Action

    timestamp = models.DateTimeField(_("time"), default=timezone.now, editable=False)
    action = models.CharField(_("event"), max_length=24)
    denied = models.BooleanField(_("refused"), default=False)
    way = models.CharField(_("via"), max_length=12, default=Way.SYSTEM)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
        verbose_name=_("account"),
    )
    actor_name = models.CharField(_("actor"), max_length=TEXT_LENGTH, blank=True)
    token = models.CharField(_("token"), max_length=16, blank=True)
    remote_addr = models.GenericIPAddressField(_("source address"), null=True)
    cid = models.CharField(_("correlation ID"), max_length=64, blank=True)
    workspace = models.ForeignKey(
        Workspace,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
        verbose_name=_("workspace"),
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
        verbose_name=_("affected user"),
    )
    content_type = models.ForeignKey(
        ContentType,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
        verbose_name=_("object type"),
    )
    object_pk = models.CharField(_("key"), max_length=64, blank=True)
    object_repr = models.CharField(_("affected object"), max_length=TEXT_LENGTH, blank=True)
    changes = models.JSONField(_("change"), default=dict)
    details = models.JSONField(_("details"), default=dict)

    objects = Entries.as_manager()

    class Meta:
        verbose_name = _("audit log entry")
        verbose_name_plural = _("audit log")
        ordering = ("-timestamp", "-id")
        indexes = (
            models.Index(fields=("-timestamp", "-id"), name="audit_time"),
            models.Index(fields=("workspace", "-timestamp"), name="audit_workspace"),
            models.Index(fields=("actor", "-timestamp"), name="audit_actor"),
            models.Index(fields=("person", "-timestamp"), name="audit_person"),
            models.Index(fields=("action", "-timestamp"), name="audit_action"),
            models.Index(fields=("object_repr", "-timestamp"), name="audit_thing"),
            models.Index(fields=("-timestamp",), condition=models.Q(denied=True), name="audit_denied"),
            models.Index(fields=("-timestamp", "-id"), condition=models.Q(denied=True), name="audit_refused"),
        )

    def __str__(self) -> str:
        return f"{self.timestamp:%Y-%m-%d %H:%M:%S} {self.actor_name} {self.action} {self.object_repr}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Once."""
        if not self._state.adding:
            raise TypeError("The audit log is append-only.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("The audit log is append-only.")

    @property
    def did(self) -> str:
        """Return the action in words; the database has its code, so that a new one is no migration."""
        return str(Action(self.action).label) if self.action in Action.values else self.action

    @property
    def came(self) -> str:
        """By which way, in words."""
        return str(Way(self.way).label) if self.way in Way.values else self.way

    @property
    def lines(self) -> list[str]:
        """Each change as `field: before → after`."""
        return [f"{field}: {_text(old)} → {_text(new)}" for field, (old, new) in self.changes.items()]


def _text(value: Any) -> str:
    return "–" if value in (None, "", [], {}) else str(value)
