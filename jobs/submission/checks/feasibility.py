"""Feasibility: parts of a job that a cluster will never run, and actions that would help.

It is decided from rows: the GPUs of the cluster's nodes, and its facilities (`jobs.facilities`).  A node that
is drained or busy is no problem: the job waits for it.  Where nothing is known yet there is no problem, and
the backend refuses what it can't run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from jobs import trees
from jobs.assets import instance_roles, resolution, site_storage
from jobs.backends import effects, fixed_ports, registry
from jobs.dialects.base import Action, Note, Parsed, Problem
from jobs.dialects.document import Document
from jobs.dialects.positions import FieldPositions
from jobs.facilities import (
    HDFS,
    HOST_NETWORK,
    OWN_NETWORK,
    WRITABLE,
    Facilities,
    StorageMapping,
    find_mapping,
    lies_in,
    local_path,
    setting_of_code,
    without_login,
)
from jobs.form import rules, sizes
from jobs.form.target import describe_target
from jobs.spec import (
    CodeSource,
    Framework,
    JobSpec,
    Mount,
    MountPurpose,
    Resources,
    RoleSpec,
    name_containers,
    resource_requests,
)
from jobs.submission.checks import fault_tolerance, page_rules, sanity_check, shell_commands
from jobs.submission.resource_requests import amounts_of
from jobs.submission.targets import quotas_open_to, target_address
from quotas import egress
from quotas.clusters import gputypes
from quotas.egress import EgressKind
from quotas.models import Node, Quota, User

QUOTA: Final = "quota"
"""The action that changes no file: the job goes to another cluster."""

MOST_CLUSTERS: Final = 2
MOST_QUOTAS: Final = 8
MOST_TYPES: Final = 3
MOST_ROLES: Final = 5

AS_MEANT: Final = frozenset({"completion_applied"})
"""Notes about the meaning of a file, which need no action: the form shows them."""

NOTED_BLINDLY: Final = frozenset({"no_image", "asset_unknown"})
"""Notes for a cluster with unknown facilities: with known ones there is a problem, or nothing to note."""

NEEDS_SLURM: Final = "needs_slurm"
UNKNOWN_SIZE: Final = "amounts_unknown"

NO_EFFECT: Final = "no_effect"

_LIBRARY_PROGRAMS: Final = {
    ".yml": "conda, mamba, micromamba",
    ".yaml": "conda, mamba, micromamba",
    ".lock": "uv",
}
"""Programs that install what a file names, by its suffix."""

_DEFAULT_FILE_SYSTEM: Final = "$PAI_DEFAULT_FS_URI"
_OF_THE_JOB: Final = ("emptydir://", "job://")
"""Locations that every cluster makes by itself."""

_PLACEHOLDER: Final = re.compile(r"<[^<>]*>")

_DEFAULTS: Final = Resources()


class CannotActError(Exception):
    """The job can't be changed so."""


def facilities_of(quota: Quota) -> Facilities | None:
    """Return the facilities of the quota's cluster; None while they are unknown."""
    kept = quota.cluster.facilities
    return Facilities.from_json(kept) if kept else None


def problems(user: User, quota: Quota, parsed: Parsed) -> tuple[Problem, ...]:
    """Return the parts of the job that the quota's cluster will never run; pointers are the JobSpec's."""
    found = tuple(_Check(user, quota, parsed).problems())
    if not found:
        return ()
    elsewhere = tuple(_elsewhere(user, quota, parsed))
    return tuple(replace(each, actions=(*each.actions, *elsewhere)) for each in found)


def problems_of_file(user: User, quota: Quota, parsed: Parsed) -> tuple[Problem, ...]:
    """Return the same for a job file whose sizes and assets are not resolved yet."""
    sized = sizes.fill_sizes(parsed, quota)
    meant = resolution.resolve_spec(user, sized, quota.workspace).spec
    return problems(user, quota, replace(sized, spec=meant))


