"""The folders of one installation: its own, and those of the program."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parent.parent
"""The folder that the packages lie in: of a checkout, or of an environment that a wheel is installed in."""

_OF_WHEEL: Final = Path(__file__).resolve().parent / "resources"

IS_INSTALLED: Final = _OF_WHEEL.is_dir()
"""Tell whether this console was installed from a wheel."""

RESOURCES: Final = _OF_WHEEL if IS_INSTALLED else CHECKOUT
"""The folder with `docs`, `static` and `templates`."""


def console_home(environ: Mapping[str, str]) -> Path:
    """Return CONSOLE_HOME, made absolute; `var` in a checkout, else a folder among the user's data."""
    given = environ.get("CONSOLE_HOME", "").strip()
    if given:
        return Path(given).expanduser().absolute()
    return _data_home(environ) / "job-console" if IS_INSTALLED else CHECKOUT / "var"


def _data_home(environ: Mapping[str, str]) -> Path:
    """Return where programs keep a user's data, by the XDG Base Directory specification."""
    given = environ.get("XDG_DATA_HOME", "")
    return Path(given) if os.path.isabs(given) else Path.home() / ".local" / "share"  # noqa: PTH117  # of a text
