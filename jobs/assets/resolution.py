"""Resolution of the ids in a job file to locations, addresses and logins, when the job is accepted.

The file's text stays as it was; the JobSpec that is kept with the job says what was meant by it.  An id
that nobody here registered is left alone: a cluster's own settings, or the vendor, may know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

from django.db.models import Q
from django.utils.crypto import get_random_string

from jobs import trees
from jobs.assets import instance_roles
from jobs.assets.addresses import FILES
from jobs.dialects.base import Note, Parsed, Problem
from jobs.dialects.document import Document
from jobs.dialects.placeholders import KEPT, placeholder
from jobs.dialects.positions import FieldPositions
from jobs.models import (
    ASSETS,
    Asset,
    AssetKind,
    AssetUse,
    CodeSource,
    Dataset,
    DatasetVersion,
    Guarded,
    Image,
    Job,
    PersonalSecret,
    Vpc,
)
from jobs.spec import CodeSource as Code
from jobs.spec import JobSpec, Mount, Network, RegistryAuth, RoleSpec, SecretRef
from quotas.encryption import Unreadable
from quotas.models import User, Workspace

VERSION_MARK: Final = "@"
GIT_USER: Final = "git"
"""What stands before a token whose user name nobody gave; hosts of repositories look at the token alone."""

MASK: Final = "*"
"""The vendors' pages print it for the letters of an id that they hide; no commit has it."""

_GIVEN_VERSION: Final = ("/DataSources/{id}/DataSourceVersion",)
"""Paths in a dialect's extras with the version of a dataset."""


@dataclass(frozen=True, slots=True)
class Use:
    """An asset that a job uses; see AssetUse."""

    kind: AssetKind
    key: str
    version: int | None = None
    secret: str = ""


@dataclass(slots=True)
class Resolved:
    """The resolved specification of a job.  With `problems` it can't be accepted."""

    spec: JobSpec
    notes: tuple[Note, ...] = ()
    problems: tuple[Problem, ...] = ()
    uses: tuple[Use, ...] = ()


def resolve(user: User, document: Document, workspace: Workspace) -> Resolved:
    """Resolve the ids in the file for a job of `user` in `workspace`."""
    found = resolve_spec(user, document.parsed, workspace)
    if found.problems:
        places = document.places
        found.problems = tuple(_locate(problem, places) for problem in found.problems)
    return found


def resolve_spec(user: User, parsed: Parsed, workspace: Workspace) -> Resolved:
    """Resolve without locating problems in the text."""
    work = _Resolution(user, parsed, workspace)
    return Resolved(work.resolve(), tuple(work.notes), tuple(work.problems), tuple(work.uses))


def write_down(job: Job, uses: Iterable[Use]) -> None:
    """Record which assets the job uses, in the transaction that accepts it."""
    AssetUse.objects.bulk_create(
        AssetUse(job=job, kind=use.kind, key=use.key, version=use.version, secret=use.secret)
        for use in dict.fromkeys(uses)
    )


def secrets_of(job: Job) -> dict[str, str]:
    """Return the stored passwords of what the job is made of, as they are now, by the names in its spec."""
    rows = job.asset_uses.all()
    return read_passwords(Use(AssetKind(row.kind), row.key, row.version, row.secret) for row in rows)


def read_passwords(uses: Iterable[Use]) -> dict[str, str]:
    """Return the stored passwords of assets, by the names that a spec has."""
    found: dict[str, str] = {}
    for use in uses:
        if not use.secret:
            continue
        asset = ASSETS[use.kind]._default_manager.filter(key=use.key).first()  # noqa: SLF001
        if isinstance(asset, Guarded) and asset.ciphertext:
            try:
                found[use.secret] = asset.reveal()
            except Unreadable:
                continue  # the cluster then says that the secret has no value
    return found


def _locate(problem: Problem, places: FieldPositions) -> Problem:
    line, column = places.of_field(problem.pointer) or (None, None)
    return Problem(problem.code, problem.pointer, line, column, problem.params)


