"""Django admin of log sinks: where a workspace's logs go, and whether they arrive."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobs.live import triggers
from jobs.messages.deliveries import delivery_message
from jobs.models import LogSink
from jobs.models.log_sinks import MOST_RECORDS
from jobs.outbound import addresses
from quotas.access import administers
from quotas.admin.base import ModelAdmin, signed_in_admin

SETTINGS: Final = ("workspace", "name", "url", "format", "auth", "username", "labels", "enabled")


class LogSinkForm(forms.ModelForm[LogSink]):
    """A sink; its credential is entered, and never shown."""

    credential = forms.CharField(
        label=_("Password or token"),
        required=False,
        max_length=10_000,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and not shown again. Leave empty to keep the current value."),
    )

    class Meta:
        model = LogSink
        fields = SETTINGS

    def clean_url(self) -> str:
        """Refuse an address that the console would not contact."""
        url = str(self.cleaned_data["url"]).strip()
        try:
            addresses.check(url)
        except addresses.Refused as refused:
            raise ValidationError(delivery_message(refused.code, refused.detail)) from refused
        return url

    def clean(self) -> dict[str, Any]:
        """Ask for the credential where one is needed, again for another server, and encrypt it."""
        cleaned = super().clean() or self.cleaned_data
        credential = str(cleaned.get("credential", ""))
        if cleaned.get("auth") == LogSink.Auth.NONE:
            self.instance.encrypt("")
        elif credential:
            self._check_characters(credential)
            self.instance.encrypt(credential)
        elif not self.instance.ciphertext:
            self.add_error("credential", gettext("Required."))
        elif _origin(str(cleaned.get("url", ""))) != _origin(str(self.initial.get("url", ""))):
            self.add_error("credential", gettext("The address is on another server: enter it again."))
        return cleaned

    def _check_characters(self, credential: str) -> None:
        """A header has no line ends; the name and the password are separated by a colon."""
        if not (credential.isascii() and credential.isprintable()):
            self.add_error("credential", gettext("Only printable ASCII characters are possible."))
        if ":" in str(self.cleaned_data.get("username", "")):
            self.add_error("username", gettext("A user name can't contain a colon."))


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


@admin.register(LogSink)
class LogSinkAdmin(ModelAdmin[LogSink]):
    """Log sinks.  Only admins of the console change them: they lead logs of private jobs outside."""

    form = LogSinkForm
    fields = (*SETTINGS[:6], "credential", *SETTINGS[6:])
    list_display = ("name", "workspace", "format", "enabled", "status", "sent_at", "dropped_bytes")
    list_filter = ("workspace", "format", "enabled")
    list_select_related = ("workspace",)
    actions = ("send_test",)
    states = ("status", "last_error", "error_at", "errors", "dropped_bytes", "sent_at", "test_result")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the settings and, of a sink that is there, what is known of it."""
        known = [(_("Status"), {"fields": self.states})] if obj else []
        return [(None, {"fields": self.fields}), *known]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """A sink stays in its workspace, whose logs it has begun to get."""
        return ("workspace", *self.states) if obj else self.states

    def has_add_permission(self, request: HttpRequest) -> bool:
        return administers(signed_in_admin(request)) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return administers(signed_in_admin(request)) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return administers(signed_in_admin(request)) and super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: LogSink, form: Any, change: bool) -> None:
        """Store the settings alone, since workers write the rest, and have it tried at once."""
        with transaction.atomic():
            if change:
                obj.save(update_fields=[*SETTINGS, "ciphertext"])
                rows = LogSink.objects.filter(pk=obj.pk)
                rows.update(due_at=Now(), failures=0, batch_records=MOST_RECORDS)
            else:
                obj.created_by = signed_in_admin(request)
                obj.save()
            triggers.trigger_on_commit("forward_logs")

    @admin.action(description=_("Send a test record"), permissions=["change"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[LogSink]) -> None:
        """Have a worker send a record; its answer is on the sink's page."""
        count = queryset.update(test_requested_at=Now(), tested_at=None)
        triggers.trigger("forward_logs")
        text = ngettext(
            "Sending a test record to %(n)d sink. Open it to see the result.",
            "Sending a test record to %(n)d sinks. Open one to see the result.",
            count,
        )
        self.message_user(request, text % {"n": count})

    @admin.display(description=_("status"))
    def status(self, sink: LogSink) -> str:
        """Return whether it gets logs."""
        if not sink.enabled:
            return gettext("Disabled")
        return self.last_error(sink) if sink.failures else gettext("OK")

    @admin.display(description=_("last error"))
    def last_error(self, sink: LogSink) -> str:
        """Return the last error in words."""
        return delivery_message(sink.error, sink.detail) if sink.error else "–"

    @admin.display(description=_("test"))
    def test_result(self, sink: LogSink) -> str:
        """Return what came of the last test."""
        if sink.test_requested_at is not None:
            return gettext("Sending…")
        if sink.tested_at is None:
            return "–"
        result = delivery_message(sink.test_error, sink.test_detail) if sink.test_error else gettext("OK")
        return f"{result} ({date_format(localtime(sink.tested_at), 'DATETIME_FORMAT')})"
