"""The names that the console itself gives at its first start, in the reader's language.

They are stored in English, as any name is; an admin who changes one has it shown as typed.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext, gettext_noop

WORKSPACE: Final = gettext_noop("Default")
QUOTA: Final = WORKSPACE
CLUSTER: Final = gettext_noop("This machine")
DEFAULT_NAMES: Final = frozenset({WORKSPACE, QUOTA, CLUSTER})


class Titled:
    """A model whose rows have a `name`; `title` is the name as pages show it."""

    name: str

    @property
    def title(self) -> str:
        """The name as typed, a default name in the reader's language."""
        return gettext(self.name) if self.name in DEFAULT_NAMES else self.name
