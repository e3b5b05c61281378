"""The reference: pages of the documentation that are made from the code, and so can't differ from it."""

from __future__ import annotations

from importlib import import_module
from typing import Final

_MODULES: Final = {
    "settings": "settings",
    "cluster-settings": "cluster_settings",
    "backends-fields": "backends",
    "dialect-fields": "dialect_fields",
    "fault-arguments": "fault_arguments",
    "vendor-apis": "vendor_apis",
}
NAMES: Final = tuple(_MODULES)
"""The names of the pages, without `.md`."""


def build(name: str) -> str:
    """Return a page of `NAMES` as Markdown; Django has to be set up."""
    # Imported when asked for: some import models, which do not exist yet when this module is imported.
    page: str = import_module(f"console.documentation.reference.{_MODULES[name]}").page()
    return page
