"""Actions on many rows of a list in the admin: first a page that says what would follow, then the deed.

`confirm` returns the form's values once the person has confirmed, and the page to show until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

MOST_AT_ONCE: Final = 200

LOOKS: Final[dict[type[forms.Field], type[forms.Widget]]] = {
    forms.CharField: UnfoldAdminTextInputWidget,
    forms.IntegerField: UnfoldAdminIntegerFieldWidget,
    forms.ChoiceField: UnfoldAdminSelectWidget,
    forms.ModelChoiceField: UnfoldAdminSelectWidget,
    forms.BooleanField: UnfoldBooleanWidget,
    forms.SplitDateTimeField: UnfoldAdminSplitDateTimeWidget,
}


class AdminForm(forms.Form):
    """A form that looks like the admin's own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            look = next((look for kind, look in LOOKS.items() if isinstance(field, kind)), None)
            if look is None or isinstance(field.widget, forms.HiddenInput):
                continue
            choices = getattr(field, "choices", None)
            field.widget = look()
            field.widget.is_required = field.required
            if isinstance(field.widget, forms.Select):
                field.widget.choices = choices or []


class WhyForm(AdminForm):
    """The reason, which whoever is concerned reads."""

    why = forms.CharField(label=gettext_lazy("Reason"), max_length=500)


@dataclass(frozen=True, slots=True)
class Question:
    """A confirmation of a bulk action: its name, its label, and its consequences in sentences."""

    action: str
    title: str
    button: str
    effects: Sequence[str]
    danger: bool = False


def confirm(
    model_admin: ModelAdmin[Any],
    request: HttpRequest,
    queryset: QuerySet[Any],
    question: Callable[[Sequence[Any]], Question],
    form: Callable[[Any], AdminForm],
) -> tuple[Sequence[Any], dict[str, Any] | None, TemplateResponse | None]:
    """The rows, and the form's values once confirmed, or else the page that asks; neither for too many."""
    rows = list(queryset[: MOST_AT_ONCE + 1])
    if len(rows) > MOST_AT_ONCE:
        text = _("Too many selected: at most %(most)s at a time.")
        model_admin.message_user(request, text % {"most": MOST_AT_ONCE}, messages.ERROR)
        return rows, None, None
    confirmed = "confirmed" in request.POST
    bound = form(request.POST if confirmed else None)
    if confirmed and bound.is_valid():
        return rows, bound.cleaned_data, None
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.model._meta,  # noqa: SLF001  # so Django's own templates call it
        "question": question(rows),
        "rows": rows,
        "form": bound,
        "checkbox": ACTION_CHECKBOX_NAME,
    }
    context["title"] = context["question"].title
    return rows, None, TemplateResponse(request, "administration/confirm.html", context)


def tell(model_admin: ModelAdmin[Any], request: HttpRequest, done: str, problems: Sequence[str]) -> None:
    """Show what was done in a sentence ("" for nothing), and why not to the others."""
    if done:
        model_admin.message_user(request, done, messages.SUCCESS)
    for problem in sorted(set(problems)):
        count = problems.count(problem)
        text = ngettext("%(count)d unchanged: %(why)s", "%(count)d unchanged: %(why)s", count)
        model_admin.message_user(request, text % {"count": count, "why": problem}, messages.WARNING)
