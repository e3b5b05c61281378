"""A job by its id or its name."""

from __future__ import annotations

import re
from typing import Final

import httpx

from jobs.client.api import Console, Refused, Tell
from jobs.client.trouble import Trouble
from jobs.language import gettext as _
from jobs.language import ngettext

_ID: Final = re.compile(r"[a-z0-9]{12}")
_MOST: Final = 100


def find(console: Console, text: str, tell: Tell) -> str:
    """Return the id of a job: that one, or my newest of that name.  Raises Trouble, Refused.

    Which one it is is told where several have the name.
    """
    if _ID.fullmatch(text) and _is_there(console, text):
        return text
    rows = console.get("/jobs", owner="me", name=text, limit=_MOST)["jobs"]
    found = [row["id"] for row in rows if row["name"] == text]
    if not found:
        raise Trouble(_("You have no job with the ID or name %(text)s.") % {"text": text})
    if len(found) > 1:
        words = ngettext(
            "%(count)s job is called %(name)s; the newest is %(id)s.",
            "%(count)s jobs are called %(name)s; the newest is %(id)s.",
            len(found),
        )
        tell(words % {"count": len(found), "name": text, "id": found[0]})
    return str(found[0])


def _is_there(console: Console, job: str) -> bool:
    """Whether there is a job of that id, as far as I may know."""
    try:
        console.get(f"/jobs/{job}")
    except Refused as refused:
        return refused.status_code != httpx.codes.NOT_FOUND
    return True
