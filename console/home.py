"""The folder of one installation."""

from collections.abc import Mapping
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def console_home(environ: Mapping[str, str]) -> Path:
    """CONSOLE_HOME, made absolute, or `var` in the checkout."""
    given = environ.get("CONSOLE_HOME", "").strip()
    return Path(given).expanduser().absolute() if given else CHECKOUT / "var"