def locate(found: Iterable[Problem], document: Document) -> tuple[Problem, ...]:
    """Return the problems with the lines of the text that they are about."""
    places = document.places
    return tuple(_locate(each, document.text, places) for each in found)


def select_notes(quota: Quota, noted: Iterable[Note]) -> tuple[Note, ...]:
    """Return those of the notes on a job file that mean something on the quota's cluster."""
    facilities, left_out = facilities_of(quota), set(AS_MEANT)
    if facilities is not None:
        left_out |= NOTED_BLINDLY
        left_out |= {NEEDS_SLURM} if facilities.slurm else set()
    return tuple(note for note in noted if note.code not in left_out)


def notes(user: User, quota: Quota, spec: JobSpec, dialect: str) -> tuple[Note, ...]:
    """Return notes on a job at its target; pointers are the JobSpec's.

    They are about what has no effect there, what its cluster does differently, and the rules of the vendors'
    pages that the job violates.
    """
    target = describe_target(quota)
    ruled = (
        *rules.notes(spec, target, dialect),
        *page_rules.notes(page_rules.Subject(user, spec, target), dialect),
    )
    tolerance = (*fault_tolerance.find_notes(spec), *sanity_check.find_notes(spec))
    return (*_unused_fields(quota, spec), *_differences(quota, spec), *tolerance, *ruled)


def _differences(quota: Quota, spec: JobSpec) -> Iterator[Note]:
    """Yield notes on what the quota's cluster will do differently."""
    facilities, cluster = facilities_of(quota), quota.cluster.name
    if facilities is None:
        return
    image = next((role.image for role in spec.roles if role.image), "")
    if image and facilities.plain and not facilities.images:
        yield Note("image_not_used", "", {"cluster": cluster, "image": image})
    if facilities.one_machine and (label := fixed_ports.find_moved_label(spec.roles)):
        yield Note("ports_moved", "", {"cluster": cluster, "label": label})
    mappings: Mapping[str, StorageMapping] = {}
    if any(mount.uri.startswith(f"{HDFS}://") for mount in spec.mounts):
        mappings = site_storage.find_mappings(quota.cluster_id, quota.workspace_id)
    for index, mount in enumerate(spec.mounts):
        if _is_only_passed(facilities, mappings, mount):
            params = {"cluster": cluster, "place": without_login(mount.uri)}
            yield Note("location_passed", f"/mounts/{index}/uri", params)
    if file := next((each for each in _LIBRARY_PROGRAMS if spec.requirements.directory.endswith(each)), ""):
        params = {"file": spec.requirements.directory, "programs": _LIBRARY_PROGRAMS[file]}
        yield Note("libraries_need_program", "/requirements/directory", params)
    if _is_restricted(quota) and _network(facilities, spec) == HOST_NETWORK:
        yield Note("egress_ignored", "", {"cluster": cluster, "workspace": quota.workspace.name})


def _is_only_passed(facilities: Facilities, mappings: Mapping[str, StorageMapping], mount: Mount) -> bool:
    """Tell whether a directory of an HDFS is neither fetched nor stored."""
    return (
        mount.uri.startswith(f"{HDFS}://")
        and not (mount.path or mount.purpose is MountPurpose.CODE)
        and not (
            find_mapping(mappings, mount.id, mount.uri) is not None or facilities.fetches_data(mount.uri)
        )
    )


def _unused_fields(quota: Quota, spec: JobSpec) -> Iterator[Note]:
    """Yield a note on each field that has no effect on the quota's cluster."""
    for each in effects.find_unused_fields(spec, registry.support_of(quota.cluster.backend)):
        if each.pointer != "/workspace" or spec.workspace != quota.workspace.slug:
            yield Note(NO_EFFECT, each.pointer, {"why": each.why, "cluster": quota.cluster.name})


def describe_network(quota: Quota, spec: JobSpec) -> str:
    """Return where the job may connect to, in one line; "" on a cluster that does not enforce it."""
    facilities = facilities_of(quota)
    if facilities is None or _network(facilities, spec) != OWN_NETWORK:
        return ""
    return egress.describe(quota.workspace.egress)


