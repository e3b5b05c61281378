"""People's SSH keys: read, judged, added, made for one job, removed."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_public_key,
)
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from jobs.models import Job, SshKey
from jobs.states import TERMINAL
from quotas.models import User

LEAST_RSA_BITS: Final = 2048
"""NIST SP 800-131A: shorter ones are disallowed."""

MOST_KEYS: Final = 50
LONGEST: Final = 16_384
_TITLE: Final = 100
_ALGORITHMS: Final = frozenset(
    {
        "ssh-rsa",
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    }
)


class BadKey(ValueError):
    """A key that is not taken; `code` is one of `jobs.messages.ssh`."""

    def __init__(self, code: str, **params: object) -> None:
        super().__init__(code)
        self.code, self.params = code, params


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key: its kind, the line without the comment, the comment, and its fingerprint."""

    algorithm: str
    text: str
    comment: str
    fingerprint: str


def fingerprint_of(blob: bytes) -> str:
    """SHA-256 as OpenSSH writes it; `blob` is the key as it is sent (RFC 4253 section 6.6)."""
    return "SHA256:" + b64encode(sha256(blob).digest()).decode().rstrip("=")


def read(text: str) -> PublicKey:
    """The one key in `text`, a line as `ssh-keygen` writes it to `….pub`.  Raises BadKey."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "PRIVATE KEY" in text:
        raise BadKey("private")
    if len(lines) != 1 or len(text) > LONGEST:
        raise BadKey("not_one")
    algorithm, _, rest = lines[0].partition(" ")
    encoded, _, comment = rest.strip().partition(" ")
    if algorithm == "ssh-dss":
        raise BadKey("weak", algorithm="DSA")
    if algorithm not in _ALGORITHMS:
        raise BadKey("unknown")
    try:
        blob = b64decode(encoded, validate=True)
        key = load_ssh_public_key(f"{algorithm} {encoded}".encode())
    except (binascii.Error, ValueError, UnsupportedAlgorithm) as error:
        raise BadKey("unknown") from error
    if isinstance(key, RSAPublicKey) and key.key_size < LEAST_RSA_BITS:
        raise BadKey("short", bits=key.key_size, least=LEAST_RSA_BITS)
    return PublicKey(algorithm, f"{algorithm} {encoded}", comment.strip(), fingerprint_of(blob))


def add(user: User, text: str, title: str = "") -> SshKey:
    """Add a key of `user`.  Raises BadKey."""
    offered = read(text)
    if SshKey.objects.filter(user=user, job=None).count() >= MOST_KEYS:
        raise BadKey("too_many", most=MOST_KEYS)
    return _store(user, None, offered, title or offered.comment or offered.algorithm)


def make(user: User, job: Job) -> tuple[SshKey, str]:
    """A new key of `user` for `job` alone, and its private half, which is kept nowhere.

    The one made before for the same job is worth nothing any more, nor are those for jobs that have ended.
    """
    made = Ed25519PrivateKey.generate()
    private = made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = made.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    with transaction.atomic():
        SshKey.objects.filter(user=user, job__state__in=TERMINAL).delete()
        SshKey.objects.filter(user=user, job=job).delete()
        return _store(user, job, read(public), job.name), private


def add_for_job(user: User, job: Job, text: str) -> SshKey:
    """Add a key of `user` for `job` alone, unless it is there; remove those of ended jobs.  Raises BadKey."""
    offered = read(text)
    SshKey.objects.filter(user=user, job__state__in=TERMINAL).delete()
    mine = SshKey.objects.filter(user=user, job=job)
    if there := mine.filter(fingerprint=offered.fingerprint).first():
        return there
    if mine.count() >= MOST_KEYS:
        raise BadKey("too_many", most=MOST_KEYS)
    return _store(user, job, offered, job.name)


def _store(user: User, job: Job | None, offered: PublicKey, title: str) -> SshKey:
    try:
        with transaction.atomic():
            return SshKey.objects.create(
                user=user,
                job=job,
                title=title[:_TITLE],
                algorithm=offered.algorithm,
                text=offered.text,
                fingerprint=offered.fingerprint,
            )
    except IntegrityError:
        mine = SshKey.objects.filter(user=user, fingerprint=offered.fingerprint).exists()
        raise BadKey("there" if mine else "taken") from None


def remove(user: User, pk: int) -> bool:
    """Remove one of the person's own keys; tell whether there was one."""
    return bool(SshKey.objects.filter(user=user, pk=pk).delete()[0])


def mark_used(pk: int) -> None:
    """Record that a key was used."""
    SshKey.objects.filter(pk=pk).update(last_used_at=Now())
