"""The registry of sections: what each is called, what draws it, and from what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from jobs.forming.fields import Section, Words
from jobs.views.forming import basic, environment, faults, resources, roles
from jobs.views.forming.shown import Drawing
from quotas.models import User


@dataclass(frozen=True, slots=True)
class SectionOfPage:
    """`model` makes what `templates/jobs/new/sections/<id>.html` draws, as `section.model`."""

    id: Section
    label: Words
    model: Callable[[User, Drawing], Mapping[str, Any]]

    @property
    def template(self) -> str:
        """What draws it."""
        return f"jobs/new/sections/{self.id}.html"


SECTIONS: Final = (
    SectionOfPage(Section.BASIC, _("Basic information"), basic.model),
    SectionOfPage(Section.ENVIRONMENT, _("Environment"), environment.model),
    SectionOfPage(Section.RESOURCES, _("Resources"), resources.model),
    SectionOfPage(Section.FAULTS, _("Fault tolerance and diagnosis"), faults.model),
    SectionOfPage(Section.ROLES, _("Roles and permissions"), roles.model),
)
