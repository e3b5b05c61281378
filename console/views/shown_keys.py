"""A new access key on the one page that shows it, with lines to copy for each client."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from jobs.client import wheel_builder
from jobs.web import one_time_values
from jobs.web.http import SignedIn
from quotas.accounts.access_keys import IssuedKey

PERSONAL: Final = "access key"
"""A new key of a person's own, for `one_time_values`; service accounts' have names of their own."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """Lines that let a client use a key; `name` is for the HTML ids, `title` the client's."""

    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class ShownKey:
    """A new access key with its secret, and the snippets for its clients."""

    key_id: str
    secret: str
    snippets: Sequence[Snippet]


def store(request: SignedIn, about: str, issued: IssuedKey) -> None:
    """Store a new key for the next page about `about`."""
    one_time_values.store(request, about, json.dumps([issued.row.key_id, issued.secret]))


def pop(request: SignedIn, about: str) -> ShownKey | None:
    """Return the new key for a page about `about`, and remove it; None if there is none."""
    stored = one_time_values.pop(request, about)
    if not stored:
        return None
    key_id, secret = json.loads(stored)
    return ShownKey(key_id, secret, _snippets(request, key_id, secret))


def _snippets(request: SignedIn, key_id: str, secret: str) -> Sequence[Snippet]:
    host, protocol = request.get_host(), request.scheme or "https"
    client = request.build_absolute_uri(reverse("client", args=[wheel_builder.file_name()]))
    return (
        Snippet("alibaba", "Alibaba Cloud SDK", _alibaba(key_id, secret, host, protocol)),
        Snippet("dlc", "dlc", f"pipx install {client}\n" + _dlc(key_id, secret, host, protocol)),
        Snippet("baidu", "Baidu AI Cloud SDK", _baidu(key_id, secret, host, protocol)),
    )


def _alibaba(key_id: str, secret: str, host: str, protocol: str) -> str:
    """Return variables that the SDK reads by itself, and what to write instead of the region's endpoint."""
    return (
        f"export ALIBABA_CLOUD_ACCESS_KEY_ID={key_id}\n"
        f"export ALIBABA_CLOUD_ACCESS_KEY_SECRET={secret}\n"
        f"# Config(endpoint={host!r}, protocol={protocol!r}, …)"
    )


def _dlc(key_id: str, secret: str, host: str, protocol: str) -> str:
    options = {"access_id": key_id, "access_key": secret, "endpoint": host, "protocol": protocol}
    flags = (f"--{name} {shlex.quote(text)}" for name, text in options.items())
    return " \\\n  ".join(["dlc config", *flags])


def _baidu(key_id: str, secret: str, host: str, protocol: str) -> str:
    return (
        "BceClientConfiguration(\n"
        f"    credentials=BceCredentials({key_id!r}, {secret!r}),\n"
        f"    endpoint={f'{protocol}://{host}'!r},\n"
        ")"
    )
