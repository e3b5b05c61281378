"""Making things as site.yaml says, in one transaction, or saying what that would change.

A difference is found by doing it and taking it back: so it is what would happen, with every check and lock
that there is when it does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.site_yaml import announcements, assets, log_sinks, people, policies, storage, templates
from console.site_yaml.export import CLUSTER_COLUMNS, MICRO, name_in_tree, number
from console.site_yaml.parser import Fault, Read, Wrong
from console.site_yaml.people import Writer
from console.site_yaml.shape import IdleShape, QuotaShape, SpecShape, SpotShape, WorkspaceShape
from jobs import clusters
from jobs.assets import changes
from jobs.backends import registry
from jobs.dialects.spans import escape
from jobs.live import triggers
from quotas import audit, egress, ledger
from quotas.admission import decide, snapshot
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.clusters import encrypted_settings, gputypes, inventory
from quotas.egress import EgressKind
from quotas.ledger import reports
from quotas.models import (
    Action,
    Cluster,
    GpuType,
    Membership,
    Node,
    NodeState,
    Quota,
    Spec,
    SpotPrice,
    User,
    Way,
    Workspace,
)

SHOWN: Final[Mapping[str, tuple[str, int]]] = {
    "price_micro": ("price", MICRO),
    "market_micro": ("market", MICRO),
    "cpu_milli": ("cores", 1000),
    "memory_mib": ("memory_gib", 1024),
    "most_jobs": ("jobs", 1),
    "person_gpus": ("person.gpus", 1),
    "person_cpu_milli": ("person.cores", 1000),
    "person_memory_mib": ("person.memory_gib", 1024),
    "person_jobs": ("person.jobs", 1),
    "is_active": ("active", 1),
    "is_superuser": ("superuser", 1),
    "parent": ("part_of", 1),
}
"""Columns that the file calls otherwise, and how much of a column's unit is one of the file's."""

MARKS: Final = {"create": "+", "update": "~", "delete": "-"}


@dataclass(frozen=True, slots=True)
class Change:
    """One row that is made, changed or removed; `values` has (before, after)."""

    action: str
    pointer: str
    values: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def __str__(self) -> str:
        text = "; ".join(f"{name} {_text(old)} → {_text(new)}" for name, (old, new) in self.values.items())
        return f"{MARKS[self.action]} {self.pointer}" + (
            f": {text}" if text and self.action == "update" else ""
        )


@dataclass(slots=True)
class Applied:
    """The changes, and their effects."""

    changes: list[Change] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    drains: bool = False
    """Whether a limit of what is changed is below what is in use."""
    people: list[User] = field(default_factory=list)
    """Whom it adds, who have no password yet."""

    @property
    def digest(self) -> str:
        """All of it in short, with the values of new rows."""
        return hashlib.sha256("\n".join((*map(repr, self.changes), *self.effects)).encode()).hexdigest()


def _text(value: Any) -> str:
    return "–" if value in (None, "", {}, []) else str(value)


def apply(
    read: Read,
    *,
    prune: bool = False,
    dry: bool = False,
    revision: str = "",
    name: str = "site.yaml",
    by: Origin | None = None,
) -> Applied:
    """Make things so, or with `dry` find out what would change; `by` is who does, the file without a word.

    Raises Wrong.
    """
    name = f"{name}@{revision}" if revision else name
    with origin.of(by or Origin(Way.COMMAND, name=name)), transaction.atomic(), ExitStack() as locks:
        for cluster in Cluster.objects.order_by("pk"):
            locks.enter_context(ledger.lock_cluster(cluster.pk))
        applied = _Applying(read, prune=prune).run()
        if dry:
            transaction.set_rollback(True)
        elif applied.changes:
            audit.log(Action.APPLY, name=name, details={"changes": len(applied.changes), "prune": prune})
    return applied


_Key: TypeAlias = tuple[str, str, str]
"""Of a quota: its cluster, its workspace and its own short name."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A quota of the file; `above` is the key of the one that it is part of."""

    row: Quota
    shape: QuotaShape
    above: _Key | None
    pointer: str


