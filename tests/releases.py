"""Earlier releases of the console among the test data, to be upgraded from: `python -m tests.releases`.

`tests/data/releases/README.md` says of which commits they are.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from console.home import CHECKOUT

FOLDER: Final = CHECKOUT / "tests" / "data" / "releases"
LAST: Final = "0.2.0"
"""The last release of the changelog."""

PROGRAMS: Final = ("console", "jobs", "quotas", "static", "templates", "manage.py", "pyproject.toml")
"""All that a console needs to run, without documentation, translations and its lock of packages."""

LOCK: Final = "requirements.lock"


def unpack(name: str, to: Path) -> Path:
    """Unpack an archive into the new folder `to`; return that folder.

    It runs with the packages of this environment: their lock is put in place of its own, which it checks.
    """
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since 3.11.4
        archive.extractall(to)
    shutil.copy(CHECKOUT / LOCK, to)
    return to


def pack(commit: str, name: str) -> None:
    """Write the console of a commit into its archive; the same bytes for the same commit."""
    command = ["git", "archive", "--format=tar", commit, *PROGRAMS]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True)
    data = lzma.compress(done.stdout, preset=9 | lzma.PRESET_EXTREME)
    (FOLDER / f"{name}.tar.xz").write_bytes(data)


def main() -> None:
    """Make the archive of a release anew."""
    parser = argparse.ArgumentParser(prog="python -m tests.releases", description=pack.__doc__)
    parser.add_argument("commit", help="the commit of the release; it has to be in this clone")
    parser.add_argument("name", help="the name of the archive: the version")
    options = parser.parse_args()
    pack(options.commit, options.name)


if __name__ == "__main__":
    main()
