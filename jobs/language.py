"""The reader's language, with Django and without it.

In a console the language is the one that Django has for this request.  A command line has no Django: it reads
the same catalogues with the standard library, in the language of the environment.
"""

from __future__ import annotations

import gettext as catalogues
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

LANGUAGES: Final = {"ja": "ja", "zh": "zh_Hans"}
"""Catalogue folders by the first letters of a locale; English for every other."""

_FOLDERS: Final = (Path(__file__).parent / "locale", Path(__file__).parents[1] / "locale")
"""In the command line's own distribution, and in the console's."""

_catalogue: catalogues.NullTranslations = catalogues.NullTranslations()
_language = "en"


def gettext(message: str) -> str:
    """Return the message in the reader's language."""
    if _is_console():
        from django.utils import translation  # noqa: PLC0415 only a console has it

        return translation.gettext(message)
    return _catalogue.gettext(message) if message else ""


def ngettext(singular: str, plural: str, number: int) -> str:
    """Return the form of a message that goes with the number, in the reader's language."""
    if _is_console():
        from django.utils import translation  # noqa: PLC0415 only a console has it

        return translation.ngettext(singular, plural, number)
    return _catalogue.ngettext(singular, plural, number)


def localtime(moment: datetime) -> datetime:
    """Return the moment in the reader's time zone."""
    if _is_console():
        from django.utils import timezone  # noqa: PLC0415 only a console has it

        return timezone.localtime(moment)
    return moment.astimezone()


def current() -> str:
    """Return the name of the reader's language, as HTTP has it."""
    if _is_console():
        from django.utils import translation  # noqa: PLC0415 only a console has it

        return translation.get_language() or "en"
    return _language.replace("_", "-").lower()


def activate(language: str) -> None:
    """Set the language of the command line: a folder of the catalogues, or `en`."""
    global _catalogue, _language  # noqa: PLW0603 a process of the command line has one reader
    folder = next((str(each) for each in _FOLDERS if each.is_dir()), None)
    _language = language
    _catalogue = catalogues.translation("django", folder, [language], fallback=True)


def language_of(environment: Mapping[str, str]) -> str:
    """Return the language of a person with these variables; as POSIX has it, the first that is set counts."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return LANGUAGES.get(locale[:2].lower(), "en")


def _is_console() -> bool:
    """Tell whether this process has Django's settings."""
    loaded = sys.modules.get("django.conf")
    return loaded is not None and bool(loaded.settings.configured)
