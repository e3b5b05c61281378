"""Logins: the selected console and its token."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jobs.client.failure import CommandFailure
from jobs.client.files import replace_file
from jobs.language import gettext as _

TOKEN: Final = "JOB_CONSOLE_TOKEN"  # noqa: S105 the variable's name
SERVER: Final = "JOB_CONSOLE_URL"


@dataclass(frozen=True, slots=True)
class Login:
    """A console's address, without a slash at its end, and a token."""

    server: str
    token: str


def path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file of logins."""
    around = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(around, "job-console", "logins.json")


def find(server: str | None, environment: Mapping[str, str] = os.environ) -> Login:
    """Return the login for a server, or for the last one.  Raises CommandFailure."""
    kept = _read(path(environment))
    server = address(server or environment.get(SERVER) or kept.get("last") or "")
    if not server:
        raise CommandFailure(
            _("No console selected. Log in with “job-console login URL”, or set JOB_CONSOLE_URL.")
        )
    token = environment.get(TOKEN) or kept.get("tokens", {}).get(server)
    if not token:
        raise CommandFailure(
            _("No token for %(server)s. Log in with “job-console login %(server)s”.") % {"server": server}
        )
    return Login(server, str(token))


def keep(login: Login, environment: Mapping[str, str] = os.environ) -> Path:
    """Remember a login, for nobody else to read."""
    place = path(environment)
    kept = _read(place)
    kept["tokens"] = {**kept.get("tokens", {}), login.server: login.token}
    kept["last"] = login.server
    replace_file(place, json.dumps(kept, indent=2))
    return place


def address(server: str) -> str:
    """Normalize a console's address.  Raises CommandFailure."""
    server = server.strip().rstrip("/")
    if not server:
        return ""
    parts = urlsplit(server if "://" in server else f"https://{server}")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
        raise CommandFailure(_("%(server)s is not the address of a console.") % {"server": server})
    return parts.geturl()


def _read(place: Path) -> dict[str, Any]:
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        return {}
    if mode & 0o077:
        raise CommandFailure(
            _("Other users can read your tokens in %(path)s. Revoke the tokens and run chmod 600.")
            % {"path": place}
        )
    try:
        value = json.loads(place.read_text(encoding="utf-8"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CommandFailure(
            _("Invalid content in %(path)s. Remove the file and log in again.") % {"path": place}
        )
    return value