class _Applying:
    """The state of one run."""

    def __init__(self, read: Read, *, prune: bool) -> None:
        self._read, self._prune = read, prune
        self._site = read.site
        self._types: dict[str, str] = {}
        self._applied = Applied()
        self._faults: list[Fault] = []
        self._clusters = {row.slug: row for row in Cluster.objects.all()}
        self._touched: dict[int, str] = {}
        self._changed: set[int] = set()
        self._writer = Writer(self._apply_row, self._fault, self._remove, self._note, prune)
        self._of_people = people.PeopleImport(read.site, self._writer)

    def run(self) -> Applied:
        before = {row.pk: _admission(row) for row in self._clusters.values()}
        self._gpu_types()
        self._types = gputypes.names()
        self._of_people.add_people()
        self._workspaces()
        self._applied.effects += self._of_people.add_rights_of_groups()
        self._nodes_and_prices()
        self._specs()
        self._assets()
        self._storage()
        templates.TemplateImport(self._site, self._writer).run()
        announcements.apply(self._site, self._writer)
        self._check_trees()
        if self._faults:
            transaction.set_rollback(True)
            raise Wrong(self._faults)
        self._tell_effects(before)
        self._applied.people = self._of_people.added
        for pk in self._changed:
            triggers.trigger_on_commit("drain", pk)
        return self._applied

    # --- one row ---------------------------------------------------------------------------------------

    def _fault(self, pointer: str, text: str) -> None:
        self._faults.append(self._read.fault(pointer, text))

    def _apply_row(
        self, row: models.Model, pointer: str, values: Mapping[str, Any], *, by_field: bool = False
    ) -> bool:
        """Give `row` the `values`; save and report it only where they differ.

        With `by_field` the keys of the file are the columns, and a problem is at its own.
        """
        new = row.pk is None
        changes = {
            name: (getattr(row, name), value)
            for name, value in values.items()
            if new or getattr(row, name) != value
        }
        if not changes and not new:
            return False
        for name, value in values.items():
            setattr(row, name, value)
        try:
            row.clean_fields()
            if not isinstance(row, Quota):  # whose tree is checked once all of it is there
                row.clean()
            row.validate_constraints()
        except ValidationError as error:
            named = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
            for name, texts in named.items():
                for text in texts:
                    self._fault(f"{pointer}/{name}" if by_field and name in values else pointer, text)
            return False
        row.save()
        self._applied.changes.append(Change("create" if new else "update", pointer, _to_file_units(changes)))
        return True

    def _remove(self, row: models.Model, pointer: str) -> None:
        try:
            with transaction.atomic():
                row.delete()
        except ProtectedError:
            self._faults.append(
                Fault(pointer, _("Already used, so it can't be removed. Set it to accept no jobs instead."))
            )
            return
        self._applied.changes.append(Change("delete", pointer))

    # --- the parts of the file -------------------------------------------------------------------------

    def _gpu_types(self) -> None:
        known = {row.name: row for row in GpuType.objects.all()}
        for name, aliases in self._site.gpu_types.items():
            self._apply_row(
                known.get(name) or GpuType(name=name), f"/gpu_types/{escape(name)}", {"aliases": aliases}
            )
        if self._prune and "gpu_types" in self._site.model_fields_set:
            for name in known.keys() - self._site.gpu_types.keys():
                self._remove(known[name], f"/gpu_types/{escape(name)}")

    def _workspaces(self) -> None:
        known = {row.slug: row for row in Workspace.objects.all()}
        rows = []
        for slug, shape in self._site.workspaces.items():
            pointer = f"/workspaces/{escape(slug)}"
            row = known.get(slug) or Workspace(slug=slug)
            values: dict[str, Any] = {"name": shape.name or row.name or slug}
            for column in ("vendor_id", "description"):
                if column in shape.model_fields_set:
                    values[column] = getattr(shape, column)
            if shape.egress is not None:
                values["egress"] = self._egress(shape.egress, f"{pointer}/egress")
            self._apply_row(row, pointer, values)
            if row.pk is not None:
                rows.append((row, shape, pointer))
                self._of_people.add_service_accounts(row, shape.service_accounts)
        for row, shape, pointer in rows:
            self._members(row, shape, pointer)
            self._log_sinks(row, shape, f"{pointer}/log_sinks")
        self._quotas(rows)

    def _log_sinks(self, workspace: Workspace, shape: WorkspaceShape, pointer: str) -> None:
        left_out = log_sinks.apply(workspace, shape.log_sinks, pointer, self._apply_row, self._fault)
        if self._prune and "log_sinks" in shape.model_fields_set:
            for row, at in left_out:
                self._remove(row, at)

    def _egress(self, wanted: str | list[str], pointer: str) -> list[str]:
        if not isinstance(wanted, list):
            return egress.internet() if wanted == EgressKind.INTERNET else []
        try:
            return egress.parse_rules(wanted)
        except ValidationError as error:
            for text in error.messages:
                self._fault(pointer, text)
            return []

    def _members(self, workspace: Workspace, shape: WorkspaceShape, pointer: str) -> None:
        people = {row.username: row for row in User.objects.filter(username__in=shape.members)}
        known = {
            row.user.username: row
            for row in Membership.objects.filter(workspace=workspace).select_related("user")
        }
        for name, role in shape.members.items():
            at = f"{pointer}/members/{escape(name)}"
            if name not in people:
                if name not in self._site.people:  # else its problem has been reported
                    self._fault(at, _("User not found."))
                continue
            member = known.get(name) or Membership(workspace=workspace, user=people[name])
            self._apply_row(member, at, {"role": role, "by_groups": False})
        if self._prune:
            for name in known.keys() - shape.members.keys() - shape.service_accounts.keys():
                if not known[name].by_groups:  # else the groups say so
                    self._remove(known[name], f"{pointer}/members/{escape(name)}")

    def _quotas(self, workspaces: Sequence[tuple[Workspace, WorkspaceShape, str]]) -> None:
        """Make the quotas of all workspaces, each after the one that it is part of, wherever that stands."""
        rows = Quota.objects.select_related("cluster", "workspace", "parent__workspace")
        known = {(row.cluster.slug, row.workspace.slug, row.slug): row for row in rows}
        waiting = self._find_quotas(workspaces, known)
        named = set(waiting)
        while waiting:
            ready = [key for key, each in waiting.items() if each.above not in waiting]
            for key in ready or waiting:  # those left are parts of each other: the tree says so
                each = waiting.pop(key) if ready else waiting[key]
                above = known.get(each.above) if each.above else None
                if above is not None and not above.pk:
                    self._fault(each.pointer, _("A quota can't be its own parent."))
                    continue
                self._quota(each.row, each.shape, above, each.pointer)
            if not ready:
                break
        if self._prune:
            here = {workspace.slug: pointer for workspace, _shape, pointer in workspaces}
            gone = [row for key, row in known.items() if key not in named and key[1] in here and row.pk]
            for row in sorted(gone, key=_depth, reverse=True):
                at = f"{here[row.workspace.slug]}/quotas"
                self._remove(row, f"{at}/{escape(row.cluster.slug)}/{escape(row.slug)}")

    def _find_quotas(
        self, workspaces: Sequence[tuple[Workspace, WorkspaceShape, str]], known: dict[_Key, Quota]
    ) -> dict[_Key, _Wanted]:
        """Return the quotas of the file; `known` gets the new ones."""
        found: dict[_Key, _Wanted] = {}
        for workspace, shape, pointer in workspaces:
            for slug, quotas in shape.quotas.items():
                cluster = self._clusters.get(slug)
                at = f"{pointer}/quotas/{escape(slug)}"
                if cluster is None:
                    self._fault(at, _("Cluster not found."))
                    continue
                for name, quota, parent, where in _flat(quotas, at):
                    key = (slug, workspace.slug, name)
                    if key in found:
                        self._fault(where, _("Duplicate quota name in the file."))
                    elif parent and quota.part_of:
                        self._fault(f"{where}/part_of", _("Unknown key."))
                    else:
                        row = known.get(key) or Quota(workspace=workspace, cluster=cluster, slug=name)
                        above = (slug, workspace.slug, parent) if parent else _above(slug, quota)
                        found[key] = _Wanted(row, quota, above, where)
        known |= {key: each.row for key, each in found.items()}
        for key, each in list(found.items()):
            if each.above is not None and each.above not in known:
                self._fault(f"{each.pointer}/part_of", _nothing_called(each.shape.part_of))
                del found[key]
        return found

    def _quota(self, row: Quota, shape: QuotaShape, above: Quota | None, pointer: str) -> None:
        types = {gputypes.canonical(kind, self._types): count for kind, count in shape.gpus_by_type.items()}
        values = {
            **_quota_values(shape),
            "gpus_by_type": types,
            "name": shape.name or row.name or row.slug,
            "parent": above,
        }
        if self._apply_row(row, pointer, values):
            self._touched[row.pk] = pointer
            self._changed.add(row.cluster_id)
        if row.pk is not None:
            self._exempt_people(row, shape.idle, f"{pointer}/idle/exempt_people")
            self._policies(row, shape, f"{pointer}/policies")

    def _policies(self, quota: Quota, shape: QuotaShape, pointer: str) -> None:
        if shape.policies is None:
            return
        for row, at in policies.apply(quota, shape.policies, pointer, self._apply_row, self._fault):
            self._remove(row, at)

    def _exempt_people(self, quota: Quota, shape: IdleShape, pointer: str) -> None:
        people = {row.username: row for row in User.objects.filter(username__in=shape.exempt_people)}
        for name in sorted(set(shape.exempt_people) - people.keys()):
            self._fault(pointer, _nothing_called(name))
        before = sorted(row.username for row in quota.idle_exempt_people.all())
        if before != sorted(people):
            quota.idle_exempt_people.set(people.values())
            self._applied.changes.append(
                Change("update", pointer, {"exempt_people": (before, sorted(people))})
            )

    def _nodes_and_prices(self) -> None:
        for slug, shape in self._site.clusters.items():
            pointer = f"/clusters/{escape(slug)}"
            cluster = self._clusters.get(slug)
            if cluster is None:
                self._fault(pointer, _("Cluster not found."))
                continue
            own = {name: value for name in CLUSTER_COLUMNS if (value := getattr(shape, name)) is not None}
            self._apply_row(cluster, pointer, own)
            if shape.settings is not None:
                self._settings(cluster, shape.settings, f"{pointer}/settings")
            nodes = {row.name: row for row in Node.objects.filter(cluster=cluster).select_related("cluster")}
            for name, wanted in shape.nodes.items():
                at = f"{pointer}/nodes/{escape(name)}"
                node = nodes.get(name)
                if node is None:
                    self._fault(at, _("Node not found in the cluster."))
                elif (node.state, node.state_why) != (wanted.state, wanted.why):
                    state = NodeState(wanted.state)
                    values = {"state": (node.state, wanted.state), "why": (node.state_why, wanted.why)}
                    changes = {key: pair for key, pair in values.items() if pair[0] != pair[1]}
                    inventory.decide(
                        Node.objects.filter(pk=node.pk), state, by=origin.current().person, why=wanted.why
                    )
                    self._applied.changes.append(Change("update", at, changes))
                    self._changed.add(cluster.pk)
            if shape.spot_prices is not None:
                self._spot_prices(cluster, shape.spot_prices, pointer)

    def _settings(self, cluster: Cluster, config: Mapping[str, Any], pointer: str) -> None:
        """Give a cluster settings that its backend takes; secrets that are masked stay as they are."""
        shown = encrypted_settings.mask(cluster.config)
        if config == shown:
            return
        try:
            encrypted = encrypted_settings.encrypt(config, cluster.config)
        except encrypted_settings.SecretsNeeded as again:
            for name in again.names:
                self._fault(f"{pointer}/{name}", _("Enter this again: the connection address changes."))
            return
        registration = registry.find(cluster.backend)
        problems = clusters.check_settings(registration, encrypted)
        for problem in problems:
            at = "".join(f"/{escape(part)}" for part in problem.name.split(".") if part)
            self._fault(pointer + at, _(registration.sentence(problem)) % problem.params)
        if not problems:
            cluster.config = encrypted
            cluster.save(update_fields=["config"])
            changes = {"settings": (shown, encrypted_settings.mask(encrypted))}
            self._applied.changes.append(Change("update", pointer, changes))

    def _spot_prices(self, cluster: Cluster, prices: Iterable[SpotShape], pointer: str) -> None:
        known = {
            (row.gpu_type, row.from_hour, row.until_hour): row
            for row in SpotPrice.objects.filter(cluster=cluster)
        }
        named = set()
        for number_, price in enumerate(prices):
            at = f"{pointer}/spot_prices/{number_}"
            key = (price.gpu_type, price.from_hour, price.until_hour)
            if (price.from_hour is None) != (price.until_hour is None):
                self._fault(at, _("Enter both hours or neither."))
                continue
            named.add(key)
            kind, first, last = key
            row = known.get(key) or SpotPrice(
                cluster=cluster, gpu_type=kind, from_hour=first, until_hour=last
            )
            values = {"market_micro": round(price.market * MICRO), "price_micro": round(price.price * MICRO)}
            if self._apply_row(row, at, values):
                self._changed.add(cluster.pk)
        if self._prune:
            for key in known.keys() - named:
                self._remove(known[key], f"{pointer}/spot_prices/{key[0]}")

    def _specs(self) -> None:
        spaces = {row.slug: row for row in Workspace.objects.all()}
        known = {(row.name, row.cluster_id, row.workspace_id): row for row in Spec.objects.all()}
        named = set()
        for number_, shape in enumerate(self._site.specs):
            at = f"/specs/{number_}"
            places = self._spec_scope(shape, at, spaces)
            if places is None:
                continue
            cluster, workspace = places
            key = (shape.name, cluster.pk if cluster else None, workspace.pk if workspace else None)
            named.add(key)
            row = known.get(key) or Spec(name=shape.name, cluster=cluster, workspace=workspace)
            values = {
                "description": shape.description,
                "cpu_milli": round(shape.cores * 1000),
                "memory_mib": round(shape.memory_gib * 1024),
                "gpus": dict(shape.gpus),
                "price_micro": round(shape.price * MICRO),
                "offered": shape.offered,
            }
            self._apply_row(row, at, values)
        if self._prune and "specs" in self._site.model_fields_set:
            for key in known.keys() - named:
                self._remove(known[key], f"/specs/{escape(key[0])}")

    def _assets(self) -> None:
        """After workspaces, which they are of; what jobs were made of is retired, the rest removed."""
        applying = assets.Applying(self._site, self._apply_row, self._fault)
        applying.run()
        for row, at in applying.left_out() if self._prune else ():
            if not row.is_retired:
                changes.take_away(row)
                self._applied.changes.append(Change("delete", at))

    def _storage(self) -> None:
        """After workspaces and clusters, which they name."""
        applying = storage.Applying(self._site.storage, self._apply_row, self._fault, self._note)
        if self._prune and "storage" in self._site.model_fields_set:
            for row, at in applying.left_out():
                self._remove(row, at)
        applying.run()

    def _note(self, pointer: str, values: Mapping[str, tuple[Any, Any]]) -> None:
        """Report a change of what belongs to a row."""
        self._applied.changes.append(Change("update", pointer, values))

    def _spec_scope(
        self, shape: SpecShape, at: str, spaces: Mapping[str, Workspace]
    ) -> tuple[Cluster | None, Workspace | None] | None:
        cluster = self._clusters.get(shape.cluster) if shape.cluster else None
        workspace = spaces.get(shape.workspace) if shape.workspace else None
        if shape.cluster and cluster is None:
            self._fault(f"{at}/cluster", _("Cluster not found."))
            return None
        if shape.workspace and workspace is None:
            self._fault(f"{at}/workspace", _("Workspace not found."))
            return None
        return cluster, workspace

    # --- the whole -------------------------------------------------------------------------------------

    def _check_trees(self) -> None:
        """Once everything is as it will be: halfway, a tree may promise more than it holds."""
        for row in Quota.objects.filter(pk__in=self._touched):
            try:
                row.clean()
            except ValidationError as error:
                for text in error.messages:
                    self._fault(self._touched[row.pk], text)

    def _tell_effects(self, before: Mapping[int, tuple[int, int]]) -> None:
        for row in Quota.objects.filter(pk__in=self._touched).order_by("pk"):
            drained = _effects_of_lower_limits(row, self._touched[row.pk])
            self._applied.effects += drained
            self._applied.drains |= bool(drained)
        for cluster in self._clusters.values():
            if cluster.pk in self._changed and (now := _admission(cluster)) != before[cluster.pk]:
                starts, taken = before[cluster.pk]
                self._applied.effects.append(
                    _(
                        "%(cluster)s: of the waiting jobs, %(starts)s would start now instead of "
                        "%(started)s, and %(taken)s would return borrowed resources instead of %(took)s."
                    )
                    % {
                        "cluster": cluster.slug,
                        "starts": now[0],
                        "started": starts,
                        "taken": now[1],
                        "took": taken,
                    }
                )


