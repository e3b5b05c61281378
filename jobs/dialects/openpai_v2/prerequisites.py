"""`prerequisites`: images, data, scripts and outputs, which task roles ask for by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.base import Fix
from jobs.dialects.fields import CONSOLE, Text
from jobs.dialects.openpai_v2 import keys
from jobs.dialects.openpai_v2.names import nearest
from jobs.dialects.openpai_v2.part import Part
from jobs.dialects.openpai_v2.templates import Context, resolve
from jobs.dialects.record import short
from jobs.spec import Mount, MountPurpose, RegistryAuth, SecretRef

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
        """The places it names; a job only reads its code."""
        read_only = purpose is MountPurpose.CODE
        return [Mount(purpose=purpose, uri=uri, read_only=read_only) for uri in self.uris if uri]


@dataclass(slots=True)
class Prerequisites:
    """All of them, by type and name."""

    items: dict[str, dict[str, Item]] = field(default_factory=lambda: {kind: {} for kind in FIELDS})

    def wanted(self, kind: str, role: Part) -> Item | None:
        """What the role asks for of that type; one that is not there is told."""
        rule = FIELDS[kind]
        name = role.text(rule)
        known = self.items[kind]
        if rule.key not in role.value or name in known:
            return known.get(name)
        if name:
            meant = nearest(name, known) if role.findings.looks_mistyped else None
            fix = Fix(role.at(rule.key), meant) if meant else None
            role.findings.problem(
                "no_prerequisite", role.at(rule.key), rule.source, fix, value=short(name), kind_of=kind
            )
        return None


def read(root: Part) -> Prerequisites:
    """All prerequisites; two of one type and name are told."""
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


def _uris(part: Part, kind: str) -> tuple[str, ...]:
    """The addresses: one, or a list of them for data."""
    key = keys.URI.key
    if kind == "data":
        return tuple(uri for _pointer, uri in part.strings(key, keys.OPENPAI))
    if key not in part.value and kind != IMAGE:
        return ()
    rule = Text(key=key, source=keys.OPENPAI, help="", required=kind == IMAGE, blank=kind != IMAGE)
    return (part.text(rule),)


def _auth(part: Part, secrets: Context) -> RegistryAuth | None:
    """The login; what is secret in it has become a placeholder or is a template."""
    login = part.part(keys.AUTH)
    login.note_unknown()
    texts = {rule.key: login.text(rule) for rule in (keys.USERNAME, keys.PASSWORD, keys.REGISTRY)}
    password = _secret(login, texts[keys.PASSWORD.key], secrets)
    if not any(texts.values()):
        return None
    room = part.findings.room
    resolved = RegistryAuth(
        registry=resolve(texts[keys.REGISTRY.key], secrets, room).text,
        username=resolve(texts[keys.USERNAME.key], secrets, room).text,
        password=SecretRef(name=password) if password else None,
    )
    if room.is_exceeded:
        part.findings.problem("expands_too_far", login.pointer, CONSOLE, most=room.most)
    return resolved


def _secret(login: Part, text: str, secrets: Context) -> str | None:
    """The name of the secret that a placeholder or template stands for."""
    if known := placeholders.reference(text):
        return known
    resolved = resolve(text, secrets, login.findings.room)
    for name in resolved.wanted:
        login.findings.note("secret_wanted", login.at(keys.PASSWORD.key), name=name)
    return next(iter(resolved.secrets.values()), None)
