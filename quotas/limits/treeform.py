"""The limits of a whole cluster's quotas in one form: all problems at once, each at its field.

CPU is written in cores and memory in GiB; types of GPUs as in `A100: 8, V100: 4`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from copy import copy
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from quotas.limits.fields import Scaled, Types
from quotas.models import Cluster, Quota, tree

FIELDS: Final = ("gpus", "gpus_by_type", "cpu_milli", "memory_mib", "most_jobs")
_SMALL: Final = {"class": "house-input"}


class QuotaLimitsForm(forms.Form):
    """One quota's limits; an empty field is no limit.  `was` is what they were when the page was made."""

    gpus = forms.IntegerField(label=gettext_lazy("GPUs"), min_value=0, required=False)
    gpus_by_type = Types(label=gettext_lazy("GPUs by type"), required=False)
    cpu_milli = Scaled(1000, label=gettext_lazy("CPU cores"))
    memory_mib = Scaled(1024, label=gettext_lazy("Memory (GiB)"))
    most_jobs = forms.IntegerField(label=gettext_lazy("Concurrent jobs"), min_value=0, required=False)
    was = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, quota: Quota, data: Any = None) -> None:
        self.quota = quota
        shown: dict[str, Any] = {name: getattr(quota, name) for name in FIELDS}
        super().__init__(data, initial={**shown, "was": _digest(quota)}, prefix=f"q{quota.pk}")
        for name in FIELDS:
            field = self.fields[name]
            field.widget.attrs.update(_SMALL)
            field.widget.attrs["aria-label"] = f"{quota.title}: {field.label}"

    def clean_was(self) -> str:
        """Refuse the form where the limits changed after the page was made."""
        was: str = self.cleaned_data["was"]
        if was != _digest(self.quota):
            raise ValidationError(
                _("%(quota)s was changed in the meantime. Review the current values.")
                % {"quota": self.quota.title}
            )
        return was

    def apply(self) -> Quota | None:
        """A copy of the quota with these limits; None when they are what they were."""
        changed = copy(self.quota)
        for name in FIELDS:
            setattr(changed, name, self.cleaned_data[name])
        return None if _digest(changed) == _digest(self.quota) else changed


def _digest(quota: Quota) -> str:
    values = json.dumps([getattr(quota, name) for name in FIELDS], sort_keys=True)
    return hashlib.sha256(values.encode()).hexdigest()[:16]


class TreeForm:
    """The forms of a cluster's quotas, in the order of the tree."""

    def __init__(self, cluster: Cluster, data: QueryDict | None = None) -> None:
        self.cluster = cluster
        rows = Quota.objects.filter(cluster=cluster).select_related("workspace")
        self.rows = in_order(list(rows.order_by("workspace__name", "name")))
        self.forms = [QuotaLimitsForm(quota, data) for quota, _depth in self.rows]
        self.changed: dict[int, Quota] = {}

    def is_valid(self) -> bool:
        """Whether the whole tree could be saved; every problem is at its field otherwise."""
        wrong = [form for form in self.forms if not form.is_valid()]
        if wrong:
            return False
        self.changed = {form.quota.pk: quota for form in self.forms if (quota := form.apply()) is not None}
        family = [self.changed.get(quota.pk, quota) for quota, _depth in self.rows]
        for form in self.forms:
            self._check(form, family)
        return not any(form.errors for form in self.forms)

    def _check(self, form: QuotaLimitsForm, family: Sequence[Quota]) -> None:
        quota = self.changed.get(form.quota.pk)
        if quota is None:
            return
        try:
            tree.check(quota, family)
        except ValidationError as problem:
            for name, texts in problem.message_dict.items():
                form.add_error(name if name in form.fields else None, texts)

    def digest(self) -> str:
        """The same for the same changes, so that what is saved is what was shown."""
        text = json.dumps(
            {key: [getattr(quota, name) for name in FIELDS] for key, quota in sorted(self.changed.items())},
            sort_keys=True,
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self) -> list[str]:
        """Write them; what changed, in the database's own words.  Under the cluster's lock."""
        changes = []
        for form in self.forms:
            quota = self.changed.get(form.quota.pk)
            if quota is not None:
                quota.save(update_fields=FIELDS)
                changes += [
                    f"{quota.slug} {name}: {getattr(form.quota, name)} → {getattr(quota, name)}"
                    for name in FIELDS
                    if getattr(form.quota, name) != getattr(quota, name)
                ]
        return changes


def in_order(quotas: Sequence[Quota]) -> list[tuple[Quota, int]]:
    """Each quota before those in it, with its depth."""
    here = {quota.pk for quota in quotas}
    below: dict[int | None, list[Quota]] = {}
    for quota in quotas:
        below.setdefault(quota.parent_id if quota.parent_id in here else None, []).append(quota)
    ordered: list[tuple[Quota, int]] = []

    def visit(rows: Sequence[Quota], depth: int) -> None:
        for quota in rows:
            ordered.append((quota, depth))
            visit(below.get(quota.pk, []), depth + 1)

    visit(below.get(None, []), 0)
    return ordered
