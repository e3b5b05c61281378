"""Log sinks of workspaces, and how far each log has been forwarded."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.logs import LogStream
from quotas import encryption
from quotas.models import Workspace
from quotas.models.audit_base import Audited

MOST_RECORDS: Final = 1000
"""Records of one batch."""

MOST_LABELS: Final = 6
"""With those of a log they stay below the 15 that Loki takes by default."""

OWN_LABELS: Final = frozenset({"workspace", "job", "role", "index", "attempt", "run", "stream"})
"""Labels that a log has by itself."""

_LABEL: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,62}")
"""Loki's and Prometheus' names, without those that they use themselves."""


def check_labels(labels: object) -> None:
    """Refuse labels that are not a few short texts by names that Loki takes.  Raises ValidationError."""
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise ValidationError(_('Must be a JSON object with string values, e.g. {"site": "lab"}.'))
    if len(labels) > MOST_LABELS or any(len(value) > 200 for value in labels.values()):
        raise ValidationError(
            _("At most %(count)d labels of at most 200 characters."), params={"count": MOST_LABELS}
        )
    for name in labels:
        if not _LABEL.fullmatch(name) or name in OWN_LABELS:
            raise ValidationError(
                _("%(name)s can't be a label: use letters, digits and _, and none of %(reserved)s."),
                params={"name": name, "reserved": ", ".join(sorted(OWN_LABELS))},
            )


class LogSink(Audited):
    """A server that gets every line of the logs of a workspace's jobs submitted since the sink was added.

    The credential (`ciphertext`) is never shown again.  Below `created_at` only workers write: whoever
    forwards holds the lease; `failures` counts failed batches in a row, `errors` all of them; a refused batch
    halves `batch_records`, and a record that is refused alone is dropped and counted.  `test_requested_at`
    asks for a test, `tested_at` and `test_error` ("" if it succeeded) answer it.
    """

    class Format(models.TextChoices):
        LOKI = "loki", _("Loki")
        ELASTICSEARCH = "elasticsearch", _("Elasticsearch or OpenSearch")
        NDJSON = "ndjson", _("JSON lines")

    class Auth(models.TextChoices):
        NONE = "none", _("None")
        BASIC = "basic", _("User name and password")
        BEARER = "bearer", _("Token (Bearer)")

    WORKER_FIELDS: ClassVar[tuple[str, ...]] = (
        *("due_at", "lease_token", "lease_until", "batch_records", "failures", "errors", "error", "detail"),
        *("error_at", "sent_at", "dropped_bytes", "test_requested_at", "tested_at", "test_error"),
        "test_detail",
    )
    """Columns that only workers write, apart from `test_requested_at`."""

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, related_name="log_sinks", verbose_name=_("workspace")
    )
    name = models.CharField(_("name"), max_length=100)
    url = models.CharField(
        _("address"),
        max_length=2000,
        help_text=_(
            "The whole address that takes the records: https://loki.example.org/loki/api/v1/push, "
            "https://elastic.example.org/job-logs/_bulk, or of your own receiver."
        ),
    )
    format = models.CharField(_("format"), max_length=16, choices=Format, default=Format.LOKI)
    auth = models.CharField(_("authentication"), max_length=8, choices=Auth, default=Auth.NONE)
    username = models.CharField(_("user name"), max_length=200, blank=True)
    ciphertext = models.TextField(editable=False, blank=True)
    labels = models.JSONField(
        _("labels"),
        default=dict,
        blank=True,
        validators=[check_labels],
        help_text=_('Added to each record. Example: {"site": "lab"}.'),
    )
    enabled = models.BooleanField(
        _("enabled"), default=True, help_text=_("When enabled again, it goes on where it stopped.")
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(_("added"), db_default=Now(), editable=False)

    due_at = models.DateTimeField(_("next attempt"), db_default=Now(), editable=False)
    lease_token = models.CharField(max_length=32, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    batch_records = models.IntegerField(default=MOST_RECORDS, editable=False)
    failures = models.IntegerField(_("consecutive failures"), default=0, editable=False)
    errors = models.BigIntegerField(_("failed batches"), default=0, editable=False)
    error = models.CharField(_("last error"), max_length=32, blank=True, editable=False)
    detail = models.CharField(_("error details"), max_length=300, blank=True, editable=False)
    error_at = models.DateTimeField(_("last error at"), null=True, blank=True, editable=False)
    sent_at = models.DateTimeField(_("last sent"), null=True, blank=True, editable=False)
    dropped_bytes = models.BigIntegerField(_("dropped bytes"), default=0, editable=False)
    test_requested_at = models.DateTimeField(_("test requested"), null=True, blank=True, editable=False)
    tested_at = models.DateTimeField(_("tested"), null=True, blank=True, editable=False)
    test_error = models.CharField(_("test error"), max_length=32, blank=True, editable=False)
    test_detail = models.CharField(_("test error details"), max_length=300, blank=True, editable=False)

    class Meta:
        verbose_name = _("log sink")
        verbose_name_plural = _("log sinks")
        ordering = ("workspace", "name")
        constraints = (models.UniqueConstraint(fields=("workspace", "name"), name="one_log_sink_of_a_name"),)

    def __str__(self) -> str:
        return self.name

    def encrypt(self, credential: str) -> None:
        """Encrypt the password or token into this row (not saved); '' takes it away."""
        self.ciphertext = encryption.encrypt(credential) if credential else ""

    def credential(self) -> str:
        """Return the password or token, for sending only.  Raises encryption.Unreadable."""
        return encryption.decrypt(self.ciphertext) if self.ciphertext else ""


class LogCursor(models.Model):
    """How much of a log a sink has; without a row the sink has all of it, or none of it is for the sink.

    `batch_end` and `batch_at` are of the batch that is being sent: until it is accepted the same bytes are
    sent with the same time, so that a repetition can be recognized.  Up to `scanned` a live log has no end of
    a line after `offset`.
    """

    sink = models.ForeignKey(LogSink, models.CASCADE, related_name="cursors")
    stream = models.ForeignKey(LogStream, models.CASCADE, related_name="cursors")
    offset = models.BigIntegerField(_("sent bytes"), default=0)
    scanned = models.BigIntegerField(default=0)
    batch_end = models.BigIntegerField(null=True, blank=True)
    batch_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("log cursor")
        verbose_name_plural = _("log cursors")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=("sink", "stream"), name="one_log_cursor"),
        ]

    def __str__(self) -> str:
        return f"{self.stream_id}@{self.offset}"
