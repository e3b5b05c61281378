"""The base of the administration's API: for admins of the console, with the scope `admin` for every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied
from django.core.exceptions import ValidationError as ModelValidationError
from django.db.models import Model
from rest_framework import serializers
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.request import Request

from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from quotas.access import administers
from quotas.audit.action_record import Actor

PAGE: Final = 100
LONGEST_REASON: Final = 500

CHANGED: Final = {409: shapes.ProblemDetails, **REFUSED, **ABSENT}
"""Answers of a change that is refused."""

SCOPE: Final = "admin"
_METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


class StateConflict(APIException):
    """The present state does not allow the change; the message says why."""

    status_code = 409


class AdminView(NativeView):
    """A view for admins of the console; with a token, reading needs the scope `admin` too."""

    scopes: ClassVar[dict[str, str]] = dict.fromkeys(_METHODS, SCOPE)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse everybody else, before anything is looked up."""
        super().initial(request, *args, **kwargs)
        if not administers(self.person):
            raise PermissionDenied

    def actor(self, why: str = "") -> Actor:
        """Return the caller as the record of admin actions has them."""
        return Actor(self.person, str(self.request.META.get("REMOTE_ADDR", ""))[:64], why)


class ReasonShape(shapes.ApiShape):
    """Why an admin acts; whoever is concerned reads it."""

    reason = shapes.TextField(max_length=LONGEST_REASON)


class JobNameShape(shapes.ApiShape):
    """A job by its id, name and owner."""

    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    owner = serializers.CharField(source="owner.username")


def set_fields(row: Model, values: Mapping[str, Any]) -> None:
    """Set a row's fields, and check all of it.  Raises ValidationError."""
    for name, value in values.items():
        setattr(row, name, value)
    try:
        row.full_clean(exclude={"password"} if hasattr(row, "password") else None)
    except ModelValidationError as error:
        raise refuse(error) from error


def refuse(error: ModelValidationError) -> ValidationError:
    """Return the problem details of what a model refused, by field."""
    if not hasattr(error, "error_dict"):
        return ValidationError({"": _details(error.error_list)})
    return ValidationError(
        {
            "" if name == NON_FIELD_ERRORS else name: _details(errors)
            for name, errors in error.error_dict.items()
        }
    )


def _details(errors: Sequence[ModelValidationError]) -> list[ErrorDetail]:
    return [ErrorDetail(text, code=error.code or "invalid") for error in errors for text in error.messages]
