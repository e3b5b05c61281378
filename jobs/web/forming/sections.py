"""The registry of sections: what each is called, what draws it, and from what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields import Words
from jobs.web.forming import basic, environment, faults, resources, roles
from jobs.web.forming.shown import Drawing
from quotas.models import User


@dataclass(frozen=True, slots=True)
class SectionOfPage:
    """`model` makes what `templates/jobs/new/sections/<id>.html` draws, as `section.model`."""

    id: str
    label: Words
    model: Callable[[User, Drawing], Mapping[str, Any]]

    @property
    def template(self) -> str:
        """What draws it."""
        return f"jobs/new/sections/{self.id}.html"


SECTIONS: Final = (
    SectionOfPage("basic", _("Basic information"), basic.model),
    SectionOfPage("environment", _("Environment"), environment.model),
    SectionOfPage("resources", _("Resources"), resources.model),
    SectionOfPage("faults", _("Fault tolerance and diagnosis"), faults.model),
    SectionOfPage("roles", _("Roles and permissions"), roles.model),
)
