"""`prerequisites` ↔ images, logins and places; task roles ask for them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.base import Fix
from jobs.dialects.fields import CONSOLE, Text
from jobs.dialects.objects import as_list, as_object, free_name, read_fields, write_fields
from jobs.dialects.openpai_v2 import keys
from jobs.dialects.openpai_v2.part import FilePart, find_nearest
from jobs.dialects.openpai_v2.templates import SECRETS, Context, resolve
from jobs.dialects.record import short
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec, Mount, MountPurpose, RegistryAuth, SecretRef

IMAGE: Final = "dockerimage"
FIELDS: Final[Mapping[str, Text]] = {
    IMAGE: keys.DOCKER_IMAGE,
    "data": keys.DATA,
    "output": keys.OUTPUT,
    "script": keys.SCRIPT,
}
"""Type → the key by which a task role asks for one."""

PURPOSES: Final = {"data": MountPurpose.DATA, "output": MountPurpose.OUTPUT, "script": MountPurpose.CODE}


@dataclass(frozen=True, slots=True)
class Item:
    """One prerequisite: `uris` are its addresses, `value` what templates see."""

    name: str
    uris: tuple[str, ...]
    value: Mapping[str, object]
    auth: RegistryAuth | None = None

    def mounts(self, purpose: MountPurpose) -> list[Mount]:
        """Return the places it names; a job only reads its code."""
        read_only = purpose is MountPurpose.CODE
        return [Mount(purpose=purpose, uri=uri, read_only=read_only) for uri in self.uris if uri]


@dataclass(slots=True)
class Prerequisites:
    """All of them, by type and name."""

    items: dict[str, dict[str, Item]] = field(default_factory=lambda: {kind: {} for kind in FIELDS})

    def find(self, kind: str, role: FilePart) -> Item | None:
        """Return the one of that type that the role names; one that is not there is a problem."""
        rule = FIELDS[kind]
        name = role.text(rule)
        known = self.items[kind]
        if rule.key not in role.value or name in known:
            return known.get(name)
        if name:
            meant = find_nearest(name, known) if role.findings.looks_mistyped else None
            fix = Fix(role.at(rule.key), meant) if meant else None
            role.findings.problem(
                "no_prerequisite", role.at(rule.key), rule.source, fix, value=short(name), kind_of=kind
            )
        return None


def read(root: FilePart) -> Prerequisites:
    """Read all prerequisites; two of one type and name are a problem."""
    found = Prerequisites()
    secrets: Context = {"$secrets": root.value.get(keys.SECRETS.key)}
    for part in root.parts(keys.PREREQUISITES):
        part.note_unknown()
        name, kind = part.text(keys.ITEM_NAME), part.choice(keys.ITEM_TYPE)
        part.text(keys.ITEM_VERSION)
        if kind not in FIELDS:
            continue
        if name in found.items[kind]:
            part.findings.problem(
                "duplicate_prerequisite", part.pointer, keys.OPENPAI, value=short(name), kind_of=kind
            )
        auth = _auth(part, secrets) if kind == IMAGE and keys.AUTH.key in part.value else None
        found.items[kind][name] = Item(name, _uris(part, kind), part.value, auth)
    return found


def _uris(part: FilePart, kind: str) -> tuple[str, ...]:
    """Return the addresses: one, or a list of them for data."""
    key = keys.URI.key
    if kind == "data":
        return tuple(uri for _pointer, uri in part.strings(key, keys.OPENPAI))
    if key not in part.value and kind != IMAGE:
        return ()
    rule = Text(key=key, source=keys.OPENPAI, help="", required=kind == IMAGE, blank=kind != IMAGE)
    return (part.text(rule),)


def _auth(part: FilePart, secrets: Context) -> RegistryAuth | None:
    """Return the login; what is secret in it has become a placeholder or is a template."""
    login = part.part(keys.AUTH)
    login.note_unknown()
    texts = read_fields(login, (keys.USERNAME, keys.PASSWORD, keys.REGISTRY))
    password = _secret(login, texts["password"], secrets)
    if not any(texts.values()):
        return None
    room = part.findings.room
    plain = {name: resolve(texts[name], secrets, room).text for name in ("registry", "username")}
    resolved = RegistryAuth(**plain, password=SecretRef(name=password) if password else None)
    if room.is_exceeded:
        part.findings.problem("expands_too_far", login.pointer, CONSOLE, most=room.most)
    return resolved


def _secret(login: FilePart, text: str, secrets: Context) -> str | None:
    """Return the name of the secret that a placeholder or template stands for."""
    if known := placeholders.reference(text):
        return known
    resolved = resolve(text, secrets, login.findings.room)
    for name in resolved.wanted:
        login.findings.note("secret_wanted", login.at(keys.PASSWORD.key), name=name)
    return next(iter(resolved.secrets.values()), None)


# --- writing ---------------------------------------------------------------------------------------------


def write_images(job: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]) -> None:
    """Write the image of every role, in its own prerequisite unless another role keeps that one."""
    roles = _roles(job)
    before = {role.name: role.image for role in there.roles} if there else {}
    wanted = {names[role.name]: role.image for role in spec.roles}
    users: dict[str, list[str]] = {}
    for name in wanted:
        users.setdefault(str(roles.get(name, {}).get(keys.DOCKER_IMAGE.key, "")), []).append(name)
    for role in spec.roles:
        name = names[role.name]
        if role.name in before and before[role.name] == role.image:
            continue
        said = roles.setdefault(name, {})
        used = str(said.get(keys.DOCKER_IMAGE.key, ""))
        item = _item(job, used)
        if not role.image:
            said[keys.DOCKER_IMAGE.key] = ""
        elif item is not None and all(wanted[other] == role.image for other in users[used]):
            item[keys.URI.key] = role.image
        else:
            said[keys.DOCKER_IMAGE.key] = _image(job, role.image)
    job[keys.TASK_ROLES.key] = roles
    if there is None or spec.registry_auth != there.registry_auth:
        _write_login(
            job, spec.registry_auth, {str(role.get(keys.DOCKER_IMAGE.key)) for role in roles.values()}
        )


def _roles(job: JsonObject) -> dict[str, JsonObject]:
    held = as_object(job.get(keys.TASK_ROLES.key))
    return {name: as_object(role) for name, role in held.items()}


def _items(job: JsonObject, kind: str) -> list[JsonObject]:
    every = (as_object(item) for item in as_list(job.get(keys.PREREQUISITES.key)))
    return [item for item in every if item.get(keys.ITEM_TYPE.key) == kind]


def _item(job: JsonObject, name: str) -> JsonObject | None:
    return next((item for item in _items(job, IMAGE) if item.get(keys.ITEM_NAME.key) == name), None)


def _image(job: JsonObject, uri: str) -> str:
    """Return the name of an image's prerequisite, which is added when there is none."""
    known = next((item for item in _items(job, IMAGE) if item.get(keys.URI.key) == uri), None)
    if known is not None:
        return str(known[keys.ITEM_NAME.key])
    return _add(job, IMAGE, uri, f"docker_image_{len(_items(job, IMAGE))}")


