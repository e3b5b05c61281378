"""Sessions in the database, of which only the cookie holds the key: a copy of the tables signs nobody in.

A row's key is a digest of the cookie's.  What outlives a request (streams, terminals, endpoints) remembers
that digest, the session's *reference*, and asks by it who is signed in.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.utils import timezone


def reference_of(session_key: str | None) -> str:
    """Return what is stored of a session's key, in 40 characters; "" for no session."""
    if not session_key:
        return ""
    return urlsafe_b64encode(sha256(session_key.encode()).digest()[:30]).decode()


class SessionStore(DatabaseSessionStore):
    """Django's sessions in the database, by the digest of their key."""

    key_salt = "django.contrib.sessions.SessionStore"

    def row_key(self, key: str | None) -> str:
        """Return the key of the row of the session with that key."""
        return reference_of(key)

    def _get_session_from_db(self) -> Any:
        rows = self.model.objects.filter(session_key=self.row_key(self.session_key))
        row = rows.filter(expire_date__gt=timezone.now()).first()
        if row is None:
            self._session_key = None
        return row

    async def _aget_session_from_db(self) -> Any:
        rows = self.model.objects.filter(session_key=self.row_key(self.session_key))
        row = await rows.filter(expire_date__gt=timezone.now()).afirst()
        if row is None:
            self._session_key = None
        return row

    def exists(self, session_key: str) -> bool:
        return super().exists(self.row_key(session_key))

    async def aexists(self, session_key: str) -> bool:
        return await super().aexists(self.row_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row = super().create_model_instance(data)
        row.session_key = self.row_key(row.session_key)
        return row

    async def acreate_model_instance(self, data: dict[str, Any]) -> Any:
        row = await super().acreate_model_instance(data)
        row.session_key = self.row_key(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            self.model.objects.filter(session_key=self.row_key(key)).delete()

    async def adelete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            await self.model.objects.filter(session_key=self.row_key(key)).adelete()


class ReferencedSession(SessionStore):
    """A session by its reference."""

    def row_key(self, key: str | None) -> str:
        return key or ""