@dataclass(slots=True)
class _Resolution:
    user: User
    parsed: Parsed
    workspace: Workspace
    notes: list[Note] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    login: tuple[Image, RegistryAuth] | None = None

    def resolve(self) -> JobSpec:
        spec = self.parsed.spec
        changes: dict[str, Any] = {}
        if any(role.image for role in spec.roles):
            changes |= self._images(spec)
        if any(mount.id for mount in spec.mounts):
            changes["mounts"] = self._mounts(spec)
        if spec.code is not None and spec.code.id:
            changes["code"] = self._code(spec.code)
        if spec.network.vpc:
            changes["network"] = self._network(spec.network)
        if spec.instance_role:
            changes["instance_role"] = self._role(spec.instance_role)
        return spec.model_copy(update=changes) if changes else spec

    # --- images ----------------------------------------------------------------------------------------

    def _images(self, spec: JobSpec) -> dict[str, Any]:
        named = {role.image for role in spec.roles if role.image}
        rows = Image.objects.filter(Q(key__in=named) | Q(name__in=named) | Q(address__in=named))
        known = list(rows.order_by("id"))
        if not known:
            return {}
        roles = tuple(self._with_image(index, role, known) for index, role in enumerate(spec.roles))
        if self.login is None:
            return {"roles": roles}
        return {"roles": roles, "registry_auth": self.login[1]}

    def _with_image(self, index: int, role: RoleSpec, known: list[Image]) -> RoleSpec:
        pointer = f"/roles/{index}/image"
        ours = [row for row in known if self._is_ours(row)]
        by_key = [row for row in known if row.key == role.image]
        if by_key and not self._may_use(by_key[0], pointer):
            return role
        meant = by_key or [row for row in ours if row.name == role.image and not row.is_retired]
        meant = meant or [row for row in ours if row.address == role.image and not row.is_retired]
        if not meant:
            return role
        image = max(meant, key=lambda row: (not row.is_public, -row.pk))
        self._log_in(image, pointer)
        return role.model_copy(update={"image": image.address})

    def _log_in(self, image: Image, pointer: str) -> None:
        before = self.login and self.login[0]
        if self.parsed.spec.registry_auth is not None or not image.has_login or before == image:
            if not any(use.key == image.key for use in self.uses):
                self._use(image)
            return
        registry = _registry(image.address)
        if before and (_registry(before.address), before.username) != (registry, image.username):
            self._problem("two_image_logins", pointer, name=image.name, other=before.name)
            return
        secret = self._secret(image, pointer, registry)
        if secret and not before:
            password = SecretRef(name=secret)
            auth = RegistryAuth(registry=registry, username=image.username, password=password)
            self.login = image, auth

    # --- datasets --------------------------------------------------------------------------------------

    def _mounts(self, spec: JobSpec) -> tuple[Mount, ...]:
        keys = {_version(mount.id)[0] for mount in spec.mounts}
        known = {row.key: row for row in Dataset.objects.filter(key__in=keys).select_related("vpc")}
        return tuple(self._mount(index, mount, known) for index, mount in enumerate(spec.mounts))

    def _mount(self, index: int, mount: Mount, known: Mapping[str, Dataset]) -> Mount:
        key, number = _version(mount.id)
        pointer = f"/mounts/{index}/id"
        dataset = known.get(key)
        if dataset is None:
            if mount.id and not mount.uri and trees.tree_id_of(mount.id) is None:
                self._note("asset_unknown", pointer, id=mount.id)
            return mount
        if not self._may_use(dataset, pointer):
            return mount
        number = number or self._version_in_extras(mount.id)
        version = dataset.version_called(number)
        if version is None:
            self._problem("no_dataset_version", pointer, name=dataset.name, version=number or "default")
            return mount
        self._check_vpc(dataset, pointer)
        return self._fill_mount(mount, dataset, version, pointer)

    def _version_in_extras(self, key: str) -> str:
        value = (self.parsed.extras.get(where.format(id=key)) for where in _GIVEN_VERSION)
        return next((str(each) for each in value if each), "")

    def _fill_mount(self, mount: Mount, dataset: Dataset, version: DatasetVersion, pointer: str) -> Mount:
        secret = self._secret(dataset, pointer, _host(dataset, version.uri), version.number)
        own = {"endpoint": dataset.endpoint, "region": dataset.region}
        options = {**dataset.options, **mount.options}
        if dataset.source not in FILES:
            options |= own
        values = {
            "id": dataset.key,
            "uri": _with_login(version.uri, dataset.username, secret),
            "path": mount.path or dataset.mount_path,
            "read_only": mount.read_only or dataset.read_only or dataset.is_public,
            "options": {name: value for name, value in options.items() if value},
        }
        return mount.model_copy(update=values)

    def _check_vpc(self, dataset: Dataset, pointer: str) -> None:
        """Note that a job is outside of the network of a CPFS, in which the vendors require it."""
        wanted, current = dataset.vpc, self.parsed.spec.network.vpc
        if wanted is not None and current not in (wanted.vpc_id, wanted.key):
            self._note("dataset_of_vpc", pointer, name=dataset.name, vpc=wanted.vpc_id)

    # --- code ------------------------------------------------------------------------------------------

    def _code(self, code: Code) -> Code:
        if MASK in code.commit:
            self._note("commit_masked", "/code/commit", commit=code.commit)
            code = code.model_copy(update={"commit": ""})
        row = CodeSource.objects.filter(key=code.id).first()
        if row is None:
            if not code.uri and trees.tree_id_of(code.id) is None:
                self._note("asset_unknown", "/code/id", id=code.id)
            return code
        if not self._may_use(row, "/code/id"):
            return code
        secret = self._secret(row, "/code/id", urlsplit(row.repo).hostname or "")
        commit = code.commit or ("" if code.branch else row.commit)
        values = {
            "uri": _with_login(row.repo, row.username or GIT_USER, secret),
            "branch": code.branch or row.branch,
            "commit": commit,
            "path": code.path or row.mount_path,
            "submodules": code.submodules or row.submodules,
        }
        return code.model_copy(update=values)

    # --- what is carried -------------------------------------------------------------------------------

    def _network(self, network: Network) -> Network:
        rows = list(Vpc.objects.filter(Q(vpc_id=network.vpc) | Q(key=network.vpc)).order_by("id"))
        row = self._one_of(rows, "/network/vpc", network.vpc)
        if not isinstance(row, Vpc):
            return network
        for name, known in (("switch", row.switches), ("security_group", row.security_groups)):
            current = getattr(network, name)
            if current and known and current not in known:
                self._note("not_of_vpc", f"/network/{name}", id=current, vpc=row.name)
        self._use(row)
        return network.model_copy(update={"vpc": row.vpc_id})

    def _role(self, role: str) -> str:
        """Return the role's ARN, or `default`; one that the workspace lacks is a problem of feasibility."""
        row = instance_roles.find_role(self.workspace, role)
        if row is None:
            return role
        self._use(row)
        return row.arn if role == row.key else role

    def _one_of(self, rows: list[Any], pointer: str, name: str) -> Asset | None:
        """The one that the workspace may use; a problem when others keep it to themselves."""
        usable = [row for row in rows if self._is_ours(row) and not row.is_retired]
        if rows and not usable:
            self._problem("asset_not_yours", pointer, id=name, workspace=self.workspace.name)
        return max(usable, key=lambda row: not row.is_public, default=None)

    # --- all of them -----------------------------------------------------------------------------------

    def _is_ours(self, asset: Asset) -> bool:
        return asset.workspace_id in (None, self.workspace.pk)

    def _may_use(self, asset: Asset, pointer: str) -> bool:
        if not self._is_ours(asset):
            named = {"id": asset.key, "workspace": self.workspace.name}
            self._problem("asset_not_yours", pointer, **named)
            return False
        if asset.is_retired:
            self._problem("asset_retired", pointer, name=asset.name, id=asset.key)
            return False
        return True

    def _secret(self, asset: Guarded, pointer: str, host: str, version: int | None = None) -> str:
        """The name of the secret that it is reached with, '' for none; and that the job is made of it."""
        if asset.own_secret:
            self._use(asset, version)
            if not PersonalSecret.objects.filter(owner=self.user, name=asset.own_secret).exists():
                self._problem("no_own_secret", pointer, name=asset.own_secret)
                return ""
            self._note("asset_takes_secret", pointer, name=asset.name, secret=asset.own_secret, host=host)
            return asset.own_secret
        if not asset.ciphertext:
            self._use(asset, version)
            return ""
        secret = f"{KEPT}{get_random_string(32)}"
        self._use(asset, version, secret)
        return secret

    def _use(self, asset: Asset, version: int | None = None, secret: str = "") -> None:
        before = next((use for use in self.uses if (use.key, use.version) == (asset.key, version)), None)
        if before is None:
            self.uses.append(Use(asset.KIND, asset.key, version, secret))

    def _note(self, code: str, pointer: str, **params: str) -> None:
        self.notes.append(Note(code, pointer, params))

    def _problem(self, code: str, pointer: str, **params: str) -> None:
        self.problems.append(Problem(code, pointer, params=params))


def _version(text: str) -> tuple[str, str]:
    """The id and the version of `d-123@v2`."""
    key, _mark, version = text.partition(VERSION_MARK)
    return key, version


def _registry(address: str) -> str:
    """The host of an image's address, as engines find it; '' for the usual one."""
    first, slash, _rest = address.partition("/")
    return first if slash and (first == "localhost" or "." in first or ":" in first) else ""


def _host(dataset: Dataset, uri: str) -> str:
    """Return the host to which a dataset's password goes."""
    place = dataset.endpoint if dataset.endpoint and "://" in dataset.endpoint else uri
    return urlsplit(place).netloc


def _with_login(uri: str, username: str, secret: str) -> str:
    """The address with a user name, and a placeholder for the password."""
    if not secret:
        return uri
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    user = quote(parts.username or username, safe="")
    return parts._replace(netloc=f"{user}:{placeholder(secret)}@{host}").geturl()
