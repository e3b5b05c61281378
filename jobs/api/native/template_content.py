"""The content of a template's version, as requests send it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from pydantic import ValidationError as BadTemplate
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.response import Response

from jobs import dialects
from jobs.api.native import problems, shapes
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.jobtemplates import Constraint
from jobs.models import Template
from jobs.submission import templates
from jobs.submission.templates import About, Content

MOST_PARAMETERS = 40


class TemplateContentShape(shapes.ApiShape):
    """A job file, its questions, and the rules of its fields (docs/templates.md)."""

    file = shapes.TextField(trim_whitespace=False)
    dialect = serializers.ChoiceField(choices=dialects.NAMES, allow_null=True, default=None)
    parameters = serializers.ListField(
        child=serializers.DictField(), default=list, max_length=MOST_PARAMETERS
    )
    constraints = serializers.DictField(
        child=serializers.ChoiceField([rule.value for rule in Constraint]),
        default=dict,
        help_text="a pointer or JSONPath → its rule",
    )
    sweep = shapes.TextField(max_length=20_000, trim_whitespace=False, allow_blank=True, default="")
    notes = shapes.TextField(max_length=400, allow_blank=True, default="")


class NewVersionShape(TemplateContentShape):
    """A further version."""

    as_default = serializers.BooleanField(default=True)


class NewTemplateShape(TemplateContentShape):
    """A template with its first version; without a workspace it is the caller's own."""

    name = shapes.TextField(max_length=80)
    description = shapes.TextField(max_length=2000, allow_blank=True, default="")
    icon = serializers.RegexField(r"^[a-z0-9-]+\Z", max_length=32, default="bolt")
    workspace = serializers.SlugField(allow_null=True, default=None)


def about_of(data: Mapping[str, Any]) -> About:
    """Return name, description and icon of a request."""
    return About(data["name"], data["description"], data["icon"])


def store(data: Mapping[str, Any], command: Callable[[Content], Template]) -> Template | Response:
    """Store what a request has; return the answer of a refused file instead.  Raises ValidationError."""
    document = Document(data["file"], data["dialect"])
    try:
        content = Content(
            document.sealed,
            data["parameters"],
            data["constraints"],
            {"sweep": data["sweep"]} if data["sweep"].strip() else {},
            data["notes"],
        )
        return command(content)
    except Refused as refused:
        return problems.refuse_file(data["file"], refused.problems)
    except BadTemplate as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else "file"
        sentence = str(first["msg"]).removeprefix("Value error, ")
        raise ValidationError({field: [ErrorDetail(sentence, code="invalid")]}) from error
    except ValueError as error:
        raise ValidationError({"file": [ErrorDetail(str(error), code="invalid")]}) from error
    except templates.TooMany as error:
        text = _("Template limit reached. Retire some templates first.")
        raise ValidationError({"": [ErrorDetail(text, code="too_many")]}) from error
