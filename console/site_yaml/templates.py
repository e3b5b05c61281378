"""Job templates that people keep in site.yaml, by their ids.  A version never changes; new ones are added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _

from console.site_yaml.people import Writer
from console.site_yaml.shape import Site, TemplateShape, TemplateVersionShape
from jobs.dialects.base import Refused
from jobs.dialects.spans import escape
from jobs.messages.problems import problem_message
from jobs.models import Template, TemplateVersion
from jobs.submission import templates
from quotas.models import User, Workspace

_SAME: Final = ("content", "parameters", "constraints", "metadata", "notes")
"""Keys of a version that are columns of the same name."""


class TemplateImport:
    """Makes templates as the file says."""

    def __init__(self, site: Site, write: Writer) -> None:
        self._site, self._write = site, write
        self._spaces = {row.slug: row for row in Workspace.objects.all()}
        shapes = site.templates.values()
        names = {shape.owner for shape in shapes}
        names |= {each.made_by for shape in shapes for each in shape.versions if each.made_by}
        self._people = {row.username: row for row in User.objects.filter(username__in=names)}

    def run(self) -> None:
        """After people and workspaces, whose they are; those that the file leaves out stay."""
        rows = Template.objects.filter(public_id__in=self._site.templates).prefetch_related("versions")
        known = {row.public_id: row for row in rows}
        for key, shape in self._site.templates.items():
            at = f"/templates/{escape(key)}"
            if self._check_names(shape, at):
                new = Template(public_id=key, owner=self._people[shape.owner])
                self._one(known.get(key) or new, shape, at)

    def _one(self, row: Template, shape: TemplateShape, at: str) -> None:
        stored = {each.number: each for each in row.versions.all()} if row.pk else {}
        last = max(len(shape.versions), *stored, 0)
        if shape.default is not None and shape.default > last:
            self._write.fault(f"{at}/default", _("Too large."))
            return
        values = {
            "owner": self._people[shape.owner],
            "workspace": self._spaces[shape.workspace] if shape.workspace else None,
            "proposed_to": self._spaces[shape.proposed_to] if shape.proposed_to else None,
            "name": shape.name,
            "description": shape.description,
            "icon": shape.icon,
            "default_number": shape.default or last,
            "latest_number": last,
            "retired_at": (row.retired_at or timezone.now()) if shape.retired else None,
        }
        self._write.put(row, at, values)
        if not row.pk:  # a problem was reported
            return
        for number, version in enumerate(shape.versions, 1):
            self._version(row, stored.get(number), number, version, f"{at}/versions/{number - 1}")

    def _check_names(self, shape: TemplateShape, at: str) -> bool:
        user, workspace = _("User not found."), _("Workspace not found.")
        named: list[tuple[str, str | None, Mapping[str, Any], str]] = [
            ("owner", shape.owner, self._people, user),
            ("workspace", shape.workspace, self._spaces, workspace),
            ("proposed_to", shape.proposed_to, self._spaces, workspace),
        ]
        for number, each in enumerate(shape.versions):
            named.append((f"versions/{number}/made_by", each.made_by, self._people, user))
        problems = [(f"{at}/{key}", text) for key, name, known, text in named if name and name not in known]
        for pointer, text in problems:
            self._write.fault(pointer, text)
        return not problems

    def _version(
        self,
        template: Template,
        stored: TemplateVersion | None,
        number: int,
        shape: TemplateVersionShape,
        at: str,
    ) -> None:
        values: dict[str, Any] = {name: getattr(shape, name) for name in _SAME}
        values["dialect"] = shape.format
        if stored is not None:
            if any(getattr(stored, name) != value for name, value in values.items()):
                self._write.fault(at, _("A stored version can't change. Add a version after the last one."))
            return
        maker = self._people[shape.made_by] if shape.made_by else template.owner
        row = TemplateVersion(template=template, number=number, made_by=maker, **values)
        try:
            templates.chosen(row)
        except Refused as refused:
            for problem in refused.problems:
                self._write.fault(f"{at}/content", problem_message(problem))
        except ValueError as error:
            self._write.fault(at, str(error))
        else:
            self._write.put(row, at, values)


def export() -> dict[str, dict[str, Any]]:
    """Return all of them, with every version, as the file has them."""
    found = {}
    rows = Template.objects.select_related("owner", "workspace", "proposed_to")
    for row in rows.prefetch_related("versions__made_by").order_by("public_id"):
        versions = [_version(each, row) for each in sorted(row.versions.all(), key=lambda each: each.number)]
        values = {
            "owner": row.owner.username,
            "workspace": row.workspace.slug if row.workspace else None,
            "proposed_to": row.proposed_to.slug if row.proposed_to else None,
            "name": row.name,
            "description": row.description,
            "icon": row.icon,
            "retired": row.retired_at is not None,
            "default": None if row.default_number == row.latest_number else row.default_number,
            "versions": versions,
        }
        found[row.public_id] = _lean(TemplateShape, values)
    return found


def _version(row: TemplateVersion, template: Template) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in _SAME}
    values["format"] = row.dialect
    values["made_by"] = None if row.made_by_id == template.owner_id else row.made_by.username
    return _lean(TemplateVersionShape, values)


def _lean(shape: type[TemplateShape | TemplateVersionShape], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the file has to say, in the order of the shape."""
    return {
        name: values[name]
        for name, each in shape.model_fields.items()
        if each.is_required() or values[name] != each.get_default(call_default_factory=True)
    }
