"""Quotas from an engine's own accounts: its limits in the form of a site.yaml, and applied like one.

An account at the top is a workspace with a quota, accounts in it are quotas in that.  Nothing is removed, and
what a quota cannot express is reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from console.site_yaml.export import name_in_tree, number
from console.site_yaml.export import quota as as_written
from console.site_yaml.import_plan import Applied, Change, apply
from console.site_yaml.parser import read
from console.site_yaml.shape import SLUG
from jobs.backends.accounts import Account, Accounting, AccountLimits, AccountTree
from jobs.clusters import backend_for
from quotas import audit
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.clusters import gputypes
from quotas.models import Action, Cluster, Membership, Quota, Role, User, Way, Workspace

TOP, USUAL = 9, 5
"""The highest priority of jobs, and the one that qualities of service are not given from."""

NORMAL: Final = "normal"
"""The quality of service that Slurm makes by itself."""

LIMIT_KEYS: Final = ("gpus", "gpus_by_type", "cores", "memory_gib", "jobs")


class NoAccounts(Exception):
    """The cluster's engine keeps no accounts."""

    def __str__(self) -> str:
        return _("This cluster has no accounts.")


class NotChosen(Exception):
    """The cluster's settings do not say that quotas are written into its accounts."""

    def __str__(self) -> str:
        return _("Not allowed by the cluster's settings. Set write_back to true there.")


@dataclass(slots=True)
class Imported:
    """The changes of an import, and what it could not express."""

    applied: Applied
    left: list[str]


def import_quotas(cluster: Cluster, *, dry: bool = False, by: Origin | None = None) -> Imported:
    """Make quotas as the cluster's accounts are, or with `dry` find out what would change; `by` is who wants
    it, a command without a word.

    Raises NoAccounts, Unreachable, and Wrong.
    """
    backend = backend_for(cluster)
    tree = backend.read_accounts() if isinstance(backend, Accounting) else AccountTree()
    if not tree.accounts:
        raise NoAccounts
    builder = _SiteBuilder(cluster, tree)
    name = f"import_accounts {cluster.slug}"
    by = by or Origin(Way.COMMAND, name=name)
    with transaction.atomic(), origin.of(by):
        applied = apply(read(json.dumps(builder.site())), dry=dry, name=name, by=by)
        before = dict(cluster.config)
        after = {**before, **builder.settings()}
        if before != after:
            values = {key: (before.get(key), after[key]) for key in after if before.get(key) != after[key]}
            applied.changes.append(Change("update", f"/clusters/{cluster.slug}/settings", values))
            if not dry:
                cluster.config = after
                cluster.save(update_fields=["config"])
    return Imported(applied, builder.left)


def import_tree(cluster: Cluster, tree: AccountTree, *, dry: bool, name: str, by: Origin) -> Imported:
    """Make quotas as accounts of another system are; the cluster's settings stay.  Raises Wrong."""
    builder = _SiteBuilder(cluster, tree)
    with transaction.atomic(), origin.of(by):
        applied = apply(read(json.dumps(builder.site())), dry=dry, name=name, by=by)
    return Imported(applied, builder.left)


def export_limits(cluster: Cluster, *, dry: bool = False, by: Origin | None = None) -> Imported:
    """Write the limits of quotas into the accounts that they are of, or with `dry` say what would be; see
    `import_quotas`.

    Only accounts that are there, and only what differs; where a quota has no limit, the account's stays.
    Raises NoAccounts, NotChosen and Unreachable.
    """
    if cluster.config.get("write_back") is not True:
        raise NotChosen
    backend = backend_for(cluster)
    if not isinstance(backend, Accounting) or not (tree := backend.read_accounts()).accounts:
        raise NoAccounts
    given = Imported(Applied(), [])
    spaces = _SiteBuilder(cluster, tree).workspaces_by_account()
    quotas = {(row.workspace.slug, row.slug): row for row in _quotas(cluster)}
    slurms = {
        gputypes.canonical(kind, gputypes.names()): kind
        for each in tree.accounts
        for kind in each.all_of_it.gpus_by_type
    }
    for account in tree.accounts:
        row = quotas.get((spaces.get(account.name, ""), account.name))
        if row is None:
            continue
        for kind in sorted(row.gpus_by_type.keys() - slurms.keys()):
            text = _("%(account)s: no Slurm account has a limit for GPUs of type %(type)s.")
            given.left.append(text % {"account": account.name, "type": kind})
        wanted, jobs_of_one = _limit_changes(row, account, slurms)
        before = _dump_limits(account.all_of_it)
        after = {**before, **_dump_limits(wanted)}
        if wanted.gpus_by_type:
            after["gpus_by_type"] = {**before.get("gpus_by_type", {}), **after["gpus_by_type"]}
        if jobs_of_one is not None:
            before["jobs_of_one"], after["jobs_of_one"] = account.jobs_of_one, jobs_of_one
        values = {key: (before.get(key), after[key]) for key in after if before.get(key) != after[key]}
        if not values:
            continue
        given.applied.changes.append(Change("update", f"/accounts/{account.name}", values))
        if not dry:
            backend.limit(account.name, wanted, jobs_of_one)
            details = {key: [str(old), str(new)] for key, (old, new) in values.items()}
            with origin.of(by or Origin(Way.COMMAND, name=f"export_accounts {cluster.slug}")):
                audit.log(Action.APPLY, cluster, name=account.name, details=details)
    return given


