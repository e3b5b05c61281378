"""The SSH gateway as people know it: its host key, made once, and what keeps it from listening."""

from __future__ import annotations

import os
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)
from django.conf import settings
from django.http.request import split_domain_port

from jobs.access.sshkeys import fingerprint_of

KEY: Final = Path("keys", "ssh_host_ed25519_key")
TROUBLE: Final = Path("run", "ssh.trouble")


def ensure(home: Path) -> Path:
    """The private key's file (0600) below `home`, made unless it is there.  OSError when it can't be.

    Its public half lies beside it, for whoever shows the fingerprint.
    """
    path = home / KEY
    if not path.exists():
        made = Ed25519PrivateKey.generate()
        _create(path, made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    key = load_ssh_private_key(path.read_bytes(), None)
    _create(_public(home), key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    return path


def _create(path: Path, content: bytes) -> None:
    """A whole file or none: linking into place fails when the name is taken."""
    if path.exists():
        return
    descriptor, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        Path(draft).unlink()


def _public(home: Path) -> Path:
    return home / KEY.with_suffix(".pub")


def public_key(home: Path) -> str:
    """The host key as `known_hosts` has it, `<kind> <key>`; '' before the gateway's first start."""
    try:
        return _public(home).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def name(request_host: str) -> str:
    """The name or address under which people reach the gateway: the setting, else that of their request."""
    return str(settings.CONSOLE_SSH_HOST) or split_domain_port(request_host)[0].strip("[]")


def fingerprint(home: Path) -> str:
    """The host key's fingerprint; '' before the gateway's first start."""
    key = public_key(home)
    return fingerprint_of(b64decode(key.split()[1])) if key else ""


def note_trouble(home: Path, what: str) -> None:
    """Write down why nobody can come by SSH now; '' when everybody can."""
    path = home / TROUBLE
    if what:
        path.write_text(what, encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def trouble(home: Path) -> str:
    """Why nobody can come by SSH now, in the system's words; '' as far as is known."""
    try:
        return (home / TROUBLE).read_text(encoding="utf-8")
    except OSError:
        return ""