def _is_restricted(quota: Quota) -> bool:
    return egress.kind_of(quota.workspace.egress) is not EgressKind.INTERNET


def _network(facilities: Facilities, spec: JobSpec) -> str:
    """Return the network that the job would have there."""
    contained = facilities.images and any(role.image for role in spec.roles)
    return facilities.image_network if contained else facilities.network


def _gives_credentials(facilities: Facilities, spec: JobSpec) -> bool:
    """Tell whether the job would get credentials of a role there."""
    contained = facilities.images and any(role.image for role in spec.roles)
    beside = facilities.image_roles if contained else facilities.roles
    return beside or _network(facilities, spec) == OWN_NETWORK


def apply_action(document: Document, kind: str, value: str) -> Document:
    """Return the job file with an action done.

    Raises CannotActError, and Refused for a text that can't be read.
    """
    made = document.rewrite(change(document.parsed.spec, kind, value))
    if made.problems:
        raise CannotActError(kind)
    return made


def change(spec: JobSpec, kind: str, value: str) -> JobSpec:
    """Return the job with an action done.  Raises CannotActError."""
    try:
        return _CHANGES[kind](spec, value)
    except (KeyError, IndexError, ValueError) as error:
        raise CannotActError(kind) from error


# --- what is found ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Check:
    """One job on one cluster."""

    user: User
    quota: Quota
    parsed: Parsed

    def problems(self) -> Iterator[Problem]:
        yield from fault_tolerance.find_problems(self.parsed.spec)
        yield from sanity_check.find_problems(self.parsed.spec)
        if vendor := registry.vendor_of(self.quota.cluster.backend):
            subject = page_rules.Subject(self.user, self.parsed.spec, describe_target(self.quota))
            yield from page_rules.problems(subject, vendor)
        yield from self._gpus()
        yield from self._role()
        yield from self._sizes()
        facilities = facilities_of(self.quota)
        if facilities is None:
            return
        if _is_restricted(self.quota) and not _network(facilities, self.parsed.spec):
            yield self._problem("egress_not_enforced", "", workspace=self.quota.workspace.name)
        yield from self._images(facilities)
        yield from self._containers(facilities)
        yield from self._mounts(facilities)
        if self.parsed.spec.code is not None:
            yield from self._code(facilities, self.parsed.spec.code)
        yield from self._scripts(facilities)

    def _problem(
        self, code: str, pointer: str, actions: Iterable[Action] = (), **params: str | int
    ) -> Problem:
        params = {"cluster": self.quota.cluster.name, **params}
        return Problem(code, pointer, params=params, actions=tuple(actions))

    def _containers(self, facilities: Facilities) -> Iterator[Problem]:
        """Yield a problem for each container that would run here without one's own start command."""
        for index, role in enumerate(self.parsed.spec.roles):
            if facilities.images and role.image and not facilities.slurm:
                continue
            paths = [
                f"/roles/{index}/{kind}/{number}"
                for kind, found in (("init_containers", role.init_containers), ("sidecars", role.sidecars))
                for number in range(len(found))
            ]
            for path, (name, container) in zip(paths, name_containers(role), strict=True):
                if not container.command:
                    code, member = "container_without_command", "command"
                elif container.image and not role.image:
                    code, member = "container_image_alone", "image"
                else:
                    continue
                yield self._problem(code, f"{path}/{member}", role=role.name, name=name)

    def _gpus(self) -> Iterator[Problem]:
        spec = self.parsed.spec
        if not any(role.resources.gpus for role in spec.roles):
            return
        known, there = gputypes.names(), gpu_types_of(self.quota.cluster_id)
        if there is None:
            return
        without = Action("without_gpu")
        reported: set[str] = set()
        for index, (role, ask) in enumerate(zip(spec.roles, resource_requests(spec), strict=True)):
            if not role.resources.gpus:
                continue
            if not there:
                yield self._problem("no_gpus", f"/roles/{index}/resources/gpus", [without])
                return
            wanted = role.resources.gpu_type
            kinds = gputypes.canonicalize(amounts_of(ask), known).gpus
            if not wanted or wanted in reported or any(kind in there for kind in kinds):
                continue
            reported.add(wanted)
            near = sorted(there, key=lambda kind: (wanted.casefold() not in kind.casefold(), kind))
            others = [Action("gpu_type", kind) for kind in near[:MOST_TYPES]]
            pointer = f"/roles/{index}/resources/gpu_type"
            names = {"gpu_type": wanted, "types": ", ".join(near)}
            yield self._problem("no_gpu_of_type", pointer, [*others, without], **names)

    def _role(self) -> Iterator[Problem]:
        """Yield a problem for a role of which the job would get no credentials."""
        name, workspace = self.parsed.spec.instance_role, self.quota.workspace
        if not name:
            return
        role, without = instance_roles.find_role(workspace, name), Action("role")
        if role is None:
            roles = instance_roles.list_roles(workspace)
            code = "role_no_default" if name == instance_roles.DEFAULT else "role_unknown"
            params = {"workspace": workspace.name, "role": name}
            if roles:
                params["roles"] = ", ".join(f"{each.name} ({each.arn})" for each in roles[:MOST_ROLES])
            others = [Action("role", each.arn, {"name": each.name}) for each in roles[:MOST_ROLES]]
            yield self._problem(code, "/instance_role", [*others, without], **params)
            return
        facilities = facilities_of(self.quota)
        if facilities is not None and not _gives_credentials(facilities, self.parsed.spec):
            yield self._problem("role_without_network", "/instance_role", [without], role=role.name)

    def _sizes(self) -> Iterator[Problem]:
        """Yield a problem for each unknown size of a role that has no amounts either."""
        unknown = {
            str(note.params.get("value"))
            for note in self.parsed.notes
            if note.code == UNKNOWN_SIZE and str(note.params.get("unknown")).count(",") == 2
        }
        for index, role in enumerate(self.parsed.spec.roles):
            size = role.resources.instance_type
            if size in unknown:
                unknown.discard(size)
                offered = [Action("instance_type", each) for each in sizes.suggest(size, self.quota)]
                pointer = f"/roles/{index}/resources/instance_type"
                yield self._problem(
                    "size_not_known", pointer, [*offered, Action("instance_type")], value=size
                )

    def _images(self, facilities: Facilities) -> Iterator[Problem]:
        if facilities.images:
            yield from self._unfilled_images()
            return
        if facilities.plain:
            return
        for index, role in enumerate(self.parsed.spec.roles):
            if role.image:
                pointer, actions = f"/roles/{index}/image", [Action("without_image")]
                yield self._problem("image_not_run", pointer, actions, image=role.image)
                return

    def _unfilled_images(self) -> Iterator[Problem]:
        """Yield a problem for each image with a placeholder of the manual, which no engine can pull."""
        for index, role in enumerate(self.parsed.spec.roles):
            if found := _PLACEHOLDER.search(role.image):
                pointer = f"/roles/{index}/image"
                yield self._problem("image_unfilled", pointer, image=role.image, placeholder=found[0])

    def _mounts(self, facilities: Facilities) -> Iterator[Problem]:
        meant = [(mount, self._meant(facilities, mount.uri)) for mount in self.parsed.spec.mounts]
        outside = [index for index, each in enumerate(meant) if not _is_provided(*each)]
        if not outside:
            return  # the query for the mappings would be a third of a check
        mappings = site_storage.find_mappings(self.quota.cluster_id, self.quota.workspace_id)
        for index in outside:
            yield from self._mount(facilities, mappings, index, *meant[index])

    def _mount(
        self,
        facilities: Facilities,
        mappings: dict[str, StorageMapping],
        index: int,
        mount: Mount,
        uri: str,
    ) -> Iterator[Problem]:
        pointer, without = f"/mounts/{index}/uri", [Action("without_mount", str(index))]
        mapped = find_mapping(mappings, mount.id, without_login(uri))
        if mapped is not None:
            yield from self._check_mapping(facilities, mappings[mapped], mount, pointer)
            return
        near = site_storage.suggest(without_login(mount.uri) or mount.id, mappings)
        suggested = [Action("mount_address", f"{index} {each}", {"address": each}) for each in near]
        params = {"near": ", ".join(near)} if near else {}
        if mount.id and not mount.uri:
            actions = [*suggested, *without]
            yield self._problem("dataset_not_known", f"/mounts/{index}/id", actions, id=mount.id, **params)
            return
        folder = local_path(uri)
        if folder is not None:
            output = mount.purpose is MountPurpose.OUTPUT and facilities.file_system
            if not (output and lies_in(folder, facilities.file_system)):
                yield from self._folder(facilities, folder, pointer, without)
        elif mount.path and not facilities.fetches_data(uri):
            shown = without_login(mount.uri)
            yield self._problem("data_not_mapped", pointer, [*suggested, *without], place=shown, **params)
        elif mount.purpose is MountPurpose.CODE and not mount.path:
            yield from self._fetched_code(facilities, uri, pointer)

    def _check_mapping(
        self, facilities: Facilities, mapping: StorageMapping, mount: Mount, pointer: str
    ) -> Iterator[Problem]:
        """Yield a problem where the workspace may not use the storage that stands for an address."""
        workspace, without = self.quota.workspace, [Action("without_mount", pointer.split("/")[2])]
        place = without_login(mount.uri) or mount.id
        is_read = (mapping.read_only or mount.read_only) and mount.purpose is not MountPurpose.OUTPUT
        if not mapping.is_admitted:
            params = {"place": place, "workspace": workspace.name}
            yield self._problem("storage_not_admitted", pointer, without, **params)
        elif mapping.read_only and mount.purpose is MountPurpose.OUTPUT:
            yield self._problem("storage_read_only", pointer, without, place=place)
        elif mapping.bucket and not is_read and facilities.buckets != WRITABLE:
            actions = [Action("mount_read_only", pointer.split("/")[2]), *without]
            yield self._problem("storage_not_writable", pointer, actions, place=place)
        elif mapping.folder:
            yield from self._folder(facilities, mapping.folder, pointer, without)

    def _folder(
        self, facilities: Facilities, folder: str, pointer: str, actions: Iterable[Action]
    ) -> Iterator[Problem]:
        workspace = self.quota.workspace
        if not facilities.admits_folder(folder, workspace.slug, self.user.get_username()):
            params = {"place": folder, "workspace": workspace.name, "setting": "folders"}
            yield self._problem("folder_not_admitted", pointer, actions, **params)

    def _code(self, facilities: Facilities, code: CodeSource) -> Iterator[Problem]:
        without = [Action("without_code")]
        if trees.tree_id_of(code.uri or code.id) is not None or code.id in facilities.code_ids:
            return
        folder = local_path(code.uri)
        if not code.uri:
            yield self._problem("code_not_known", "/code/id", without, id=code.id)
        elif folder is not None:
            yield from self._folder(facilities, folder, "/code/uri", without)
        else:
            yield from self._fetched_code(facilities, code.uri, "/code/uri")

    def _fetched_code(self, facilities: Facilities, uri: str, pointer: str) -> Iterator[Problem]:
        """Yield a problem with code that the cluster does not fetch, and the setting that would admit it."""
        if not (facilities.fetches_code(uri) or self._lies_in_bucket(uri)):
            setting = setting_of_code(uri)
            params = {"place": without_login(uri), **({"setting": setting} if setting else {})}
            yield self._problem("code_not_fetched", pointer, [Action("without_code")], **params)

    def _lies_in_bucket(self, uri: str) -> bool:
        """Return whether code lies in a bucket that is mapped to its address."""
        mappings = site_storage.find_mappings(self.quota.cluster_id, self.quota.workspace_id)
        mapped = find_mapping(mappings, "", without_login(uri))
        return mapped is not None and mappings[mapped].is_admitted and bool(mappings[mapped].bucket)

    def _meant(self, facilities: Facilities, uri: str) -> str:
        """Return the address with OpenPAI's names replaced, as the backends do it."""
        user = self.user.get_username()
        names = {"$PAI_JOB_NAME": self.parsed.spec.name, "$PAI_USER_NAME": user, "$PAI_USERNAME": user}
        if facilities.file_system:
            names[_DEFAULT_FILE_SYSTEM] = facilities.file_system
        for name, value in names.items():
            uri = uri.replace(name, value)
        return uri

    def _scripts(self, facilities: Facilities) -> Iterator[Problem]:
        spec = self.parsed.spec
        if not facilities.slurm and spec.framework is Framework.SLURM and spec.replicas > 1:
            yield self._problem("one_node_without_slurm", "/roles/0/replicas", nodes=spec.replicas)
            return
        for index, role in enumerate(spec.roles):
            if role.image and facilities.images:
                continue  # the image may have both
            pointer = f"/roles/{index}/command"
            if not facilities.slurm and (called := shell_commands.slurm_call(role.command)):
                fitting = shell_commands.without_srun(role.command)
                actions = [Action("without_srun", str(index))] if fitting is not None else []
                params = {"program": called.program, "line": called.line}
                yield self._problem("no_slurm", pointer, actions, **params)
            if facilities.modules is False:
                yield from self._modules(role, index)

    def _modules(self, role: RoleSpec, index: int) -> Iterator[Problem]:
        loads = self.parsed.spec.software.modules
        called = shell_commands.module_call(role.command)
        if called or (loads and index == 0):
            fitting = shell_commands.without_modules(role.command) is not None
            actions = [Action("without_modules")] if fitting else []
            params = {"line": called.line} if called else {}
            pointer = f"/roles/{index}/command" if called else "/software/modules"
            yield self._problem("no_modules", pointer, actions, **params)


