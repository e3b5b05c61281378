"""Drafts: saved while a person types, with earlier versions, and safe from a second window.

Every rendering of the form is a window with its own name.  A window whose version is the draft's changes the
draft.  One with an older version, because another window saved meanwhile, changes nothing: its text is stored
beside the draft until the person chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from jobs.dialects.base import MAX_BYTES, Refused
from jobs.dialects.document import Document
from jobs.models import Draft, DraftVersion, Job
from quotas.models import User

KEEP_EVERY: Final = timedelta(minutes=1)
"""Shortest time between two stored versions of one window."""

MOST_VERSIONS: Final = 100
LONGEST_PLACE: Final = 255
LONGEST_TEMPLATE: Final = 80
LONGEST_NUMBER: Final = 8


@dataclass(frozen=True, slots=True)
class DraftContent:
    """The content of a window: `window` is its name, `version` the draft's when it last saved or began.

    `place` (the target), `template`, `sweep` and `at_once` are the values of the form's fields.  With `take`
    this text becomes the draft's, whatever another window has saved.
    """

    document: Document
    place: str = ""
    template: str = ""
    sweep: str = ""
    at_once: str = ""
    window: str = ""
    version: int | None = None
    take: bool = False


@dataclass(frozen=True, slots=True)
class SavedDraft:
    """The draft as it is now; `beside` has the text if the draft has another window's."""

    draft: Draft
    beside: DraftVersion | None = None


def find(user: User, pk: str) -> Draft | None:
    """Return the person's own draft of that number; None for anything else."""
    if not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        return None
    return Draft.objects.filter(owner=user, pk=int(pk)).first()


def keep(user: User, pk: str, typed: DraftContent, origin: Job | None = None) -> SavedDraft | None:
    """Save a window's content in that draft, or in a new one; no text is refused.

    Returns None where the person has no such draft and the text is empty.
    """
    text, document = _plain(typed.document.text), typed.document
    typed = replace(
        typed,
        document=document if text == document.text else Document(text, document.given),
        place=typed.place[:LONGEST_PLACE],
        template=typed.template[:LONGEST_TEMPLATE],
        sweep=_plain(typed.sweep),
        at_once=typed.at_once[:LONGEST_NUMBER].replace("\0", ""),
    )
    name = _name(typed)
    with transaction.atomic():
        found = find(user, pk)
        draft = found and Draft.objects.select_for_update().filter(pk=found.pk).first()
        if draft is None:
            return SavedDraft(_save(Draft(owner=user, origin=origin), typed, name)) if text.strip() else None
        if _is_behind(draft, typed):
            return SavedDraft(draft, _save_beside(draft, typed))
        _keep_version(draft, typed)
        draft.version += 1
        draft.versions.filter(beside=True, window=typed.window).delete()
        return SavedDraft(_save(draft, typed, name))


def _plain(text: str) -> str:
    return text[:MAX_BYTES].replace("\r\n", "\n").replace("\0", "")


def discard(user: User, pk: str, typed: DraftContent) -> None:
    """Delete the draft of a submitted text, unless the draft has another window's text.

    A draft that a save of the same window made without the page's knowledge is deleted too.
    """
    if typed.window:
        Draft.objects.filter(owner=user, window=typed.window).delete()
    draft = find(user, pk)
    if draft is None:
        return
    if _is_behind(draft, typed):
        draft.versions.filter(beside=True, window=typed.window).delete()
    else:
        draft.delete()


def _save(draft: Draft, typed: DraftContent, name: str) -> Draft:
    draft.text, draft.dialect = typed.document.text, typed.document.given or ""
    draft.place = typed.place
    draft.name, draft.window, draft.template = name, typed.window, typed.template
    draft.sweep, draft.at_once = typed.sweep, typed.at_once
    draft.save()
    return draft


def _is_behind(draft: Draft, typed: DraftContent) -> bool:
    """Tell whether another window has saved the draft since this one loaded it."""
    if typed.take or typed.version is None or typed.window == draft.window:
        return False
    return typed.version != draft.version


def _save_beside(draft: Draft, typed: DraftContent) -> DraftVersion:
    values = {
        "number": typed.version or 0,
        "text": typed.document.text,
        "dialect": typed.document.given or "",
        "sweep": typed.sweep,
        "at_once": typed.at_once,
        "saved_at": timezone.now(),
    }
    row, _created = draft.versions.update_or_create(beside=True, window=typed.window, defaults=values)
    return row


def _keep_version(draft: Draft, typed: DraftContent) -> None:
    """Store the draft's last version, if it is another window's or KEEP_EVERY has passed; drop the oldest."""
    if not draft.text.strip() or (draft.text, draft.sweep) == (typed.document.text, typed.sweep):
        return
    kept = draft.versions.filter(beside=False)
    recent = kept.filter(saved_at__gt=Now() - KEEP_EVERY).exists()
    if recent and draft.window == typed.window:
        return
    draft.versions.create(
        number=draft.version,
        text=draft.text,
        dialect=draft.dialect,
        sweep=draft.sweep,
        at_once=draft.at_once,
        window=draft.window,
        saved_at=draft.updated_at,
    )
    old = kept.order_by("-number").values_list("pk", flat=True)[MOST_VERSIONS:]
    draft.versions.filter(pk__in=list(old)).delete()


def _name(typed: DraftContent) -> str:
    """Return the job's name in the text, "" while it can't be read."""
    try:
        return typed.document.parsed.spec.name[:256]
    except Refused:
        return ""
