"""The page of settings: every environment variable, with its meaning, its unit and its default."""

from __future__ import annotations

import console.settings  # noqa: F401  # asks for every variable
from console.configuration.config import env
from console.management.commands.settings_table import markdown


def page() -> str:
    """Return the whole page."""
    return markdown(env.variables.values())