def _is_provided(mount: Mount, uri: str) -> bool:
    """Tell whether every cluster has the location: an upload, a folder of the job, or the default output.

    OpenPAI's default output is a folder of the job where no file system is set.
    """
    if trees.tree_id_of(uri) is not None or trees.tree_id_of(mount.id) is not None:
        return True
    is_output = mount.purpose is MountPurpose.OUTPUT and not mount.path
    return uri.startswith(_OF_THE_JOB) or (is_output and uri.startswith(_DEFAULT_FILE_SYSTEM))


def gpu_types_of(cluster_id: int) -> set[str] | None:
    """Return the types of the cluster's GPUs; None where no node is known."""
    rows: list[Mapping[str, int]] = list(
        Node.objects.filter(cluster_id=cluster_id).values_list("gpus", flat=True)
    )
    return {kind for gpus in rows for kind, count in gpus.items() if count} if rows else None


def _elsewhere(user: User, quota: Quota, parsed: Parsed) -> Iterator[Action]:
    """Yield actions for other clusters that can run the job; one quota of each."""
    seen = {quota.cluster_id}
    for other in quotas_open_to(user)[:MOST_QUOTAS]:
        if other.cluster_id in seen or len(seen) > MOST_CLUSTERS:
            continue
        seen.add(other.cluster_id)
        if not any(_Check(user, other, parsed).problems()):
            yield Action(QUOTA, target_address(other), {"cluster": other.cluster.name})


