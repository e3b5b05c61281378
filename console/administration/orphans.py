"""Incident buttons for orphaned jobs, which run although the database does not know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.administration.incident import Incident, NotDone
from jobs.backends.base import Unreachable
from jobs.scheduling import orphans
from jobs.scheduling.orphans import NotAdoptable, Orphan
from quotas.admin.bulk import WhyForm
from quotas.audit.action_record import Actor


class OrphanForm(WhyForm):
    """Selects an orphaned job."""

    orphan = forms.ChoiceField(label=gettext_lazy("Orphaned job"))
    field_order = ("orphan", "why")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["orphan"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(each.key, str(each)) for each in orphans.find()]

    def clean_orphan(self) -> Orphan:
        """Return the job."""
        found = orphans.get(self.cleaned_data["orphan"])
        if found is None:
            raise ValidationError(_("It has ended meanwhile."))
        return found


class AdoptOrphan(Incident):
    """Make an orphaned job its owner's again."""

    name, form = "adopt_orphan", OrphanForm
    title = gettext_lazy("Adopt an orphaned job")
    button = gettext_lazy("Adopt")

    def possible(self) -> bool:
        return bool(orphans.find())

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        orphan = values["orphan"]
        if orphan.origin is None:
            return [_("There is no record of what it was submitted as. It can only be ended.")]
        return [
            _("%(job)s becomes a running job of %(owner)s in the workspace %(workspace)s, with its log.")
            % {
                "job": orphan.public_id,
                "owner": orphan.origin.person.name,
                "workspace": orphan.origin.workspace,
            },
            _("What it uses counts in the quota %(quota)s, even beyond the quota's limit.")
            % {"quota": orphan.origin.quota},
        ]

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        try:
            job = orphans.adopt(actor, values["orphan"])
        except NotAdoptable as problem:
            raise NotDone(str(problem)) from problem
        except Unreachable as problem:
            raise NotDone(_("The cluster does not answer: %(error)s") % {"error": problem}) from problem
        return _("%(job)s adopted.") % {"job": job}


class EndOrphan(Incident):
    """End an orphaned job."""

    name, form, danger = "end_orphan", OrphanForm, True
    title = gettext_lazy("End an orphaned job")
    button = gettext_lazy("End")

    def possible(self) -> bool:
        return bool(orphans.find())

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        return [
            _("%(job)s is asked to end, and killed %(seconds)d seconds later.")
            % {"job": values["orphan"], "seconds": orphans.GRACE_S},
            _("Its resources are free then. Its files stay on the cluster; its log is not stored."),
        ]

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        try:
            orphans.end(actor, values["orphan"])
        except Unreachable as problem:
            raise NotDone(_("The cluster does not answer: %(error)s") % {"error": problem}) from problem
        return _("%(job)s is being ended.") % {"job": values["orphan"]}
