"""Requests to buckets of storage mappings, by the data mover in a process of its own.

That connects to the endpoint that the admin named and to public hosts, and to nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from jobs import data_mover
from jobs.backends.staging import remotes
from jobs.facilities import StorageMapping
from jobs.node.staging import data_transfer

_MAIN: Final = Path(data_mover.__path__[0], "main.py")


class BucketError(Exception):
    """The bucket did not answer as it should; `str` says why, or is empty for no answer in time."""


def has_objects(mapping: StorageMapping, seconds: int) -> bool:
    """Tell whether the mapping's bucket has objects at its place.  Raises BucketError."""
    return _run("probe", mapping, seconds) == "listed"


def sign(mapping: StorageMapping, seconds: int, most_bytes: int) -> list[Any]:
    """Return what the mapping's bucket has there, with an address to read each for `data_mover` to fetch.

    Raises BucketError.
    """
    found: list[Any] = json.loads(_run("sign", mapping, seconds, most=most_bytes))
    return found


def _run(do: str, mapping: StorageMapping, seconds: int, **more: int) -> str:
    """Return the last line that the data mover says about the bucket."""
    found = remotes.read(mapping.bucket, mapping.options)
    if found is None:
        raise BucketError(mapping.bucket)
    order: dict[str, Any] = {
        "do": do,
        "name": mapping.bucket,
        "uri": found.uri,
        "endpoint": found.endpoint,
        "region": found.region,
        "addressing": found.addressing,
        "inside": remotes.named_hosts((found.endpoint,)),
        "user": mapping.access_key if mapping.secret_key else "",
        "password": mapping.secret_key,
        "site": data_transfer.tools().site,
        **more,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "order")
        path.touch(mode=0o600)
        path.write_text(json.dumps(order), encoding="utf-8")
        argv = [sys.executable, "-I", "-S", str(_MAIN), str(path)]
        try:
            done = subprocess.run(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                env={},
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BucketError from None
    last = done.stdout.strip().rpartition("\n")[2].removeprefix(f"{mapping.bucket}: ")
    if done.returncode:
        raise BucketError(last or f"exit code {done.returncode}")
    return last