def _locate(problem: Problem, text: str, places: FieldPositions) -> Problem:
    line, column = places.of_field(problem.pointer) or (None, None)
    needle = str(problem.params.get("line") or "")
    if needle:
        numbered = enumerate(text.splitlines(), 1)
        at = next((number for number, each in numbered if each.strip().startswith(needle)), None)
        line, column = (at, 1) if at else (line, column)
    return replace(problem, line=line, column=column)


# --- what can be done ------------------------------------------------------------------------------------


def _with_roles(spec: JobSpec, change: Callable[[RoleSpec], RoleSpec]) -> JobSpec:
    return spec.model_copy(update={"roles": tuple(change(role) for role in spec.roles)})


def resize(role: RoleSpec, **values: object) -> RoleSpec:
    """Return the role with other resources."""
    return role.model_copy(update={"resources": role.resources.model_copy(update=values)})


def _without_image(spec: JobSpec, _value: str) -> JobSpec:
    bare = _with_roles(spec, lambda role: role.model_copy(update={"image": ""}))
    return bare.model_copy(update={"registry_auth": None})


def _without_gpu(spec: JobSpec, _value: str) -> JobSpec:
    return _with_roles(spec, lambda role: resize(role, gpus=0, gpu_type="", instance_type=""))


def _gpu_type(spec: JobSpec, value: str) -> JobSpec:
    return _with_roles(spec, lambda role: resize(role, gpu_type=value) if role.resources.gpus else role)


