"""Images, logins and places of a JobSpec → `prerequisites`, and the names by which roles ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.openpai_v2 import keys
from jobs.dialects.openpai_v2.extras import as_list, as_object
from jobs.dialects.openpai_v2.names import free
from jobs.dialects.openpai_v2.prerequisites import FIELDS, IMAGE, PURPOSES
from jobs.dialects.openpai_v2.templates import SECRETS
from jobs.dialects.rendering import JsonObject
from jobs.spec import JobSpec, Mount, RegistryAuth

_NEW_IMAGE: Final = "docker_image_0"


def write_images(job: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]) -> None:
    """The image of every role: in the prerequisite that it has, if no other role keeps that one as it is."""
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
    """The name of an image's prerequisite, which is added when there is none."""
    known = next((item for item in _items(job, IMAGE) if item.get(keys.URI.key) == uri), None)
    if known is not None:
        return str(known[keys.ITEM_NAME.key])
    taken = [str(item.get(keys.ITEM_NAME.key)) for item in _items(job, IMAGE)]
    number = len(taken)
    name = free(_NEW_IMAGE if not taken else f"docker_image_{number}", taken)
    _add(job, {keys.ITEM_TYPE.key: IMAGE, keys.URI.key: uri, keys.ITEM_NAME.key: name})
    return name


def _add(job: JsonObject, item: JsonObject) -> None:
    job[keys.PREREQUISITES.key] = [*as_list(job.get(keys.PREREQUISITES.key)), item]


def _write_login(job: JsonObject, login: RegistryAuth | None, used: set[str]) -> None:
    for item in _items(job, IMAGE):
        if item.get(keys.ITEM_NAME.key) not in used:
            continue
        if login is None or not (login.registry or login.username or login.password):
            item.pop(keys.AUTH.key, None)
            continue
        said: JsonObject = {}
        for key, value in ((keys.USERNAME.key, login.username), (keys.REGISTRY.key, login.registry)):
            if value:
                said[key] = value
        if login.password:
            said[keys.PASSWORD.key] = f"<% {SECRETS}.{secret_key(job, login.password.name)} %>"
        item[keys.AUTH.key] = said


def secret_key(job: JsonObject, secret: str) -> str:
    """The key among the file's secrets of the one called `secret`, which is added when there is none."""
    held = dict(as_object(job.get(keys.SECRETS.key)))
    for key, value in held.items():
        if value == placeholders.placeholder(secret) and keys.TASK_ROLES.fits(key):
            return key
    key = free(secret if keys.TASK_ROLES.fits(secret) else keys.TASK_ROLES.propose(secret), held)
    job[keys.SECRETS.key] = {**held, key: placeholders.placeholder(secret)}
    return key


def write_places(job: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]) -> None:
    """Data, output and code: prerequisites of every role, where they have changed."""
    wanted = [mount for mount in spec.mounts if _is_told(mount)]
    same_roles = there is not None and [role.name for role in there.roles] == [
        role.name for role in spec.roles
    ]
    if same_roles and there is not None and [mount for mount in there.mounts if _is_told(mount)] == wanted:
        return
    roles = _roles(job)
    for kind, purpose in PURPOSES.items():
        uris = [mount.uri for mount in wanted if mount.purpose is purpose]
        field = FIELDS[kind].key
        for name in names.values():
            roles.setdefault(name, {}).pop(field, None)
        if not uris:
            continue
        item = _place(job, kind, uris if kind == "data" else uris[0])
        for name in names.values():
            roles[name][field] = item
    job[keys.TASK_ROLES.key] = roles


def _is_told(mount: Mount) -> bool:
    """Whether a mount is only told to the job, as v2's prerequisites are."""
    return bool(mount.uri) and not mount.id and not mount.path


def _place(job: JsonObject, kind: str, uri: object) -> str:
    """The name of a place's prerequisite, which is added when there is none."""
    same = (item for item in _items(job, kind) if item.get(keys.URI.key) in (uri, [uri]))
    known = next(same, None)
    if known is not None:
        return str(known[keys.ITEM_NAME.key])
    name = free(kind, [str(item.get(keys.ITEM_NAME.key)) for item in _items(job, kind)])
    _add(job, {keys.ITEM_TYPE.key: kind, keys.URI.key: uri, keys.ITEM_NAME.key: name})
    return name
