"""The panel beside a job file: what it costs, what it takes, whether it starts now, and what will be sent.

Asked anew after each change of the text or the place; works from the text alone, whatever form is above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from django.http import HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from jobs import dialects, preview, remedies, services
from jobs.messages import problem_message
from jobs.preview import Preview, Unreadable
from jobs.views.http import SignedIn, page, signed_in
from jobs.views.waiting import Offered, offered
from quotas.models import User

COST: Final = "cost"
TABS: Final = (COST,)
FRAGMENTS: Final = {"job-panel": "jobs/new/panel_answer.html"}


@dataclass(frozen=True, slots=True)
class Said:
    """The one sentence, and how good it is: a level of `components/notice.html`."""

    level: str
    text: str

    @property
    def digest(self) -> str:
        """What tells this sentence from another: one that is known already is not read out again."""
        return sha256(self.text.encode()).hexdigest()[:12]


@require_POST
@signed_in
def panel(request: SignedIn) -> HttpResponseBase:
    """`text`, `dialect`, `place`, `panel_tab` → what would become of it; nothing is stored."""
    tab = request.POST.get("panel_tab", "")
    shown = asked(request.user, request.POST.get("text", ""), _dialect(request), _place(request), request)
    said: Said = shown["said"]
    context = {
        **shown,
        "tab": tab if tab in TABS else COST,
        "said_again": request.POST.get("panel_said") == said.digest,
    }
    return page(request, "jobs/new/panel_page.html", context, fragments=FRAGMENTS)


def _dialect(request: SignedIn) -> str | None:
    name = request.POST.get("dialect", "")
    return name if name in dialects.NAMES else None


def _place(request: SignedIn) -> services.Place:
    return services.place_at(request.POST.get("place", ""))


def asked(
    user: User, text: str, dialect: str | None, place: services.Place, request: SignedIn
) -> dict[str, Any]:
    """What the panel shows of a text."""
    text = text.replace("\r\n", "\n")
    if not text.strip():
        return {"said": Said("info", _("What the job costs, and whether it would start now, appears here."))}
    try:
        name, parsed = preview.read(text, dialect, keep_original="keep_original" in request.POST)
        found = preview.preview(user, name, parsed.spec, place)
    except Unreadable as unreadable:
        return {"said": Said("warn", _not_yet(unreadable))}
    return {"said": said(found), "preview": found, "offered": _offered(user, found)}


def _not_yet(unreadable: Unreadable) -> str:
    problems = unreadable.problems
    if len(problems) == 1 and problems[0].code in {"no_place", "no_such_place"}:
        return problem_message(problems[0])
    text = ngettext(
        "Nothing can be said while the job file has a problem.",
        "Nothing can be said while the job file has %(count)s problems.",
        len(problems),
    )
    return text % {"count": len(problems)}


def said(found: Preview) -> Said:
    """Whether it would start now, as a notice."""
    if found.refused:
        return Said("bad", found.sentence)
    return Said("ok" if found.starts else "warn", found.sentence)


def _offered(user: User, found: Preview) -> list[Offered]:
    """What would start it now, where it would not start as it is."""
    if found.starts or found.refused:
        return []
    return [offered(each) for each in remedies.of_preview(user, found)]
