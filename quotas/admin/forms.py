"""The forms in which an admin changes a cluster and a quota."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from quotas.clusters import confided, gputypes
from quotas.ledger import reports
from quotas.models import Cluster, Quota, Reservation, unixnames


class ClusterForm(forms.ModelForm[Cluster]):
    """Settings whose secrets are kept encrypted and not shown (`quotas.clusters.confided`)."""

    class Meta:
        model = Cluster
        fields = ("slug", "name", "region", "backend", "config", "admission", "enabled", "shows_addresses")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._kept = self.instance.config
        if "config" in self.initial:
            self.initial["config"] = confided.shown(self._kept)

    def clean_config(self) -> Any:
        """What stays a mask stays what it was."""
        told = self.cleaned_data["config"]
        if not isinstance(told, Mapping):
            raise ValidationError(_("Settings are a JSON object."))
        try:
            return confided.keep(told, self._kept)
        except confided.EnterAgain as again:
            says = _(
                "With these settings the console would connect to another place. Enter again: %(names)s."
            )
            raise ValidationError(says, params={"names": ", ".join(again.names)}) from None

    def clean(self) -> dict[str, Any] | None:
        """Jobs that were sent as one user are neither seen nor ended as another."""
        told = super().clean()
        after = self.cleaned_data.get("config", self._kept)
        if self.instance.pk and unixnames.identity(after) != unixnames.identity(self._kept):
            count = Reservation.objects.filter(cluster=self.instance.pk, active=True).count()
            if count:
                says = ngettext(
                    "As whom jobs run can't be changed while %(count)s job of this console is there: take "
                    "“takes jobs” away, and let it end or stop it first.",
                    "As whom jobs run can't be changed while %(count)s jobs of this console are there: take "
                    "“takes jobs” away, and let them end or stop them first.",
                    count,
                )
                self.add_error("config", ValidationError(says, params={"count": count}))
        return told


class QuotaForm(forms.ModelForm[Quota]):
    """Ceilings; one that is lowered below what is in use says first what follows, and asks."""

    drain = forms.BooleanField(
        label=gettext_lazy("Lower below what is in use"),
        required=False,
        help_text=gettext_lazy("What runs goes on to its end; nothing more starts until less is in use."),
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
        """GPU types under their own names."""
        types = self.cleaned_data["gpus_by_type"]
        if not isinstance(types, dict):
            return types or {}
        known = gputypes.names()
        return {gputypes.canonical(kind, known): count for kind, count in types.items()}

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
            for field, kind, used, limit in _lowered(self.instance, self.cleaned_data):
                if field in self.fields and field not in self.errors:
                    self.add_error(field, ValidationError(_drains(kind, used, limit), code="drains"))
        return cleaned


def _lowered(quota: Quota, now: Mapping[str, Any]) -> list[tuple[str, str, int, int]]:
    """(field, GPU type, in use, new ceiling) where a ceiling of `now` is below what is in use."""
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


def _drains(kind: str, used: int, limit: int) -> str:
    text = _(
        "%(used)s are in use. With %(limit)s nothing is stopped: what runs goes on to its end, and nothing "
        "more starts until less is in use. Tick “Lower below what is in use” to save it."
    )
    return (f"{kind}: " if kind else "") + text % {"used": used, "limit": limit}
