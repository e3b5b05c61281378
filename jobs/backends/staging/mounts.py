"""Mounts of a job from those that its file names, or the reason for a refusal.

A place on this machine is `file:///…`, a plain absolute path, or what a storage mapping has a folder
for.  A place elsewhere can only be told to the job, which is all that OpenPAI's directories for data and
output ever are; where something would have to be mounted, or is code, the job is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jobs import trees
from jobs.backends.refusals import refusal
from jobs.backends.staging import job_folders, remotes
from jobs.backends.staging.storage_map import apply_mapping, find_storage
from jobs.dialects import amounts
from jobs.dialects.fields import Quantity
from jobs.facilities import HDFS, StorageMapping, lies_in, local_path, without_login
from jobs.node.measure import FolderTooLarge
from jobs.node.sandbox.folder_access import Owner, check_folder
from jobs.node.sandbox.folders import FolderGrant, Folders, Requester, parts_of
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import mount_paths
from jobs.node.staging.mount_specs import IN_WORK, CodeSpec, DataSpec, MountKind, MountSpec
from jobs.node.supervisor import checkpoints
from jobs.node.wrapper.environment import FILE_SYSTEM, HOME_FOLDER
from jobs.spec import Mount, MountPurpose
from jobs.trees import Supplied

DEFAULT_FILE_SYSTEM: Final = "$PAI_DEFAULT_FS_URI"
"""OpenPAI v0.14 replaces these in the places of a job file; so does this backend."""

EMPTY_SCHEME: Final = "emptydir://"
"""A folder of the replica's own, empty at first (Kubernetes); in memory with the option medium=Memory."""

INNER_OUTPUT: Final = f"{mount_paths.WORK}/output"
"""OpenPAI's default file system where the settings name none: a folder that goes with the attempt."""

INNER_DATA: Final = f"{mount_paths.WORK}/data"
"""OpenPAI's dataDir that is fetched."""

CODE_DIR_BYTES: Final = 200_000_000
"""More than that in a codeDir fails in OpenPAI v0.14 too ("less than 200MB", SCM page)."""

_OUTPUT: Final = "Output"

BucketPlace = tuple[remotes.Remote, str, tuple[str, ...]]

HOMES: Final = "/home"
_HOME_NAME: Final = re.compile(r"\w[\w.@-]*")
"""No link to elsewhere, nothing hidden, and not the `lost+found` of a file system."""


@dataclass(frozen=True, slots=True)
class MountSettings:
    """Settings for mounts.  `file_system` stands for OpenPAI's default one ('' for none);
    filling a place takes at most `patience_s` seconds, with at most `code_bytes` of uploaded code.  `jobs` is
    where attempts live.  `data` says from where data may be fetched.  `homes` has a folder of each person
    ('' for none).
    """

    folders: Folders
    file_system: str = ""
    patience_s: int = 1800
    jobs: Path = Path()
    code_bytes: int = 2 << 30
    data: remotes.DataRules = field(default_factory=remotes.DataRules)
    homes: str = ""


@dataclass(frozen=True, slots=True)
class MountContext:
    """Person, user and isolation that mounts are made for.

    `contained` and `plain` say that some replicas run in containers, or as plain processes; `staged` that
    folders reach the container engine by descriptors.
    """

    asker: Requester
    owner: Owner
    job: str
    isolation: Isolation
    contained: bool
    plain: bool
    staged: bool

    @property
    def can_bind(self) -> bool:
        """Tell whether every replica has a root file system of its own, with mounts anywhere."""
        return not self.plain or self.isolation is not Isolation.NONE


def fill_names(uri: str, job: str, user: str) -> str:
    """Return a URI with OpenPAI's names for the job and its user replaced."""
    for name, value in (("$PAI_JOB_NAME", job), ("$PAI_USER_NAME", user), ("$PAI_USERNAME", user)):
        uri = uri.replace(name, value)
    return uri


def find_upload(*names: str) -> str | None:
    """Return the first name that is an uploaded tree's."""
    return next((name for name in names if trees.tree_id_of(name) is not None), None)


