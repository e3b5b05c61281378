"""Text that is encrypted in its column, as it may contain secrets."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from quotas import encryption


class SealedTextField(models.TextField[str, str]):
    """A text that the database never sees; a text whose key is gone reads as empty.

    It can't be searched: every lookup is refused but whether there is any.
    """

    lookups: ClassVar[frozenset[str]] = frozenset({"isnull"})

    def from_db_value(self, value: str | None, *_rest: Any) -> str | None:
        """Decrypt the stored value."""
        if not value:
            return value
        try:
            return encryption.decrypt(value)
        except encryption.Unreadable:
            return ""

    def get_prep_value(self, value: Any) -> Any:
        """Encrypt the value for storing."""
        return encryption.encrypt(str(value)) if value else value

    def get_lookup(self, lookup_name: str) -> Any:
        """Return only lookups that don't depend on the text."""
        return super().get_lookup(lookup_name) if lookup_name in self.lookups else None
