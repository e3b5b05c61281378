"""The forms in which an admin changes a quota or a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import (
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from quotas import egress
from quotas.accounts import first_links
from quotas.accounts.first_links import Delivery
from quotas.admin.units import SCALES, format_amount
from quotas.egress import EgressKind
from quotas.ledger import reports
from quotas.limits.workspace_forms import canonical_types
from quotas.models import JobPolicy, LocalGroup, Quota, User, Workspace


class QuotaForm(forms.ModelForm[Quota]):
    """Limits; one that is lowered below what is in use says first what follows, and asks."""

    drain = forms.BooleanField(
        label=gettext_lazy("Allow limits below current usage"),
        required=False,
        help_text=gettext_lazy("Running jobs finish; no new jobs start until usage drops."),
    )

    class Meta:
        model = Quota
        fields = (
            "workspace",
            "cluster",
            "parent",
            "slug",
            "name",
            "source",
            "kind",
            "accepts_jobs",
            "gpus",
            "gpus_by_type",
            "cpu_milli",
            "memory_mib",
            "most_jobs",
            "gpu_hours",
            "period",
            "person_gpus",
            "person_cpu_milli",
            "person_memory_mib",
            "person_jobs",
            "may_borrow",
            "fair_share_weight",
            "least_running_minutes",
            "most_pending",
            "idle_warn_minutes",
            "idle_release_minutes",
            "idle_percent",
            "idle_extensions",
            "idle_exempt",
            "idle_exempt_people",
            "idle_exempt_roles",
            "idle_exempt_labels",
        )

    def clean_gpus_by_type(self) -> Any:
        """An empty field is no type."""
        return self.cleaned_data["gpus_by_type"] or {}

    def clean_idle_exempt_roles(self) -> Any:
        """An empty field is nobody."""
        return self.cleaned_data["idle_exempt_roles"] or []

    def clean_idle_exempt_labels(self) -> Any:
        """An empty field is no label."""
        return self.cleaned_data["idle_exempt_labels"] or {}

    def clean(self) -> dict[str, Any] | None:
        """Ask before draining."""
        cleaned = super().clean()
        if self.instance.pk and not self.cleaned_data.get("drain"):
            for field, kind, used, limit in _limits_below_use(self.instance, self.cleaned_data):
                if field in self.fields and field not in self.errors:
                    shown = [_in_unit(field, each) for each in (used, limit)]
                    self.add_error(field, ValidationError(_drains(kind, *shown), code="drains"))
        return cleaned


def _limits_below_use(quota: Quota, now: Mapping[str, Any]) -> list[tuple[str, str, int, int]]:
    """(field, GPU type, in use, new limit) where a limit of `now` is below what is in use."""
    held, jobs = reports.held_in(quota)
    pairs = [
        ("gpus", "", held.gpu_count, now.get("gpus")),
        ("cpu_milli", "", held.cpu_milli, now.get("cpu_milli")),
        ("memory_mib", "", held.memory_mib, now.get("memory_mib")),
        ("most_jobs", "", jobs, now.get("most_jobs")),
    ]
    types = now.get("gpus_by_type")
    if isinstance(types, dict):
        pairs += [("gpus_by_type", kind, held.gpus.get(kind, 0), limit) for kind, limit in types.items()]
    bounded = [(field, kind, used, limit) for field, kind, used, limit in pairs if limit is not None]
    return [each for each in bounded if each[3] < each[2]]


def _in_unit(field: str, value: int) -> str:
    _label, scale, _places = SCALES.get(field, ("", 1, 0))
    return format_amount(value, scale)


def _drains(kind: str, used: str, limit: str) -> str:
    text = _(
        "%(used)s in use. A limit of %(limit)s stops nothing: running jobs finish, and no new "
        "jobs start until usage drops. To save it, select “Allow limits below current usage”."
    )
    return (f"{kind}: " if kind else "") + text % {"used": used, "limit": limit}


class PersonForm(forms.ModelForm[User]):
    """A new person, with groups and the link to their first password; memberships stand below it."""

    local_groups = forms.ModelMultipleChoiceField(
        LocalGroup.objects.all(),
        label=gettext_lazy("Local groups"),
        required=False,
        widget=UnfoldAdminSelectMultipleWidget,
    )
    links = forms.ChoiceField(
        label=gettext_lazy("First password"),
        widget=UnfoldAdminRadioSelectWidget,
        help_text=gettext_lazy("By a link that works once, for three days."),
    )

    class Meta:
        model = User
        fields = ("username", "email", "first_name", "last_name")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        links = self.fields["links"]
        assert isinstance(links, forms.ChoiceField)
        links.choices = first_links.list_deliveries()
        self.initial.setdefault("links", links.choices[0][0])

    def clean(self) -> dict[str, Any] | None:
        """Ask for the address that a link is mailed to."""
        cleaned = super().clean()
        if self.cleaned_data.get("links") == Delivery.MAIL and not self.cleaned_data.get("email"):
            self.add_error("email", _("Required."))
        return cleaned

    def save(self, commit: bool = True) -> User:
        """Save without a password."""
        self.instance.set_unusable_password()
        return super().save(commit)


class JobPolicyForm(forms.ModelForm[JobPolicy]):
    """A job policy of a quota."""

    class Meta:
        model = JobPolicy
        fields = (
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

    def clean_gpu_types(self) -> str:
        """Return the types under their own names."""
        return canonical_types(self.cleaned_data["gpu_types"])


class JobPolicyFormSet(forms.BaseInlineFormSet[JobPolicy, Quota, forms.ModelForm[JobPolicy]]):
    """The policies of a quota, each for somebody else."""

    def clean(self) -> None:
        """Refuse two new policies for the same people."""
        super().clean()
        seen: set[tuple[Any, Any, bool]] = set()
        for form in self.forms:
            values = getattr(form, "cleaned_data", None)
            if not values or values.get("DELETE"):
                continue
            key = (values.get("role"), values.get("user"), form.instance.by_workspace)
            if key in seen:
                raise ValidationError(_("Two policies are for the same role and user."))
            seen.add(key)


class WorkspaceForm(forms.ModelForm[Workspace]):
    """A workspace; its egress policy is a kind and, for one of them, rules."""

    egress_kind = forms.ChoiceField(
        label=gettext_lazy("Network access"),
        choices=EgressKind,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy(
            "What jobs can connect to outside their own network. Internet: everything except the cluster's "
            "machine and link-local addresses. Applies to jobs that start from now on."
        ),
    )
    egress_rules = forms.CharField(
        label=gettext_lazy("Allowed addresses"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "placeholder": "192.0.2.0/24:443"}),
        help_text=gettext_lazy(
            "One IPv4 range per line, with a port, a range of ports, or none for all ports: "
            "192.0.2.0/24:443, 192.0.2.7:8000-8999, 198.51.100.0/24."
        ),
    )

    class Meta:
        model = Workspace
        fields = ("name", "slug", "vendor_id", "description")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kind = egress.kind_of(self.instance.egress)
        self.initial.setdefault("egress_kind", kind)
        if kind is EgressKind.LISTED:
            self.initial.setdefault("egress_rules", "\n".join(self.instance.egress))

    def clean(self) -> dict[str, Any] | None:
        """Make a policy of the two fields."""
        cleaned = super().clean()
        lines = [line for line in self.cleaned_data.get("egress_rules", "").splitlines() if line.strip()]
        match self.cleaned_data.get("egress_kind"):
            case EgressKind.LISTED if not lines:
                self.add_error("egress_rules", _("Required."))
            case EgressKind.LISTED:
                try:
                    self.instance.egress = egress.parse_rules(lines)
                except ValidationError as error:
                    self.add_error("egress_rules", error)
            case EgressKind.NONE | EgressKind.INTERNET if lines:
                self.add_error("egress_kind", _("Select “Listed addresses only”, or remove the addresses."))
            case EgressKind.NONE:
                self.instance.egress = []
            case EgressKind.INTERNET:
                self.instance.egress = egress.internet()
        return cleaned