def _flat(
    quotas: Mapping[str, QuotaShape], pointer: str, parent: str | None = None
) -> Iterator[tuple[str, QuotaShape, str | None, str]]:
    """(short name, quota, that of which it is part, where), each before those in it."""
    for name, quota in quotas.items():
        at = f"{pointer}/{escape(name)}"
        yield name, quota, parent, at
        yield from _flat(quota.quotas, f"{at}/quotas", name)


def _nothing_called(name: str) -> str:
    return _("“%(name)s” not found.") % {"name": name}


def _above(cluster: str, shape: QuotaShape) -> _Key | None:
    """Return the key of the quota that `part_of` names."""
    workspace, _slash, slug = shape.part_of.partition("/")
    return (cluster, workspace, slug) if shape.part_of else None


def _depth(row: Quota) -> int:
    seen, above = {row.pk}, row.parent
    while above is not None and above.pk not in seen:  # a tree that is part of itself is refused only then
        seen.add(above.pk)
        above = above.parent
    return len(seen)


def _quota_values(shape: QuotaShape) -> dict[str, Any]:
    person = shape.person
    idle = shape.idle.model_dump(exclude={"exempt_people"})
    return {
        **{f"idle_{name}": value for name, value in idle.items()},
        "source": shape.source,
        "kind": shape.kind,
        "accepts_jobs": shape.accepts_jobs,
        "gpus": shape.gpus,
        "cpu_milli": _whole(shape.cores, 1000),
        "memory_mib": _whole(shape.memory_gib, 1024),
        "most_jobs": shape.jobs,
        "gpu_hours": shape.gpu_hours,
        "period": shape.period,
        "person_gpus": person.gpus,
        "person_cpu_milli": _whole(person.cores, 1000),
        "person_memory_mib": _whole(person.memory_gib, 1024),
        "person_jobs": person.jobs,
        "may_borrow": shape.may_borrow,
        "fair_share_weight": shape.fair_share_weight,
        "least_running_minutes": shape.least_running_minutes,
        "most_pending": shape.most_pending,
    }


