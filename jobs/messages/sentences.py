"""Templates of sentences: of several, the fullest one whose parameters are all given is filled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from jobs.language import gettext

DEFAULT_NAMES: Final = frozenset({"Default", "This machine"})
"""Those of `quotas.default_names`, which the command line does not have: shown in the reader's language."""

_PLACE: Final = re.compile(r"%\((\w+)\)s")


class _Blanks(dict[str, object]):
    """Parameters, with an ellipsis for those that are missing."""

    def __missing__(self, key: str) -> str:
        return "…"


def mark(message: str) -> str:
    """Mark a sentence of a table for translation, under the name `_` by which the collector finds it.

    Django's own `gettext_noop` asks for settings, which a command line has none of.
    """
    return message


def say(templates: Sequence[str], params: Mapping[str, object]) -> str:
    """Return the first of `templates` whose parameters are all given, translated and filled."""
    given = _Blanks((key, _show(value)) for key, value in params.items() if value is not None and value != "")
    for template in templates:
        if needs(template) <= given.keys():
            return gettext(template) % given
    return gettext(templates[-1]) % given


def _show(value: object) -> object:
    return gettext(value) if isinstance(value, str) and value in DEFAULT_NAMES else value


@cache
def needs(template: str) -> frozenset[str]:
    """Return the parameters that a template shows."""
    return frozenset(_PLACE.findall(template))
