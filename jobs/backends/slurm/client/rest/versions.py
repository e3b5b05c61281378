"""Which of its API's versions a slurmrestd speaks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.rest.client import Client

SPOKEN: Final = (38, 40, 41, 42, 43, 44, 45)
"""Slurm 23.02, whose own 39 is, has 38 beside it."""

WITH_PARSERS: Final = 40
"""From this one on, Slurm's data_parser names the fields; v0.0.38 has sbatch's options."""

_PATH: Final = re.compile(r"/slurm/v0\.0\.(\d+)/jobs/?")

_known: dict[str, int] = {}


def of(client: Client) -> int:
    """The newest version that both know, by what the server says of itself; asked once for each address."""
    if (known := _known.get(client.address)) is not None:
        return known
    answer = client.ask("GET", "/openapi/v3")
    paths = answer.body.get("paths")
    if not isinstance(paths, dict):
        raise Unreachable(f"slurmrestd at {client.address} does not describe itself: {answer.complaint}")
    version = newest(paths)
    if version is None:
        speaks = ", ".join(f"v0.0.{each}" for each in SPOKEN)
        raise Unreachable(
            f"slurmrestd at {client.address} offers no version that the console speaks ({speaks})"
        )
    _known[client.address] = version
    return version


def newest(paths: Iterable[str]) -> int | None:
    """The newest version among a description's paths that is spoken here."""
    offered = {int(match[1]) for path in paths if (match := _PATH.fullmatch(path))}
    return max(offered & set(SPOKEN), default=None)


def forget(client: Client) -> None:
    """Ask again next time: the server was exchanged."""
    _known.pop(client.address, None)
