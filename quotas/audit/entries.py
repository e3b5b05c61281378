"""Entries of the audit log.  Who acts, and from where, is known from `quotas.audit.origin`.

What is saved model by model is followed by django-auditlog (`follow`); what changes otherwise, by verbs and
queries, says so itself (`log`), in the transaction that makes it true.  Refusals are written by `denied`
after the fact, and never more of them than a disk can bear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import structlog
from auditlog.registry import auditlog
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError, models, transaction
from django.utils.encoding import smart_str

from quotas.audit import origin
from quotas.audit.bounds import Bounds
from quotas.audit.origin import Origin
from quotas.models import AuditEntry, User, Workspace
from quotas.models.audit import TEXT_LENGTH, Action

log_lines = structlog.get_logger(__name__)

MASK: Final = "••••"
"""What stands in the place of a secret, whatever its length."""

LONGEST: Final = 2000
"""A longer text is cut: the audit log records what changed, it does not archive documents."""

SECRET_NAME: Final = re.compile(
    r"passw|secret|token|credential|private|api_?key|access_?key|authorization|digest", re.IGNORECASE
)
_USERINFO: Final = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
_TOKEN: Final = re.compile(r"\bjc_[0-9a-f]{10}_[\w-]+")

refusals: Final = Bounds(at_once=20, every_s=6.0, all_at_once=300, all_every_s=2.0)
"""How many refusals one process writes: of one address or person, and of everybody."""


def follow(
    model: type[models.Model],
    *,
    without: Iterable[str] = (),
    masked: Iterable[str] = (),
    links: Iterable[str] = (),
) -> None:
    """Log every saved change of the model's rows.

    `without` are fields that only machines write; of `masked` ones only the fact of a change is logged;
    `links` are many-to-many fields.
    """
    auditlog.register(
        model,
        exclude_fields=list(without),
        mask_fields=list(masked),
        mask_callable="quotas.audit.mask",
        m2m_fields=set(links),
    )


def mask(text: str) -> str:
    """Return the mask of a secret; an empty value stays empty."""
    return MASK if text and text != "None" else ""


def log(
    action: Action,
    thing: models.Model | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    details: Mapping[str, Any] | None = None,
    actor: User | None = None,
    workspace: Workspace | int | None = None,
    name: str = "",
) -> None:
    """Write that `action` was done to `thing`; call it inside the transaction that does it.

    `changes` has (before, after) for each field.  `name` is what `thing` is called, where that is not what
    its str() says.
    """
    columns = {"changes": safe(changes or {}), "details": safe(details or {})}
    _write(origin.current(), action, thing, actor=actor, workspace=workspace, name=name, **columns)


def log_row(action: str, thing: models.Model, changes: Mapping[str, Any] | None) -> AuditEntry:
    """Write what django-auditlog saw, without changes from empty to empty and other rows' references."""
    own = {field.name for field in (*thing._meta.concrete_fields, *thing._meta.many_to_many)}  # noqa: SLF001
    changed = {
        name: change
        for name, change in (changes or {}).items()
        if name in own and not (_is_empty(change[0]) and _is_empty(change[1]))
    }
    return _write(origin.current(), action, thing, changes=safe(changed))


def _is_empty(value: Any) -> bool:
    return value in (None, "", "None", [], {})


def log_refusal(
    what: str,
    *,
    action: Action = Action.USE,
    thing: models.Model | None = None,
    actor: User | None = None,
    details: Mapping[str, Any] | None = None,
    request_origin: Origin | None = None,
) -> None:
    """Write that somebody was refused `what`; it never fails, and never floods.

    Call it outside the transaction that the refusal rolls back.  Beyond the bounds it is only counted; the
    next row of the same source tells how many there were.
    """
    request_origin = request_origin or origin.current()
    request_origin.refusal_logged = True
    person = actor or request_origin.person
    source = f"person {person.pk}" if person else f"address {_block(request_origin.address)}"
    missed = refusals.admit(source)
    if missed is None:
        return
    more = {**(details or {}), **({"unwritten": missed} if missed else {})}
    try:
        with transaction.atomic():
            _write(request_origin, action, thing, actor=actor, name=what, denied=True, details=safe(more))
    except DatabaseError as problem:
        log_lines.warning("refusal_not_written", what=what, problem=type(problem).__name__)


def _block(address: str) -> str:
    """Return the address, or the /64 of an IPv6 address, which one person has as a whole."""
    return ":".join(address.split(":")[:4]) if ":" in address else address


def _write(
    request_origin: Origin,
    action: str,
    thing: models.Model | None,
    *,
    actor: User | None = None,
    workspace: Workspace | int | None = None,
    name: str = "",
    **columns: Any,
) -> AuditEntry:
    person = actor or request_origin.person
    return AuditEntry.objects.create(
        action=action,
        way=request_origin.way,
        actor=person,
        actor_name=_short(person.get_username() if person else request_origin.name),
        token=request_origin.token,
        remote_addr=request_origin.address or None,
        cid=str(structlog.contextvars.get_contextvars().get("request_id", ""))[:64],
        workspace_id=_workspace_of(thing, workspace),
        person_id=_person_of(thing),
        content_type=ContentType.objects.get_for_model(thing) if thing is not None else None,
        object_pk=str(thing.pk)[:64] if thing is not None else "",
        object_repr=_short(name or (smart_str(thing) if thing is not None else "")),
        **columns,
    )


def _short(text: str) -> str:
    return mask_text(text.replace("\0", ""))[:TEXT_LENGTH]


def _workspace_of(thing: models.Model | None, given: Workspace | int | None) -> int | None:
    if given is not None:
        return given.pk if isinstance(given, Workspace) else given
    if isinstance(thing, Workspace):
        return thing.pk
    found: int | None = getattr(thing, "workspace_id", None)
    return found


def _person_of(thing: models.Model | None) -> int | None:
    if isinstance(thing, User):
        return thing.pk
    found: int | None = getattr(thing, "user_id", None) or getattr(thing, "owner_id", None)
    return found


def safe(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same as JSON, without what looks like a secret, at whatever depth."""
    return {str(key): _safe(str(key), value) for key, value in values.items()}


def _safe(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _safe(str(name), each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_safe(key, each) for each in value]
    if value is None or isinstance(value, bool):
        return value
    if SECRET_NAME.search(key):
        return mask(str(value))
    if isinstance(value, int | float):
        return value
    return mask_text(str(value).replace("\0", ""))[:LONGEST]


def mask_text(text: str) -> str:
    """Return the text without passwords in URLs and access tokens."""
    return _TOKEN.sub(MASK, _USERINFO.sub(MASK, text))
