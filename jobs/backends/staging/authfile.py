"""OpenPAI's authFile: three lines, the image registry, the user's name and the password (v0.14)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from jobs import data_mover
from jobs.backends.refusals import refusal
from jobs.backends.staging.mounts import MountPlanner
from jobs.facilities import HDFS, local_path
from jobs.node.sandbox.folder_access import read_file

_MOST: Final = 4096
_LINES: Final = 3
_PATIENCE_S: Final = 20


def login(uri: str, layer: MountPlanner) -> dict[str, str]:
    """The login for the image registry; raises Refused for a file that can't be had or says another thing."""
    uri = layer.resolve(uri)
    place = local_path(uri)
    if place is not None:
        text = _read_folder(place, layer)
    elif uri.startswith(f"{HDFS}://"):
        text = _read_hdfs(uri, layer)
    else:
        raise refusal("auth_elsewhere", place=uri)
    lines = text.split()
    if len(lines) != _LINES:
        raise refusal("auth_file", place=uri)
    return dict(zip(("registry", "username", "password"), lines, strict=True))


def _read_folder(place: str, layer: MountPlanner) -> str:
    path = layer.grant(place).path
    try:
        return read_file(path, layer.ground.owner, _MOST).decode()
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise refusal("auth_file", place=place, error=words) from error


def _read_hdfs(uri: str, layer: MountPlanner) -> str:
    """Read a file of an HDFS as the person, by the data mover in a process of its own."""
    found = layer.data_rules.read(uri, {})
    if found is None:
        raise refusal("auth_elsewhere", place=uri)
    order = {
        "do": "read",
        "name": uri,
        "uri": found.uri,
        "endpoint": found.endpoint,
        "user": layer.ground.asker.user,
        "password": "",
        "inside": layer.data_rules.inside,
        "most": _MOST,
        "site": "",
    }
    with tempfile.NamedTemporaryFile("w", suffix=".order", delete=False) as file:
        json.dump(order, file)
    main = Path(data_mover.__file__).with_name("main.py")
    command = [sys.executable, "-I", "-S", str(main), file.name]
    try:
        done = subprocess.run(command, env={}, capture_output=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise refusal("auth_file", place=uri, error=f"no answer within {_PATIENCE_S} s") from error
    finally:
        Path(file.name).unlink(missing_ok=True)
    text = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode:
        raise refusal("auth_file", place=uri, error=text.removeprefix(f"{uri}: "))
    return text
