"""Django admin of assets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.assets import keeping
from jobs.models import (
    Asset,
    AssetTrial,
    AssetUse,
    CodeSource,
    Dataset,
    DatasetVersion,
    Guarded,
    Image,
    RamRole,
    Vpc,
)
from quotas.admin.base import MachineWritten, TabularInline, Uncounted, acting


class PasswordForm(forms.ModelForm[Any]):
    """A kept password is entered, and never shown."""

    password = forms.CharField(
        label=_("Password or token"),
        required=False,
        max_length=10_000,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and not shown again. Left empty, what is kept stays."),
    )


class VersionInline(TabularInline[DatasetVersion, Dataset]):
    """A dataset's versions."""

    model = DatasetVersion
    fields = ("number", "uri", "description", "is_default")
    extra = 0


class AssetAdmin(Uncounted):
    """Any asset; what jobs were made of is retired in place of being deleted."""

    list_filter = ("workspace", ("retired_at", admin.EmptyFieldListFilter))
    list_select_related = ("workspace",)
    search_fields = ("key__exact", "name")
    readonly_fields = ("retired_at", "created_by", "created_at")
    actions = ("retire", "bring_back")

    def save_model(self, request: HttpRequest, obj: Asset, form: Any, change: bool) -> None:
        """With who added it, and the password that was entered."""
        if not change:
            obj.created_by = acting(request)
        if isinstance(obj, Guarded) and form.cleaned_data.get("password"):
            obj.put(form.cleaned_data["password"])
        super().save_model(request, obj, form, change)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not what is used, and never many at once."""
        return obj is not None and not keeping.is_used(obj) and super().has_delete_permission(request, obj)

    @admin.action(description=_("Retire the chosen ones"), permissions=["change"])
    def retire(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Offer them no more."""
        for asset in queryset.filter(retired_at=None):
            keeping.retire(asset)

    @admin.action(description=_("Offer the chosen ones again"), permissions=["change"])
    def bring_back(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Offer them again."""
        for asset in queryset.exclude(retired_at=None):
            keeping.bring_back(asset)


@admin.register(Image)
class ImageAdmin(AssetAdmin):
    """Images."""

    form = PasswordForm
    list_display = ("name", "key", "address", "workspace", "framework", "version", "retired_at")


@admin.register(Dataset)
class DatasetAdmin(AssetAdmin):
    """Datasets with their versions."""

    form = PasswordForm
    inlines = (VersionInline,)
    list_display = ("name", "key", "source", "mount_path", "read_only", "workspace", "retired_at")


@admin.register(CodeSource)
class CodeSourceAdmin(AssetAdmin):
    """Code sources."""

    form = PasswordForm
    list_display = ("name", "key", "repo", "branch", "mount_path", "workspace", "retired_at")


@admin.register(Vpc)
class VpcAdmin(AssetAdmin):
    """Virtual networks."""

    list_display = ("name", "vpc_id", "region", "cidr", "workspace", "retired_at")


@admin.register(RamRole)
class RamRoleAdmin(AssetAdmin):
    """Roles of instances."""

    list_display = ("name", "arn", "workspace", "retired_at")


@admin.register(AssetUse)
class AssetUseAdmin(MachineWritten):
    """Which job was made of what."""

    list_display = ("job", "kind", "key", "version")
    list_filter = ("kind",)
    list_select_related = ("job",)
    search_fields = ("key__exact", "job__public_id__exact")
    fields = ("job", "kind", "key", "version")


@admin.register(AssetTrial)
class AssetTrialAdmin(MachineWritten):
    """Who tried what, and what came of it."""

    list_display = ("key", "version", "cluster", "asker", "state", "created_at", "ended_at")
    list_filter = ("kind", "state")
    list_select_related = ("cluster", "asker")
    search_fields = ("key__exact",)