def _mount_address(spec: JobSpec, value: str) -> JobSpec:
    index, _, address = value.partition(" ")
    changed = spec.mounts[int(index)]
    values = {"uri": address, "id": ""} if "://" in address else {"id": address, "uri": ""}
    return _with_mount(spec, changed, changed.model_copy(update=values))


def _mount_read_only(spec: JobSpec, value: str) -> JobSpec:
    changed = spec.mounts[int(value)]
    return _with_mount(spec, changed, changed.model_copy(update={"read_only": True}))


def _with_mount(spec: JobSpec, changed: Mount, wanted: Mount) -> JobSpec:
    mounts = tuple(wanted if each is changed else each for each in spec.mounts)
    return spec.model_copy(update={"mounts": mounts})


def _without_mount(spec: JobSpec, value: str) -> JobSpec:
    gone = spec.mounts[int(value)]
    return spec.model_copy(update={"mounts": tuple(each for each in spec.mounts if each is not gone)})


def _without_code(spec: JobSpec, _value: str) -> JobSpec:
    left = tuple(mount for mount in spec.mounts if mount.purpose is not MountPurpose.CODE)
    return spec.model_copy(update={"code": None, "mounts": left})


def _without_srun(spec: JobSpec, value: str) -> JobSpec:
    changed = spec.roles[int(value)]
    command = shell_commands.without_srun(changed.command)
    if command is None:
        raise ValueError(value)
    return _with_roles(spec, lambda role: _with_command(role, command) if role is changed else role)