def is_in_memory(mount: Mount) -> bool:
    """Return whether an empty folder is to be in memory (Kubernetes)."""
    return mount.options.get("medium") == "Memory"


def memory_mib(mount: Mount) -> int:
    """Return the size of a folder in memory, 0 where it names none."""
    size = amounts.parse(mount.options.get("sizeLimit", ""), Quantity.MEMORY, bare="b")
    return amounts.whole(size) if size else 0


class MountPlanner:
    """Plans the mounts of a job: `bounds`, the `codes` that fill some of them, the `locations` that the job
    is told, `shm_mib` of shared memory (0: what the roles say), and the `login` for the image registry that
    lies in a file.  `datas` are fetched, from `data_uris` with the logins in them.  `storage` are the site's
    storage mappings, `checkpoints` is the folder for the job's checkpoints, "" for none.  Methods raise
    Refused.
    """

    def __init__(
        self,
        known: MountSettings,
        ground: MountContext,
        uploads: Mapping[str, Supplied] = MappingProxyType({}),
        storage: Mapping[str, StorageMapping] = MappingProxyType({}),
    ) -> None:
        self._known, self.ground, self.uploads, self._storage = known, ground, uploads, storage
        self.bounds: list[MountSpec] = []
        self.codes: list[CodeSpec] = []
        self.datas: list[DataSpec] = []
        self.data_uris: list[str] = []
        self.shm_mib = 0
        self.login: dict[str, str] = {}
        self.checkpoints = ""
        self.locations: dict[str, str] = {FILE_SYSTEM: known.file_system} if known.file_system else {}

    def lay(self, mount: Mount) -> None:
        """One place of the job file."""
        bound, told = self._make_mount(mount)
        if bound is not None and bound.kind is MountKind.MEMORY and bound.path == mount_paths.SHARED_MEMORY:
            self.shm_mib = bound.size_mib
        elif bound is not None:
            self._add(bound, there_anyway=bound.at_its_own_place and not mount.read_only)
        if told:
            self.locations.setdefault(mount.purpose.value, told)

    def lay_tree(self, uri: str, path: str, most: int, *, read_only: bool = False) -> str:
        """An uploaded tree at `path`, by itself below the working folder, which it fills when there is none;
        answers where it will be.
        """
        tree = trees.tree_id_of(uri) or ""
        if tree not in self.uploads:
            raise refusal("code_no_upload", place=uri)
        if self.uploads[tree].size > most:
            raise refusal("code_too_large", place=uri, most_mb=most // 10**6)
        path = mount_paths.locate(path)
        if path == mount_paths.WORK:
            if any(code.bound == IN_WORK for code in self.codes):
                raise refusal("mount_twice", path=path)
            place = IN_WORK
        else:
            place = self.own(path, read_only=read_only)
        self.codes.append(CodeSpec(place, uri=uri, most_bytes=most, patience_s=self._known.patience_s))
        return path

    def lay_log_folder(self, path: str, shown: Iterable[str]) -> None:
        """Make a folder of the replica's own at `path`, unless it lies in one that the job has.

        `shown` are folders of this machine that jobs see.
        """
        there = (mount_paths.WORK, mount_paths.TMP, *shown, *(bound.path for bound in self.bounds))
        if path.startswith("/") and self.ground.can_bind and not any(lies_in(path, each) for each in there):
            self.own(path)

    def lay_checkpoints(self, attempt: Path) -> None:
        """Mount the folder for the checkpoints of an attempt's job.

        Where some replica has no mounts all find it at its own path.
        """
        source = os.path.realpath(checkpoints.folder_of(attempt))
        path = mount_paths.CHECKPOINTS if self.ground.can_bind else source
        bound = MountSpec(path, MountKind.STORE, source, root=os.path.dirname(source))  # noqa: PTH120 a string
        is_free = mount_paths.clash(one.path for one in (*self.bounds, bound)) is None
        if is_free and mount_paths.is_sayable(path):
            self.bounds.append(bound)
            self.checkpoints = path

    def lay_home(self, name: str) -> None:
        """Mount the home folder of the person, made when they have none yet.

        Only where each person has a user id: elsewhere everybody could read it.
        """
        root = self._known.homes
        if not root or self.ground.isolation is not Isolation.PERSONS or not _HOME_NAME.fullmatch(name):
            return
        bound = MountSpec(f"{HOMES}/{name}", MountKind.STORE, f"{root}/{name}", root=root)
        if mount_paths.clash(one.path for one in (*self.bounds, bound)) is None:
            self.bounds.append(bound)
            self.locations[HOME_FOLDER] = bound.path

    def own(self, path: str, *, read_only: bool = False) -> int:
        """A folder of the replica's own at `path` in the job; answers its number among the bounds."""
        path = mount_paths.normalize(path)
        self._add(MountSpec(path, self._own_kind(path), read_only=read_only), there_anyway=False)
        return len(self.bounds) - 1

    def share_temporary_folder(self) -> None:
        """Give the containers of a replica one /tmp; its plain processes have one anyway."""
        if not self.ground.contained:
            return
        bound = MountSpec(mount_paths.TMP, MountKind.EMPTY)
        if self.ground.plain or mount_paths.clash(one.path for one in (*self.bounds, bound)) is not None:
            raise refusal("mount_over", path=mount_paths.TMP)
        self.bounds.append(bound)

    def _own_kind(self, path: str) -> MountKind:
        below = path.startswith(f"{mount_paths.WORK}/")
        return MountKind.INNER if below and not self.ground.can_bind else MountKind.EMPTY

    def grant(self, path: str) -> FolderGrant:
        """Return the person's rights in a folder of this machine."""
        found = self._known.folders.grant(path, self.ground.asker)
        if found is None:
            workspace = self.ground.asker.workspace
            raise refusal("mount_not_allowed", place=path, workspace=workspace, setting="folders")
        return found

    def _make_mount(self, mount: Mount) -> tuple[MountSpec | None, str]:
        """Return the mount, if any, and the value of PAI_DATA_DIR or a variable like it."""
        uri, path = self.resolve(mount.uri), mount.path and mount_paths.normalize(mount.path)
        upload = find_upload(uri, mount.id)
        return self._mount_upload(mount, upload, path) if upload else self._mount_other(mount, uri, path)

    def _mount_upload(self, mount: Mount, upload: str, path: str) -> tuple[None, str]:
        if not path and mount.purpose is not MountPurpose.CODE:
            raise refusal("mount_without_path", id=upload)
        most = self._known.code_bytes
        return None, self.lay_tree(upload, path, most, read_only=mount.read_only)

    def _mount_other(self, mount: Mount, uri: str, path: str) -> tuple[MountSpec | None, str]:
        mapping = find_storage(self._storage, mount.id, uri, self.ground.asker.workspace)
        if mapping is not None:
            mount, path = apply_mapping(mount, mapping, path)
            return self._mount_mapped(mount, mapping, uri, path)
        if mount.id and not mount.uri:
            raise refusal("mount_unknown", id=mount.id)
        return self._mount_at(mount, uri, path)

    def _mount_mapped(
        self, mount: Mount, mapping: StorageMapping, uri: str, path: str
    ) -> tuple[MountSpec | None, str]:
        """Mount the storage that is mapped to an id or an address."""
        if not mapping.bucket:
            return self._mount_at(mount, mapping.folder, path)
        if not path:
            return None, mount.uri
        place = self.read_bucket(mapping, without_login(uri) or mount.id)
        if place is None:
            raise refusal("mount_elsewhere", place=without_login(uri) or mount.id, path=path)
        found, address, inside = place
        self._bring(mount, found, path, address, inside)
        return None, path

    def read_bucket(self, mapping: StorageMapping, shown: str) -> BucketPlace | None:
        """Return the place of a mapped bucket, its address with a login, and hosts inside this network.

        None for an address of no bucket.
        """
        found = remotes.read(mapping.bucket, mapping.options)
        if found is None:
            return None
        inside = remotes.named_hosts((found.endpoint,))
        return replace(found, shown=shown), mapping.bucket_with_login, inside

    def _mount_at(self, mount: Mount, uri: str, path: str) -> tuple[MountSpec | None, str]:
        if uri.startswith(EMPTY_SCHEME):
            return self._empty(mount, path), ""
        if uri.startswith(job_folders.SCHEME):
            return self._of_another_job(mount, path), ""
        place = local_path(uri)
        if place is not None and not path and mount.purpose is MountPurpose.CODE:
            return None, self._code_dir(place)
        if place is not None:
            bound = self._folder(mount, place, path)
            return bound, bound.path
        return self._far(mount, uri, path)

    def _far(self, mount: Mount, uri: str, path: str) -> tuple[MountSpec | None, str]:
        """A place that is no folder of this machine: fetched if it can be, or else only told."""
        if uri.startswith(f"{HDFS}://") and not path and self._known.data.namenode(uri):
            path = INNER_OUTPUT if mount.purpose is MountPurpose.OUTPUT else INNER_DATA
            mount = mount.model_copy(update={"read_only": True})
        if path and self._fetch(mount, uri, path):
            return None, path
        if path:
            raise refusal("mount_elsewhere", place=without_login(mount.uri), path=path)
        if mount.purpose is MountPurpose.OUTPUT and uri.startswith(DEFAULT_FILE_SYSTEM):
            return MountSpec(INNER_OUTPUT, MountKind.INNER), INNER_OUTPUT
        return None, mount.uri

    def _fetch(self, mount: Mount, uri: str, path: str) -> bool:
        """Have data brought from elsewhere, as far as the settings allow that."""
        found = self._known.data.read(uri, mount.options)
        rules = self._known.data
        if found is None or not rules.cover(uri):
            return False
        self._bring(mount, found, path, uri, rules.inside)
        return True

    def _bring(
        self, mount: Mount, found: remotes.Remote, path: str, uri: str, inside: tuple[str, ...]
    ) -> None:
        """Have data copied in before the command, and out after it where the job may write.

        `uri` has the login.
        """
        output = mount.purpose is MountPurpose.OUTPUT
        bound = self.own(path, read_only=mount.read_only and not output)
        data = replace(
            self._transfer(bound, found, inside),
            name=mount.id or found.shown,
            back=output or (not mount.read_only and found.can_be_written),
            bring=not output,
        )
        self._add_data(data, uri)

    def fetch_code(
        self,
        uri: str,
        place: remotes.Remote,
        path: str,
        most: int,
        inside: tuple[str, ...],
        *,
        read_only: bool,
    ) -> None:
        """Have code that needs no git brought to `path` in the job; an archive is unpacked there."""
        inside = (*self._known.data.inside, *inside)
        data = self._transfer(self.own(path, read_only=read_only), place, inside)
        self._add_data(replace(data, is_code=True, most_bytes=most), uri)

    def _transfer(self, bound: int, place: remotes.Remote, inside: tuple[str, ...]) -> DataSpec:
        """Return what is brought from a place to the mount number `bound`; `inside` are admitted hosts."""
        rules = self._known.data
        return DataSpec(
            bound=bound,
            name=place.shown,
            uri=place.uri,
            endpoint=place.endpoint,
            region=place.region,
            addressing=place.addressing,
            inside=inside,
            most_bytes=rules.most_bytes,
            cache_bytes=rules.cache_bytes,
            patience_s=self._known.patience_s,
        )

    def _add_data(self, data: DataSpec, uri: str) -> None:
        self.datas.append(data)
        self.data_uris.append(uri)

    def find_mapping(self, uri: str) -> StorageMapping | None:
        """Return the storage of this site to which an address elsewhere is mapped, None for none."""
        return find_storage(self._storage, "", uri, self.ground.asker.workspace)

    @property
    def data_rules(self) -> remotes.DataRules:
        """Return the settings for data."""
        return self._known.data

    def resolve(self, uri: str) -> str:
        """The URI with OpenPAI's names replaced, as far as they mean something here."""
        if self._known.file_system:
            uri = uri.replace(DEFAULT_FILE_SYSTEM, self._known.file_system)
        return fill_names(uri, self.ground.job, self.ground.asker.user)

    def _folder(self, mount: Mount, place: str, path: str) -> MountSpec:
        output = mount.purpose is MountPurpose.OUTPUT
        root = self._known.file_system
        store = (*parts_of(root), _OUTPUT, self.ground.asker.user)
        parts = parts_of(place)
        if output and root and parts[:-1] == store:
            source = f"{root}/{'/'.join(parts[len(parts_of(root)) :])}"
            return MountSpec(path or source, MountKind.STORE, source, root=root)
        granted = self.grant(place)
        if output and not granted.write:
            raise refusal("mount_read_only", place=place, setting="folders")
        if self.ground.contained and not self.ground.staged and not granted.steady:
            raise refusal("mount_unsteady", place=place, setting="folders")
        if not output:
            self.check_there(granted.path)
        kind = MountKind.OUTPUT if output else MountKind.FOLDER
        read_only = mount.read_only or not granted.write
        return MountSpec(path or granted.path, kind, granted.path, read_only)

    def _of_another_job(self, mount: Mount, path: str) -> MountSpec:
        """Mount another job's folder read-only; where no mount is possible, a link leads there."""
        if not path:
            raise refusal("mount_without_path", id=mount.uri)
        found = job_folders.find(self._known.jobs, mount.uri)
        persons = self.ground.isolation is Isolation.PERSONS
        if found is None or found.user != self.ground.asker.user:
            raise refusal("mount_no_job", place=mount.uri)
        if persons and found.uid != self.ground.owner[0]:
            raise refusal("mount_no_job", place=mount.uri)
        if self.ground.contained and not self.ground.staged:
            raise refusal("mount_unsteady", place=mount.uri, setting="folders")
        return MountSpec(path, MountKind.JOB, found.path, read_only=True, root=found.root)

    def _code_dir(self, place: str) -> str:
        """OpenPAI's codeDir: a copy in the job's working folder that is only to be read."""
        granted = self.grant(place)
        self.check_there(granted.path, CODE_DIR_BYTES)
        path = f"{mount_paths.WORK}/{granted.path.rpartition('/')[2]}"
        code = CodeSpec(self.own(path, read_only=True), granted.path, most_bytes=CODE_DIR_BYTES)
        self.codes.append(replace(code, patience_s=self._known.patience_s))
        return path

    def check_there(self, path: str, most: int | None = None) -> None:
        """Refuse what is no folder that the job's user can open, or (as far as a short look tells) one with
        more than `most` bytes in it.
        """
        try:
            check_folder(path, self.ground.owner, most)
        except OSError as error:
            raise refusal("mount_no_folder", place=path, error=error.strerror) from error
        except FolderTooLarge:
            raise refusal("code_too_large", place=path, most_mb=(most or 0) // 10**6) from None

    def _empty(self, mount: Mount, path: str) -> MountSpec:
        if not path:
            raise refusal("mount_without_path", id=mount.uri)
        if is_in_memory(mount):
            return MountSpec(path, MountKind.MEMORY, size_mib=memory_mib(mount))
        return MountSpec(path, self._own_kind(path))

    def _add(self, bound: MountSpec, *, there_anyway: bool) -> None:
        at_home = bound.at_its_own_place and mount_paths.is_sayable(bound.path)
        if not (mount_paths.is_free(bound.path) or at_home):
            raise refusal("mount_over", path=bound.path)
        linked = bound.kind is MountKind.JOB and bound.path.startswith(f"{mount_paths.WORK}/")
        if not (there_anyway or linked or bound.kind is MountKind.INNER or self.ground.can_bind):
            raise refusal("mount_needs_view", path=bound.path)
        if (twice := mount_paths.clash(one.path for one in (*self.bounds, bound))) is not None:
            raise refusal("mount_twice", path=twice)
        self.bounds.append(bound)
