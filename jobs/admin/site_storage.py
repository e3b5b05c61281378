"""Django admin of storage mappings, with a test of each."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import transaction
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.assets import site_storage, storage_checks
from jobs.messages.storage import FINE, storage_message
from jobs.models import SiteStorage, SiteStorageCluster
from quotas.access import administers
from quotas.admin.base import ModelAdmin, TabularInline, signed_in_admin, stay_on_page

SAVE_AND_TEST: Final = "jobs_sitestorage_save_and_test"
"""The name of the button, as django-unfold has it."""


class SiteStorageForm(forms.ModelForm[SiteStorage]):
    """A storage mapping; its secret key is entered, and never shown."""

    secret_key = forms.CharField(
        label=_("Secret key"),
        required=False,
        max_length=500,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and not shown again. Leave empty to keep the current value."),
    )

    class Meta:
        model = SiteStorage
        fields = (
            *("name", "address", "folder", "bucket", "endpoint", "region", "access_key"),
            *("mount_path", "read_only", "all_workspaces", "workspaces", "all_clusters"),
        )

    def clean(self) -> dict[str, Any]:
        """Encrypt the key that was entered, and ask for it again for another store or access key."""
        cleaned = super().clean() or self.cleaned_data
        secret_key = str(cleaned.get("secret_key", ""))
        destination = {"bucket", "endpoint", "region", "access_key"}
        if not cleaned.get("access_key"):
            self.instance.encrypt("")
        elif secret_key:
            self.instance.encrypt(secret_key)
        elif not self.instance.ciphertext or destination & set(self.changed_data):
            self.add_error("secret_key", gettext("Enter the secret of the access key."))
        if not cleaned.get("all_workspaces") and not cleaned.get("workspaces"):
            self.add_error("workspaces", gettext("Select workspaces, or all of them."))
        return cleaned


class ClusterFormSet(BaseInlineFormSet[SiteStorageCluster, SiteStorage, Any]):
    """The clusters of a mapping, together with the mapping."""

    def clean(self) -> None:
        """Refuse a mapping of no cluster, and two of one address on a cluster."""
        super().clean()
        rows = [form.cleaned_data for form in self.forms if hasattr(form, "cleaned_data")]
        chosen = {row["cluster"].pk for row in rows if row.get("cluster") and not row.get("DELETE")}
        if not self.instance.all_clusters and not chosen:
            raise ValidationError(gettext("Add a cluster, or select all clusters."))
        other = site_storage.find_conflict(self.instance, chosen)
        if other is not None:
            text = gettext("“%(name)s” maps this address on the same cluster already.")
            raise ValidationError(text % {"name": other.name})


class ClusterInline(TabularInline[SiteStorageCluster, SiteStorage]):
    """Clusters with the mapping, and their own folders."""

    model = SiteStorageCluster
    formset = ClusterFormSet
    extra = 0


@admin.register(SiteStorage)
class SiteStorageAdmin(ModelAdmin[SiteStorage]):
    """Storage mappings.  Only admins of the console change them: they open folders and buckets to jobs."""

    form = SiteStorageForm
    inlines = (ClusterInline,)
    list_display = ("name", "address", "target", "read_only", "all_workspaces", "all_clusters", "is_tested")
    list_filter = ("all_workspaces", "all_clusters", "read_only")
    search_fields = ("name", "address", "folder", "bucket")
    autocomplete_fields = ("workspaces",)
    readonly_fields = ("test_result",)
    actions_submit_line = ("save_and_test",)
    fieldsets = (
        (None, {"fields": ("name", "address", "folder", "mount_path", "read_only")}),
        (_("bucket"), {"fields": ("bucket", "endpoint", "region", "access_key", "secret_key")}),
        (_("Permissions"), {"fields": ("all_workspaces", "workspaces", "all_clusters")}),
        (_("Status"), {"fields": ("test_result",)}),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return administers(signed_in_admin(request)) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return administers(signed_in_admin(request)) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return administers(signed_in_admin(request)) and super().has_delete_permission(request, obj)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Have the button on the page of a new mapping too; stay there, where the result of a test is."""
        if SAVE_AND_TEST in request.POST:
            stay_on_page(request)
        buttons = {"actions_submit_line": self.get_actions_submit_line(request, object_id)}  # type: ignore[attr-defined]
        return super().changeform_view(request, object_id, form_url, {**(extra_context or {}), **buttons})

    @admin.action(description=_("Save and test"), permissions=["change"])
    def save_and_test(self, request: HttpRequest, obj: SiteStorage) -> None:
        """Test the mapping once it is saved, its clusters included."""
        transaction.on_commit(partial(storage_checks.check, obj.pk))

    @admin.display(description=_("folder or bucket"))
    def target(self, row: SiteStorage) -> str:
        """Return what the address is mapped to."""
        return row.folder or row.bucket

    @admin.display(description=_("test"), boolean=True)
    def is_tested(self, row: SiteStorage) -> bool | None:
        """Return whether the last test succeeded, None for one that was never tested."""
        return all(each["code"] in FINE for each in row.test_results) if row.tested_at else None

    @admin.display(description=_("test"))
    def test_result(self, row: SiteStorage) -> str:
        """Return the results of the last test."""
        if row.tested_at is None:
            return gettext("Not tested yet. A test is made from the console's host, as the console's user.")
        lines = format_html_join(
            "",
            "<li><code>{}</code> {}</li>",
            ((each["place"], storage_message(each["code"], each["detail"])) for each in row.test_results),
        )
        at = date_format(localtime(row.tested_at), "DATETIME_FORMAT")
        return format_html("<p>{}</p><ul>{}</ul>", at, lines)
