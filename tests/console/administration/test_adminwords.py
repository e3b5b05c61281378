"""What Django admin's looks say is said in every language."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.utils import translation

from console.administration.adminwords import WORDS

SAID = re.compile(r"""\{%\s*trans(?:late)?\s+(?:"([^"]+)"|'([^']+)')""")
UNSEEN = {"Select format", "Forgotten your password or username?"}
"""Of parts of it that the console does not use."""


def said() -> set[str]:
    """The words of its templates."""
    of_unfold = [each.path for each in apps.get_app_configs() if each.name.startswith("unfold")]
    templates = (path for each in of_unfold for path in Path(each, "templates").rglob("*.html"))
    found = (match for path in templates for match in SAID.finditer(path.read_text(encoding="utf-8")))
    return {match[1] or match[2] for match in found} - UNSEEN


@pytest.mark.parametrize("language", ["zh-hans", "ja"])
def test_admin_strings_have_translations_in_each_language(language: str) -> None:
    assert "All applications" in said()
    with translation.override(language):
        left = {words for words in said() | set(WORDS) if translation.gettext(words) == words}
    assert not left
