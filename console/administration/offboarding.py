"""Offboarding on the incidents page: one act for everything of a person who leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.administration.incident import Incident, presence_effects
from jobs.admin import offboarding
from jobs.admin.offboarding import Leaving
from quotas.admin.bulk import WhyForm
from quotas.audit.action_record import Actor
from quotas.models import User


class OffboardForm(WhyForm):
    """Selects who leaves, and who takes over."""

    person = forms.CharField(label=gettext_lazy("User name"), max_length=150)
    heir = forms.CharField(
        label=gettext_lazy("Hand over to"),
        max_length=150,
        required=False,
        help_text=gettext_lazy(
            "User who gets the jobs, templates and drafts. Empty: running and waiting jobs are stopped."
        ),
    )
    field_order = ("person", "heir", "why")

    def clean_person(self) -> User:
        """Return the account."""
        return _find(self.cleaned_data["person"])

    def clean_heir(self) -> User | None:
        """Return the account that takes over, which has to be active."""
        name = self.cleaned_data["heir"]
        if not name:
            return None
        heir = _find(name)
        if not heir.is_active:
            raise ValidationError(_("This account is disabled."))
        return heir

    def clean(self) -> dict[str, Any] | None:
        """Refuse to hand over to the one who leaves."""
        cleaned = super().clean()
        person = self.cleaned_data.get("person")
        if person is not None and person == self.cleaned_data.get("heir"):
            self.add_error("heir", _("Select another user."))
        return cleaned


def _find(name: str) -> User:
    person = User.objects.filter(username=name, kind=User.Kind.PERSON).first()
    if person is None:
        raise ValidationError(_("User not found."))
    return person


class Offboard(Incident):
    """Offboard a person."""

    name, form, danger = "offboard", OffboardForm, True
    title = gettext_lazy("Offboard a user")
    button = gettext_lazy("Offboard")

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        person, heir = values["person"], values["heir"]
        found = offboarding.preview(person, heir)
        effects = [_("The account is disabled: %(person)s can't sign in.") % {"person": person}]
        if heir is not None:
            effects += _handover_effects(found, heir)
        ended = [text for text in presence_effects(found.ends) if heir is None or text not in _jobs(found)]
        if found.memberships:
            workspaces = ", ".join(found.memberships)
            ended.append(_("Removed from workspaces: %(workspaces)s") % {"workspaces": workspaces})
        effects += ended
        for workspace in found.left_without_admin:
            effects.append(_("%(workspace)s has no other admin.") % {"workspace": workspace})
        return effects

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        person, heir = values["person"], values["heir"]
        found = offboarding.offboard(actor, person, heir)
        params = {
            "person": person,
            "heir": heir,
            "jobs": found.handed.live_jobs + found.handed.ended_jobs,
            "stopped": found.ends.jobs - found.handed.live_jobs,
            "templates": found.handed.templates,
            "drafts": found.handed.drafts,
        }
        if heir is None:
            return _("%(person)s was offboarded. Jobs being stopped: %(stopped)s.") % params
        return (
            _(
                "%(person)s was offboarded. %(heir)s has %(jobs)s more jobs, %(templates)s templates and "
                "%(drafts)s drafts. Jobs being stopped: %(stopped)s."
            )
            % params
        )


def _jobs(found: Leaving) -> list[str]:
    """Return the sentence about all jobs, which is not so where some are handed over."""
    return presence_effects(found.ends)[:1]


def _handover_effects(found: Leaving, heir: User) -> list[str]:
    handed = found.handed
    texts = [
        (_("Running and waiting jobs handed to %(heir)s: %(count)s"), handed.live_jobs),
        (_("Ended jobs handed to %(heir)s: %(count)s"), handed.ended_jobs),
        (_("Templates handed to %(heir)s: %(count)s"), handed.templates),
        (_("Drafts handed to %(heir)s, with what was typed in them: %(count)s"), handed.drafts),
    ]
    effects = [text % {"heir": heir, "count": count} for text, count in texts]
    if handed.stopped_jobs:
        text = _(
            "Jobs stopped: %(count)s. %(heir)s can't submit in their workspace, or their cluster runs them "
            "as the owner's UNIX user."
        )
        effects.append(text % {"heir": heir, "count": handed.stopped_jobs})
    return effects
