"""Django admin of assets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.assets import changes
from jobs.messages.deliveries import delivery_message
from jobs.models import (
    Asset,
    AssetCheck,
    AssetUse,
    CodeSource,
    Dataset,
    DatasetVersion,
    Guarded,
    Image,
    RamRole,
    Vpc,
)
from jobs.outbound import addresses
from quotas.admin.base import MachineWritten, TabularInline, Uncounted, signed_in_admin


class PasswordForm(forms.ModelForm[Any]):
    """A form whose stored password is entered, and never shown."""

    password = forms.CharField(
        label=_("Password or token"),
        required=False,
        max_length=10_000,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and not shown again. Leave empty to keep the current value."),
    )


class RoleForm(forms.ModelForm[Any]):
    """A role, with the access key that the console assumes it with."""

    secret = forms.CharField(
        label=_("Access key secret"),
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and not shown again. Leave empty to keep the current value."),
    )

    def clean_endpoint(self) -> str:
        """Refuse an address that the console may not contact."""
        endpoint = str(self.cleaned_data["endpoint"])
        if endpoint:
            try:
                addresses.check(endpoint)
            except addresses.Refused as refused:
                raise ValidationError(delivery_message(refused.code, refused.detail)) from refused
        return endpoint

    def clean(self) -> dict[str, Any] | None:
        """A new or another access key comes with its secret, and another endpoint too.

        Otherwise whoever changes the endpoint could try a stored secret anywhere.
        """
        cleaned = super().clean()
        is_other = bool({"access_key_id", "endpoint"} & set(self.changed_data))
        if self.cleaned_data.get("access_key_id") and is_other and not self.cleaned_data.get("secret"):
            self.add_error("secret", _("Enter the secret of the access key."))
        return cleaned


class VersionInline(TabularInline[DatasetVersion, Dataset]):
    """A dataset's versions."""

    model = DatasetVersion
    fields = ("number", "uri", "description", "is_default")
    extra = 0


class AssetAdmin(Uncounted):
    """Any asset; one that jobs use is retired instead of deleted."""

    list_filter = ("workspace", ("retired_at", admin.EmptyFieldListFilter))
    list_select_related = ("workspace",)
    search_fields = ("key__exact", "name")
    readonly_fields = ("retired_at", "created_by", "created_at")
    actions = ("retire", "bring_back")

    def save_model(self, request: HttpRequest, obj: Asset, form: Any, change: bool) -> None:
        """Store who added it, and the password that was entered."""
        if not change:
            obj.created_by = signed_in_admin(request)
        if isinstance(obj, Guarded) and form.cleaned_data.get("password"):
            obj.encrypt(form.cleaned_data["password"])
        super().save_model(request, obj, form, change)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete what is in use, and more than one at once."""
        return obj is not None and not changes.is_used(obj) and super().has_delete_permission(request, obj)

    @admin.action(description=_("Retire selected"), permissions=["change"])
    def retire(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Retire the chosen assets."""
        for asset in queryset.filter(retired_at=None):
            changes.retire(asset)

    @admin.action(description=_("Restore selected"), permissions=["change"])
    def bring_back(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Restore the chosen assets."""
        for asset in queryset.exclude(retired_at=None):
            changes.bring_back(asset)


class RoleAdmin(AssetAdmin):
    """Roles, and the access keys that the console assumes them with."""

    form = RoleForm
    fieldsets = (
        (None, {"fields": ("key", "name", "description", "workspace", "provider", "arn", "is_default")}),
        (
            _("Credentials of running jobs"),
            {"fields": ("access_key_id", "secret", "policy", "session_s", "endpoint", "region")},
        ),
        (_("History"), {"fields": ("retired_at", "created_by", "created_at")}),
    )

    def save_model(self, request: HttpRequest, obj: Asset, form: Any, change: bool) -> None:
        """Store the secret that was entered, and none without an access key."""
        assert isinstance(obj, RamRole)
        if not obj.access_key_id:
            obj.ciphertext = ""
        elif form.cleaned_data.get("secret"):
            obj.encrypt(form.cleaned_data["secret"])
        super().save_model(request, obj, form, change)


admin.site.register(
    Image,
    AssetAdmin,
    form=PasswordForm,
    list_display=("name", "key", "address", "workspace", "framework", "version", "retired_at"),
)


admin.site.register(
    Dataset,
    AssetAdmin,
    form=PasswordForm,
    inlines=(VersionInline,),
    list_display=("name", "key", "source", "mount_path", "read_only", "workspace", "retired_at"),
)


admin.site.register(
    CodeSource,
    AssetAdmin,
    form=PasswordForm,
    list_display=("name", "key", "repo", "branch", "mount_path", "workspace", "retired_at"),
)


admin.site.register(
    Vpc,
    AssetAdmin,
    list_display=("name", "vpc_id", "region", "cidr", "workspace", "retired_at"),
)


admin.site.register(
    RamRole,
    RoleAdmin,
    list_display=("name", "arn", "provider", "workspace", "is_default", "retired_at"),
)


admin.site.register(
    AssetUse,
    MachineWritten,
    list_display=("job", "kind", "key", "version"),
    list_filter=("kind",),
    list_select_related=("job",),
    search_fields=("key__exact", "job__public_id__exact"),
    fields=("job", "kind", "key", "version"),
)


admin.site.register(
    AssetCheck,
    MachineWritten,
    list_display=("key", "version", "cluster", "asker", "state", "created_at", "ended_at"),
    list_filter=("kind", "state"),
    list_select_related=("cluster", "asker"),
    search_fields=("key__exact",),
)
