"""Forms in which a workspace's admin splits its quotas and sets job policies within them."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from quotas.clusters import gputypes
from quotas.limits.fields import Scaled, Types
from quotas.models import JobPolicy, Quota, Role, Source, User, Workspace

PERSON_LIMITS: Final = ("person_gpus", "person_cpu_milli", "person_memory_mib", "person_jobs")


def _style(form: forms.Form | forms.ModelForm[Any]) -> None:
    for field in form.fields.values():
        is_choice = isinstance(field.widget, forms.Select)
        field.widget.attrs["class"] = "form-select" if is_choice else "form-control"


class ChildQuotaForm(forms.ModelForm[Quota]):
    """A part of one of the workspace's quotas; nobody gets more in it than in the quota above."""

    gpus_by_type = Types(
        label=gettext_lazy("GPUs by type"),
        required=False,
        help_text=gettext_lazy("For example A100: 4, V100: 2."),
    )
    cpu_milli = Scaled(1000, label=gettext_lazy("CPU cores"))
    memory_mib = Scaled(1024, label=gettext_lazy("Memory (GiB)"))

    class Meta:
        model = Quota
        fields = (
            "parent",
            "name",
            "slug",
            "gpus",
            "gpus_by_type",
            "cpu_milli",
            "memory_mib",
            "most_jobs",
            "person_gpus",
            "person_jobs",
        )

    def __init__(self, workspace: Workspace, data: Any = None, instance: Quota | None = None) -> None:
        made = instance or Quota(workspace=workspace)
        super().__init__(data, instance=made)
        parent = self.fields["parent"]
        assert isinstance(parent, forms.ModelChoiceField)
        parent.queryset = splittable(workspace).order_by("name")
        parent.required = True
        if made.pk:
            parent.disabled = self.fields["slug"].disabled = True
        _style(self)

    def clean(self) -> dict[str, Any] | None:
        """Take from the quota above what is not for the workspace to choose."""
        cleaned = super().clean() or {}
        parent = cleaned.get("parent")
        if parent is None:
            return cleaned
        made = self.instance
        made.cluster, made.source, made.kind = parent.cluster, parent.source, parent.kind
        made.may_borrow, made.most_pending = parent.may_borrow, parent.most_pending
        if not made.pk:
            made.least_running_minutes = parent.least_running_minutes
            made.fair_share_weight = parent.fair_share_weight
        if Quota.objects.filter(
            workspace=made.workspace, cluster=parent.cluster, slug=cleaned.get("slug")
        ).exclude(pk=made.pk):
            self.add_error("slug", _("Name already taken."))
        for name in PERSON_LIMITS:
            most, wanted = getattr(parent, name), cleaned.get(name)
            if most is None:
                continue
            if wanted is not None and wanted > most:
                self.add_error(
                    name, _("Quota %(quota)s allows %(limit)s.") % {"quota": parent.title, "limit": most}
                )
            elif wanted is None:
                cleaned[name] = most
                setattr(made, name, most)
        return cleaned


def splittable(workspace: Workspace) -> Any:
    """Return the quotas of a workspace that its admins may split."""
    return Quota.objects.filter(workspace=workspace, source=Source.QUOTA).select_related("cluster")


def is_child(quota: Quota) -> bool:
    """Whether a workspace's admins may change the quota: it is a part of another one of the workspace."""
    return quota.parent is not None and quota.parent.workspace_id == quota.workspace_id


class JobPolicyForm(forms.ModelForm[JobPolicy]):
    """A policy that a workspace's admin sets; it can only be stricter than those of the console's admins."""

    class Meta:
        model = JobPolicy
        fields = (
            "quota",
            "role",
            "user",
            "highest_priority",
            "time_limit_minutes",
            "default_minutes",
            "job_gpus",
            "gpu_types",
            "waiting_jobs",
            "running_jobs",
        )

    def __init__(self, workspace: Workspace, data: Any = None, instance: JobPolicy | None = None) -> None:
        super().__init__(data, instance=instance or JobPolicy(by_workspace=True))
        quota, user, role = self.fields["quota"], self.fields["user"], self.fields["role"]
        assert isinstance(quota, forms.ModelChoiceField)
        assert isinstance(user, forms.ModelChoiceField)
        assert isinstance(role, forms.ChoiceField)
        quota.queryset = Quota.objects.filter(workspace=workspace).order_by("name")
        user.queryset = User.objects.filter(memberships__workspace=workspace).order_by("username")
        user.empty_label = _("All users")
        role.choices = [("", _("All roles")), *Role.choices]
        _style(self)

    def clean_gpu_types(self) -> str:
        """Return the types under their own names."""
        return canonical_types(self.cleaned_data["gpu_types"])


def canonical_types(text: str) -> str:
    """Return types of GPUs, separated by commas, under the names that quotas use."""
    known = gputypes.names()
    names = filter(None, (part.strip() for part in text.split(",")))
    return ", ".join(dict.fromkeys(gputypes.canonical(name, known) for name in names))


def check_deletable(quota: Quota) -> None:
    """Raise ValidationError for a quota that has had jobs or parts: history names it."""
    if quota.children.exists() or quota.requests.exists():
        raise ValidationError(_("A quota that has jobs or child quotas can't be deleted."))
