"""Archives of uploaded trees, for nodes that don't see the console's storage."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import IO, Literal

from jobs.trees import Kind, Supplied


def write(supply: Supplied, path: Path) -> None:
    """Write an uploaded tree as a tar archive; its folder is made where it is missing."""
    path.parent.mkdir(mode=0o750, exist_ok=True)  # in a folder that is closed to others
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        _write(supply, file, "w")
    draft.rename(path)


def compress(supply: Supplied) -> bytes:
    """Return an uploaded tree as a compressed tar archive."""
    packed = io.BytesIO()
    _write(supply, packed, "w:gz")
    return packed.getvalue()


def _write(supply: Supplied, file: IO[bytes], mode: Literal["w", "w:gz"]) -> None:
    with tarfile.open(fileobj=file, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for entry in supply.tree.entries:
            member = tarfile.TarInfo(entry.path)
            member.mode = 0o755 if entry.kind in (Kind.PROGRAM, Kind.FOLDER) else 0o644
            if entry.kind is Kind.LINK:
                member.type, member.linkname = tarfile.SYMTYPE, entry.target
                archive.addfile(member)
            elif entry.kind is Kind.FOLDER:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            else:
                where, offset = supply.where[entry.sha256]
                member.size = entry.size
                with Path(where).open("rb") as content:
                    content.seek(offset)
                    archive.addfile(member, content)
