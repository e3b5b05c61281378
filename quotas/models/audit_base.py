"""Rows whose every change is in the audit log."""

from __future__ import annotations

from typing import Any

from django.db import models, transaction


class Audited(models.Model):
    """A row and its entry in the audit log are written together, or neither is.

    django-auditlog writes the entry before or after the row, which is one transaction only where the caller
    has begun one.  A subclass has to be registered with `quotas.audit.follow`.
    """

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic(savepoint=False):
            super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        with transaction.atomic(savepoint=False):
            return super().delete(*args, **kwargs)
