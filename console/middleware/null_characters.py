"""Middleware: characters that no database has."""

from __future__ import annotations

from urllib.parse import unquote

from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin


class NullCharacters(MiddlewareMixin):
    """Refuses requests with a null character where the database would be asked for it.

    PostgreSQL's texts have none; for a job file the position is reported instead.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Raise BadRequest for one in the address."""
        if "\0" in request.path_info or "\0" in unquote(request.META.get("QUERY_STRING", "")):
            raise BadRequest("The address has a null character.")

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Raise BadRequest for one in a form."""
        if isinstance(exception, DataError) and "NUL (0x00)" in str(exception):
            raise BadRequest("A field has a null character.") from exception
