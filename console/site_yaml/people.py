"""People, local groups, group mappings and service accounts in site.yaml.

Passwords, tokens and keys have no place in a file.  A new person has no password:
`quotas.accounts.first_links` makes the link by which they set one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.site_yaml.shape import PersonShape, ServiceAccountShape, Site
from jobs.dialects.spans import escape
from quotas.accounts import groups, sessions
from quotas.audit import origin
from quotas.models import (
    GroupMapping,
    LocalGroup,
    LocalGroupRole,
    Membership,
    ServiceAccount,
    User,
    Workspace,
)

COLUMNS: Final = ("email", "first_name", "last_name", "break_glass", "directory_dn", "disabled_by")
"""Keys of a person that are columns of the same name."""


class ApplyRow(Protocol):
    """Gives a row values, and saves and reports it where they differ; see `import_plan`."""

    def __call__(
        self, row: Any, pointer: str, values: Mapping[str, Any], *, by_field: bool = False
    ) -> bool: ...


@dataclass(frozen=True, slots=True)
class Writer:
    """Puts and removes rows for a part of the file, and reports what changes or is wrong."""

    put: ApplyRow
    fault: Callable[[str, str], None]
    remove: Callable[[Any, str], None]
    note: Callable[[str, Mapping[str, tuple[Any, Any]]], None]
    prune: bool


@dataclass(slots=True)
class PeopleImport:
    """Makes people and groups as the file says."""

    site: Site
    write: Writer
    added: list[User] = field(default_factory=list)
    """Whom the file adds, who have no password."""

    def add_people(self) -> None:
        """Before workspaces, which name them as members."""
        local = {row.name: row for row in LocalGroup.objects.all()}
        for name, shape in self.site.groups.items():
            row = local.setdefault(name, LocalGroup(name=name))
            self.write.put(row, f"/groups/{escape(name)}", {"description": shape.description})
        known = {row.username: row for row in User.objects.filter(username__in=self.site.people)}
        for name, person in self.site.people.items():
            self._person(known.get(name), name, person, local)

    def _person(
        self, row: User | None, name: str, shape: PersonShape, local: Mapping[str, LocalGroup]
    ) -> None:
        at = f"/people/{escape(name)}"
        if row is not None and row.kind != User.Kind.PERSON:
            self.write.fault(at, _("Name already taken by a service account."))
            return
        is_new, was_active = row is None, row is not None and row.is_active
        if row is None:
            row = User(username=name)
            row.set_unusable_password()
        values = _values(row, shape)
        if is_new:
            values = {"username": name, **values}
        self.write.put(row, at, values, by_field=True)
        if not row.pk:  # a problem was reported
            return
        if is_new:
            self.added.append(row)
        if was_active and not row.is_active:
            sessions.end_all(row, why=origin.current().name or "site.yaml")
        if shape.groups is not None:
            self._put_in_groups(row, shape.groups, f"{at}/groups", local)

    def _put_in_groups(
        self, person: User, names: list[str], pointer: str, local: Mapping[str, LocalGroup]
    ) -> None:
        unknown = sorted({name for name in names if name not in local})
        for name in unknown:
            self.write.fault(pointer, _("Local group “%(name)s” not found.") % {"name": name})
        before = set(person.local_groups.values_list("name", flat=True))
        wanted = set(names) - set(unknown)
        groups_with_pk = {name: row for name, row in local.items() if row.pk}
        for name in sorted((before ^ wanted) & groups_with_pk.keys()):
            (groups_with_pk[name].people.add if name in wanted else groups_with_pk[name].people.remove)(
                person
            )
        if before != wanted:
            self.write.note(pointer, {"groups": (sorted(before), sorted(wanted))})

    def add_service_accounts(self, workspace: Workspace, shapes: Mapping[str, ServiceAccountShape]) -> None:
        """Before members, as each is one."""
        rows = ServiceAccount.objects.filter(workspace=workspace).select_related("user")
        known = {row.user.username: row for row in rows}
        for name, shape in shapes.items():
            at = f"/workspaces/{escape(workspace.slug)}/service_accounts/{escape(name)}"
            account = known.get(name)
            if account is None and User.objects.filter(username=name).exists():
                self.write.fault(at, _("Name already taken."))
                continue
            user = account.user if account else User(username=name, kind=User.Kind.SERVICE)
            if account is None:
                user.set_unusable_password()
            self.write.put(user, f"{at}/active", {"is_active": shape.active})
            if not user.pk:  # a problem was reported
                continue
            maker = User.objects.filter(username=shape.made_by).first() if shape.made_by else None
            account = account or ServiceAccount(
                user=user, workspace=workspace, made_by=maker or origin.current().person
            )
            self.write.put(account, at, {"contact": shape.contact, "about": shape.about})
            membership = Membership.objects.filter(user=user, workspace=workspace).first()
            membership = membership or Membership(user=user, workspace=workspace)
            self.write.put(membership, f"{at}/role", {"role": shape.role})

    def add_rights_of_groups(self) -> list[str]:
        """After workspaces, in which groups have roles; return what follows for memberships."""
        self._roles()
        self._mappings()
        if self.write.prune and "groups" in self.site.model_fields_set:
            for row in LocalGroup.objects.exclude(name__in=self.site.groups):
                self.write.remove(row, f"/groups/{escape(row.name)}")
        before = _count_by_groups()
        groups.apply_to_all()
        difference = _count_by_groups() - before
        if not difference:
            return []
        if difference > 0:
            text = ngettext(
                "%(count)s more membership by groups.", "%(count)s more memberships by groups.", difference
            )
        else:
            text = ngettext(
                "%(count)s membership by groups less.", "%(count)s memberships by groups less.", -difference
            )
        return [text % {"count": abs(difference)}]

    def _roles(self) -> None:
        spaces = {row.slug: row for row in Workspace.objects.all()}
        local = {row.name: row for row in LocalGroup.objects.prefetch_related("roles__workspace")}
        for name, shape in self.site.groups.items():
            group = local.get(name)
            if group is None:  # a problem was reported
                continue
            roles = {row.workspace.slug: row for row in group.roles.all()}
            at = f"/groups/{escape(name)}/workspaces"
            for slug, role in shape.workspaces.items():
                if slug not in spaces:
                    self.write.fault(f"{at}/{escape(slug)}", _("Workspace not found."))
                    continue
                row = roles.get(slug) or LocalGroupRole(group=group, workspace=spaces[slug])
                self.write.put(row, f"{at}/{escape(slug)}", {"role": role})
            if self.write.prune and "workspaces" in shape.model_fields_set:
                for slug in roles.keys() - shape.workspaces.keys():
                    self.write.remove(roles[slug], f"{at}/{escape(slug)}")

    def _mappings(self) -> None:
        spaces = {row.slug: row for row in Workspace.objects.all()}
        known = {(row.source, row.group, row.workspace_id): row for row in GroupMapping.objects.all()}
        named = set()
        for number, shape in enumerate(self.site.group_mappings):
            at = f"/group_mappings/{number}"
            workspace = spaces.get(shape.workspace) if shape.workspace else None
            if shape.workspace and workspace is None:
                self.write.fault(f"{at}/workspace", _("Workspace not found."))
                continue
            key = (shape.source, shape.group, workspace.pk if workspace else None)
            if key in named:
                self.write.fault(at, _("Duplicate name."))
                continue
            named.add(key)
            row = known.get(key) or GroupMapping(
                source=shape.source, group=shape.group, workspace=workspace, superuser=shape.superuser
            )
            self.write.put(row, at, {"role": shape.role})
        if self.write.prune and "group_mappings" in self.site.model_fields_set:
            for key in known.keys() - named:
                self.write.remove(known[key], f"/group_mappings/{escape(key[1])}")


def _values(row: User, shape: PersonShape) -> dict[str, Any]:
    """Return the columns that the file names."""
    values: dict[str, Any] = {name: value for name in COLUMNS if (value := getattr(shape, name)) is not None}
    if shape.unix_name is not None:
        values |= {"unix_name": shape.unix_name, "unix_name_from": ""}
    if shape.active is not None:
        values["is_active"] = shape.active
        if shape.active:
            values["disabled_by"] = ""
    if shape.superuser is not None:
        values |= {"is_superuser": shape.superuser, "admin_by_groups": False}
        if shape.superuser or row.is_superuser:
            values["is_staff"] = shape.superuser
    return values


def _count_by_groups() -> int:
    return Membership.objects.filter(by_groups=True).count()


def export_people() -> dict[str, dict[str, Any]]:
    """Return everybody as the file has them."""
    found = {}
    rows = User.objects.filter(kind=User.Kind.PERSON).prefetch_related("local_groups")
    for row in rows.order_by("username"):
        values: dict[str, Any] = {name: getattr(row, name) for name in COLUMNS}
        values |= {
            "unix_name": "" if row.unix_name_from else row.unix_name,
            "active": None if row.is_active else False,
            "superuser": row.is_superuser and not row.admin_by_groups,
            "groups": sorted(group.name for group in row.local_groups.all()),
        }
        order = [name for name in PersonShape.model_fields if values[name] not in ("", None, [])]
        found[row.username] = {
            name: values[name] for name in order if values[name] is not False or name == "active"
        }
    return found


def export_groups() -> dict[str, dict[str, Any]]:
    """Return local groups as the file has them."""
    found: dict[str, dict[str, Any]] = {}
    for row in LocalGroup.objects.prefetch_related("roles__workspace"):
        roles = {each.workspace.slug: str(each.role) for each in row.roles.all()}
        values = {"description": row.description, "workspaces": dict(sorted(roles.items()))}
        found[row.name] = {key: value for key, value in values.items() if value}
    return found


def export_group_mappings() -> list[dict[str, Any]]:
    """Return group mappings as the file has them."""
    found = []
    for row in GroupMapping.objects.select_related("workspace"):
        right: dict[str, Any] = {"superuser": True}
        if row.workspace is not None:
            right = {"workspace": row.workspace.slug, "role": str(row.role)}
        found.append({"source": row.source, "group": row.group, **right})
    return found


def export_service_accounts(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Return a workspace's service accounts as the file has them."""
    found = {}
    roles = dict(Membership.objects.filter(workspace=workspace).values_list("user_id", "role"))
    for row in ServiceAccount.objects.filter(workspace=workspace).select_related("user", "made_by"):
        values = {"role": str(roles.get(row.user_id, "developer")), "contact": row.contact}
        more = {"about": row.about, "made_by": row.made_by.username if row.made_by else ""}
        values |= {key: value for key, value in more.items() if value}
        found[row.user.username] = values if row.user.is_active else {**values, "active": False}
    return found