def _quotas(cluster: Cluster) -> Iterator[Quota]:
    yield from Quota.objects.filter(cluster=cluster).select_related("workspace")


def _limit_changes(
    row: Quota, account: Account, slurms: Mapping[str, str]
) -> tuple[AccountLimits, int | None]:
    """Return the limits that differ, in whole CPUs, by Slurm's names of types."""
    has = account.all_of_it
    types = {slurms[kind]: count for kind, count in row.gpus_by_type.items() if kind in slurms}
    cpus = None if row.cpu_milli is None else row.cpu_milli // 1000

    def new(value: int | None, old: int | None) -> int | None:
        return None if value == old else value

    limits = AccountLimits(
        cpus=new(cpus, has.cpus),
        memory_mib=new(row.memory_mib, has.memory_mib),
        gpus=new(row.gpus, has.gpus),
        gpus_by_type={kind: count for kind, count in types.items() if has.gpus_by_type.get(kind) != count},
        jobs=new(row.most_jobs, has.jobs),
    )
    return limits, new(row.person_jobs, account.jobs_of_one)


@dataclass(slots=True)
class _SiteBuilder:
    """Builds a site.yaml document from one cluster's accounts."""

    cluster: Cluster
    tree: AccountTree
    left: list[str] = field(default_factory=list)
    _spaces: dict[str, str] = field(default_factory=dict)

    def site(self) -> dict[str, Any]:
        """The file."""
        self.left += self.tree.more
        accounts = [each for each in self.tree.accounts if self._has_name(each)]
        known = {each.name for each in accounts}
        tops = [each for each in accounts if each.parent not in known]
        workspaces = {}
        for top in tops:
            slug = self._spaces[top.name] = self._workspace(top)
            family = [top, *_below(top, accounts)]
            workspaces[slug] = self._space(slug, top, family)
        self._tell_qualities()
        return {"version": 1, "workspaces": workspaces}

    def workspaces_by_account(self) -> dict[str, str]:
        """The workspace of every account."""
        parents = {each.name: each.parent for each in self.tree.accounts}
        found = {}
        for account in self.tree.accounts:
            top = account
            while top.parent in parents:
                top = next(each for each in self.tree.accounts if each.name == top.parent)
            found[account.name] = self._workspace(top)
        return found

    def settings(self) -> dict[str, Any]:
        """Return the cluster's settings for submission: the account of each workspace, and QOS."""
        accounts = dict(self.cluster.config.get("accounts") or {})
        usual = self.cluster.config.get("account")
        for account, slug in self._spaces.items():
            if slug not in accounts and account != usual:
                accounts[slug] = account
        found: dict[str, Any] = {"accounts": accounts} if accounts else {}
        if not self.cluster.config.get("qos") and (qos := self._priorities()):
            found["qos"] = qos
        return found

    def _has_name(self, account: Account) -> bool:
        if fine := SLUG.fullmatch(account.name) is not None:
            return fine
        self.left.append(_("%(account)s: not a valid short name.") % {"account": account.name})
        return False

    def _workspace(self, top: Account) -> str:
        """The workspace whose jobs go to the account."""
        named = sorted(
            slug
            for slug, account in (self.cluster.config.get("accounts") or {}).items()
            if account == top.name and SLUG.fullmatch(slug)
        )
        if len(named) > 1:
            text = _("%(account)s: shared by several workspaces; the quota is assigned to %(workspace)s.")
            self.left.append(text % {"account": top.name, "workspace": named[0]})
        return named[0] if named else top.name

    def _space(self, slug: str, top: Account, family: Sequence[Account]) -> dict[str, Any]:
        row = Workspace.objects.filter(slug=slug).first()
        for account in family:
            self.left += [f"{account.name}: {limit}" for limit in account.more]
        return {
            "name": row.name if row else slug,
            "description": row.description if row else "",
            "members": self._members(slug, family),
            "quotas": {self.cluster.slug: {top.name: self._quota(slug, top, family)}},
        }

    def _members(self, slug: str, family: Sequence[Account]) -> dict[str, str]:
        """Add members of an account to its workspace; present members keep their role."""
        people = {row.unix_name or row.username: row for row in User.objects.filter(is_active=True)}
        roles = dict(Membership.objects.filter(workspace__slug=slug).values_list("user__username", "role"))
        found = {}
        for account in family:
            for name in account.people:
                person = people.get(name)
                if person is None:
                    text = _("%(account)s: no user with the UNIX name %(name)s.")
                    self.left.append(text % {"account": account.name, "name": name})
                else:
                    found[person.username] = str(roles.get(person.username, Role.DEVELOPER))
        return found

    def _quota(self, slug: str, account: Account, family: Sequence[Account]) -> dict[str, Any]:
        row = Quota.objects.filter(workspace__slug=slug, cluster=self.cluster, slug=account.name).first()
        stored: dict[str, Any] = as_written(row) if row else {"name": account.name}
        above = row.parent if row else None
        if above is not None and above.workspace.slug != slug:  # as no account says
            stored["part_of"] = name_in_tree(above)
        values: dict[str, Any] = {key: value for key, value in stored.items() if key not in LIMIT_KEYS}
        values |= _dump_limits(account.all_of_it)
        one = self._of_one(account)
        if person := {**values.get("person", {}), **one}:
            values["person"] = person
        if below := [each for each in family if each.parent == account.name]:
            values["quotas"] = {each.name: self._quota(slug, each, family) for each in below}
            self._drop_limits_below_promises(account, values)
        return values

    def _of_one(self, account: Account) -> dict[str, Any]:
        """Return the limits per person, of the account and of its only quality of service."""
        one = AccountLimits(jobs=account.jobs_of_one)
        if len(account.qos) == 1:
            quality = next((each for each in self.tree.qualities if each.name == account.qos[0]), None)
            if quality is not None:
                jobs = [each for each in (one.jobs, quality.of_one.jobs) if each is not None]
                limits = quality.of_one
                one = AccountLimits(limits.cpus, limits.memory_mib, limits.gpus, {}, min(jobs, default=None))
        return {key: value for key, value in _dump_limits(one).items() if key != "gpus_by_type"}

    def _drop_limits_below_promises(self, account: Account, values: dict[str, Any]) -> None:
        """Slurm lets accounts promise more than the one above them has; a quota may not."""
        keys = [("", name) for name in ("gpus", "cores", "memory_gib", "jobs")]
        keys += [("gpus_by_type", kind) for kind in values.get("gpus_by_type", {})]
        for inside, key in keys:
            limits = values[inside] if inside else values
            promised = sum(_sum_guaranteed(each, key, inside) for each in values["quotas"].values())
            if key in limits and promised > limits[key]:
                text = _(
                    "%(account)s: its child accounts are guaranteed %(promised)s in total (%(what)s), "
                    "above its own limit of %(limit)s. Slurm still enforces that limit."
                )
                params = {"account": account.name, "promised": promised, "what": key, "limit": limits[key]}
                self.left.append(text % params)
                del limits[key]

    def _priorities(self) -> dict[str, str]:
        """The qualities of service that everybody may use: the more they put first, the higher."""
        usable = [set(each.qos) for each in self.tree.accounts if each.people]
        common = set.intersection(*usable) if usable else set()
        ordered = sorted(self.tree.qualities, key=lambda each: each.priority, reverse=True)
        first = [each.name for each in ordered if each.name in common and each.priority > 0]
        return {str(TOP - index): name for index, name in enumerate(first[: TOP - USUAL])}

    def _tell_qualities(self) -> None:
        """Note the limits of qualities of service, which Slurm alone enforces."""
        used = set((self.settings().get("qos") or self.cluster.config.get("qos") or {}).values())
        for each in self.tree.qualities:
            limits = [f"{key} {value}" for key, value in _dump_limits(each.of_one).items()]
            if each.name not in used and each.name != NORMAL:
                self.left.append(_("QOS %(qos)s: not used by any job priority.") % {"qos": each.name})
            notes = [
                *([_("per user: %(limits)s") % {"limits": ", ".join(limits)}] if limits else []),
                *each.more,
            ]
            self.left += [f"QOS {each.name}: {note}" for note in notes]


def _sum_guaranteed(values: Mapping[str, Any], key: str, inside: str) -> int | float:
    """Return what a quota guarantees: its own limit, or the sum of those in it."""
    own: int | float | None = (values.get(inside, {}) if inside else values).get(key)
    if own is not None:
        return own
    return sum(_sum_guaranteed(each, key, inside) for each in values.get("quotas", {}).values())


def _below(top: Account, accounts: Sequence[Account]) -> Iterator[Account]:
    for each in accounts:
        if each.parent == top.name:
            yield each
            yield from _below(each, accounts)


def _dump_limits(limits: AccountLimits) -> dict[str, Any]:
    known = gputypes.names()
    types = {gputypes.canonical(kind, known): count for kind, count in limits.gpus_by_type.items()}
    values: Mapping[str, Any] = {
        "gpus": limits.gpus,
        "gpus_by_type": types or None,
        "cores": limits.cpus,
        "memory_gib": number(limits.memory_mib, 1024),
        "jobs": limits.jobs,
    }
    return {key: value for key, value in values.items() if value is not None}
