"""The release of an agent: a digest of the code that it runs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from jobs import node

_ROOT: Final = Path(node.__path__[0]).parent


def read_digest() -> str:
    """Return the digest of the code of agents and wrappers, as it lies on the disk."""
    found = hashlib.sha256()
    folders = (_ROOT / "node", _ROOT / "data_mover")
    for path in sorted([*_ROOT.glob("*.py"), *(path for each in folders for path in each.rglob("*.py"))]):
        found.update(path.relative_to(_ROOT).as_posix().encode() + b"\0")
        found.update(path.read_bytes() + b"\0")
    return found.hexdigest()
