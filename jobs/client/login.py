"""Which console somebody means, and the token with which they are known there."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jobs.client.trouble import Trouble
from jobs.language import gettext as _

TOKEN: Final = "JOB_CONSOLE_TOKEN"  # noqa: S105 the variable's name
SERVER: Final = "JOB_CONSOLE_URL"


@dataclass(frozen=True, slots=True)
class Login:
    """A console's address, without a slash at its end, and a token."""

    server: str
    token: str


def path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where logins are kept."""
    around = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(around, "job-console", "logins.json")


def find(server: str | None, environment: Mapping[str, str] = os.environ) -> Login:
    """The login for a server, or for the one that was last logged in to.  Raises Trouble."""
    kept = _read(path(environment))
    server = address(server or environment.get(SERVER) or kept.get("last") or "")
    if not server:
        raise Trouble(_("Which console? Log in with “job-console login URL”, or set JOB_CONSOLE_URL."))
    token = environment.get(TOKEN) or kept.get("tokens", {}).get(server)
    if not token:
        raise Trouble(
            _("There is no token for %(server)s: log in with “job-console login %(server)s”.")
            % {"server": server}
        )
    return Login(server, str(token))


def keep(login: Login, environment: Mapping[str, str] = os.environ) -> Path:
    """Remember a login, for nobody else to read."""
    place = path(environment)
    kept = _read(place)
    kept["tokens"] = {**kept.get("tokens", {}), login.server: login.token}
    kept["last"] = login.server
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=place.parent)  # 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=2)
    Path(beside).replace(place)
    return place


def address(server: str) -> str:
    """The address as it is kept.  Raises Trouble for what is none."""
    server = server.strip().rstrip("/")
    if not server:
        return ""
    parts = urlsplit(server if "://" in server else f"https://{server}")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
        raise Trouble(_("%(server)s is no address of a console.") % {"server": server})
    return parts.geturl()


def _read(place: Path) -> dict[str, Any]:
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        return {}
    if mode & 0o077:
        raise Trouble(
            _("Others can read your tokens in %(path)s: consider them known, and run chmod 600.")
            % {"path": place}
        )
    try:
        value = json.loads(place.read_text(encoding="utf-8"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Trouble(_("%(path)s makes no sense: remove it and log in again.") % {"path": place})
    return value