def _add(job: JsonObject, kind: str, uri: object, wanted: str) -> str:
    """Add a prerequisite, and return its name: the `wanted` one, or one that is free."""
    name = free_name(wanted, [str(item.get(keys.ITEM_NAME.key)) for item in _items(job, kind)])
    item = {keys.ITEM_TYPE.key: kind, keys.URI.key: uri, keys.ITEM_NAME.key: name}
    job[keys.PREREQUISITES.key] = [*as_list(job.get(keys.PREREQUISITES.key)), item]
    return name


def _write_login(job: JsonObject, login: RegistryAuth | None, used: set[str]) -> None:
    for item in _items(job, IMAGE):
        if item.get(keys.ITEM_NAME.key) not in used:
            continue
        if login is None or not (login.registry or login.username or login.password):
            item.pop(keys.AUTH.key, None)
            continue
        said = write_fields((keys.USERNAME, keys.REGISTRY), login)
        if login.password:
            said[keys.PASSWORD.key] = f"<% {SECRETS}.{secret_key(job, login.password.name)} %>"
        item[keys.AUTH.key] = said


def secret_key(job: JsonObject, secret: str) -> str:
    """Return the key of `secret` among the file's secrets, which is added when there is none."""
    held = dict(as_object(job.get(keys.SECRETS.key)))
    for key, value in held.items():
        if value == placeholders.placeholder(secret) and keys.TASK_ROLES.fits(key):
            return key
    key = free_name(secret if keys.TASK_ROLES.fits(secret) else keys.TASK_ROLES.propose(secret), held)
    job[keys.SECRETS.key] = {**held, key: placeholders.placeholder(secret)}
    return key


def write_places(job: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]) -> None:
    """Write data, output and code: prerequisites of every role, where they have changed."""
    wanted = [mount for mount in spec.mounts if _is_named_only(mount)]
    same_roles = there is not None and [role.name for role in there.roles] == [
        role.name for role in spec.roles
    ]
    if (
        same_roles
        and there is not None
        and [mount for mount in there.mounts if _is_named_only(mount)] == wanted
    ):
        return
    roles = _roles(job)
    for kind, purpose in PURPOSES.items():
        uris = [mount.uri for mount in wanted if mount.purpose is purpose]
        field = FIELDS[kind].key
        for name in names.values():
            roles.setdefault(name, {}).pop(field, None)
        if not uris:
            continue
        item = _write_place(job, kind, uris if kind == "data" else uris[0])
        for name in names.values():
            roles[name][field] = item
    job[keys.TASK_ROLES.key] = roles


def _is_named_only(mount: Mount) -> bool:
    """Tell whether the job only learns of a mount, as of v2's prerequisites."""
    return bool(mount.uri) and not mount.id and not mount.path


def _write_place(job: JsonObject, kind: str, uri: object) -> str:
    """Return the name of a place's prerequisite, which is added when there is none."""
    same = (item for item in _items(job, kind) if item.get(keys.URI.key) in (uri, [uri]))
    known = next(same, None)
    return str(known[keys.ITEM_NAME.key]) if known is not None else _add(job, kind, uri, kind)
