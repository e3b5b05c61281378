"""Archives of uploaded trees, for nodes that don't see the console's storage."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from jobs.trees import Kind, Supplied


def write(supply: Supplied, path: Path) -> None:
    """Write an uploaded tree as a tar archive; its folder is made where it is missing."""
    path.parent.mkdir(mode=0o750, exist_ok=True)  # in a folder that is closed to others
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in supply.tree.entries:
            member = tarfile.TarInfo(entry.path)
            member.mode = 0o755 if entry.kind in (Kind.PROGRAM, Kind.FOLDER) else 0o644
            content: io.BufferedIOBase | None = None
            if entry.kind is Kind.LINK:
                member.type, member.linkname = tarfile.SYMTYPE, entry.target
            elif entry.kind is Kind.FOLDER:
                member.type = tarfile.DIRTYPE
            else:
                where, offset = supply.where[entry.sha256]
                member.size = entry.size
                content = Path(where).open("rb")  # noqa: SIM115 closed below
                content.seek(offset)
            try:
                archive.addfile(member, content)
            finally:
                if content is not None:
                    content.close()
    draft.rename(path)