def _without_modules(spec: JobSpec, _value: str) -> JobSpec:
    bare = _with_roles(
        spec, lambda role: _with_command(role, shell_commands.without_modules(role.command) or role.command)
    )
    return bare.model_copy(update={"software": spec.software.model_copy(update={"modules": ()})})


def _with_command(role: RoleSpec, command: str) -> RoleSpec:
    return role.model_copy(update={"command": command})


def _instance_role(spec: JobSpec, value: str) -> JobSpec:
    return spec.model_copy(update={"instance_role": value})


def _instance_type(spec: JobSpec, value: str) -> JobSpec:
    wanted: dict[str, object] = {"instance_type": value}
    if not value:
        wanted |= {"cpu_milli": _DEFAULTS.cpu_milli, "memory_mib": _DEFAULTS.memory_mib}
    return _with_roles(spec, lambda role: resize(role, **wanted) if role.resources.instance_type else role)


_CHANGES: Final[Mapping[str, Callable[[JobSpec, str], JobSpec]]] = {
    "without_image": _without_image,
    "without_gpu": _without_gpu,
    "gpu_type": _gpu_type,
    "mount_address": _mount_address,
    "mount_read_only": _mount_read_only,
    "without_mount": _without_mount,
    "without_code": _without_code,
    "without_srun": _without_srun,
    "without_modules": _without_modules,
    "instance_type": _instance_type,
    "role": _instance_role,
}