def _to_file_units(changes: Mapping[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """Return changes of columns as the file says them: its names and units."""
    found = {}
    for column, (before, after) in changes.items():
        name, unit = SHOWN.get(column, (column.replace("idle_", "idle.", 1), 1))
        found[name] = (_in_unit(before, unit), _in_unit(after, unit))
    return found


def _in_unit(value: Any, unit: int) -> Any:
    if isinstance(value, Quota):
        return name_in_tree(value)
    return number(value, unit) if unit > 1 else value


def _whole(value: float | None, unit: int) -> int | None:
    return None if value is None else round(value * unit)


def _admission(cluster: Cluster) -> tuple[int, int]:
    """How many of those that wait would start, and how many would give back, if it were decided now."""
    outcome = decide(snapshot.take(cluster))
    return sum(decision.admitted for decision in outcome.decisions), len(outcome.taken_back)


def _effects_of_lower_limits(quota: Quota, pointer: str) -> list[str]:
    """Return the effects where a limit is below current use."""
    held, jobs = reports.held_in(quota)
    pairs = [
        (_("GPUs"), held.gpu_count, quota.gpus),
        (_("cores"), number(held.cpu_milli, 1000), number(quota.cpu_milli, 1000)),
        (_("GiB"), number(held.memory_mib, 1024), number(quota.memory_mib, 1024)),
        *((kind, held.gpus.get(kind, 0), limit) for kind, limit in quota.gpus_by_type.items()),
    ]
    text = ngettext(
        "%(where)s: %(jobs)s job uses %(used)s %(what)s, above the limit of %(limit)s. Running "
        "jobs finish; no new jobs start until usage drops.",
        "%(where)s: %(jobs)s jobs use %(used)s %(what)s, above the limit of %(limit)s. Running "
        "jobs finish; no new jobs start until usage drops.",
        jobs,
    )
    effects = [
        text % {"where": pointer, "jobs": jobs, "used": used, "what": what, "limit": limit}
        for what, used, limit in pairs
        if limit is not None and used is not None and used > limit
    ]
    if quota.most_jobs is not None and jobs > quota.most_jobs:
        text = ngettext(
            "%(where)s: %(jobs)s concurrent job, above the limit of %(limit)s. Running jobs finish; no "
            "new jobs start until usage drops.",
            "%(where)s: %(jobs)s concurrent jobs, above the limit of %(limit)s. Running jobs finish; no "
            "new jobs start until usage drops.",
            jobs,
        )
        effects.append(text % {"where": pointer, "jobs": jobs, "limit": quota.most_jobs})
    return effects
