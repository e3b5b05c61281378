"""What the nodes need of us to let somebody in: a few of our modules, in one file that Python there can run.

It lies in the folder that all nodes see, under a name that says what is in it, so that two releases of the
console don't disturb each other.  It needs nothing but Python's own library.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import jobs
from jobs.backends.slurm.script import layout

FOLDER: Final = ".node"
OLDEST: Final = (3, 11)

SRUN: Final = (
    "--overlap",
    "--nodes=1",
    "--ntasks=1",
    "--mpi=none",
    "--kill-on-bad-exit=0",
    "--export=PATH",
)
"""How a step is begun that has the archive run beside a replica; which job's and where is said besides."""

ISOLATED: Final = ("-I", "-S")
"""And how Python is told that nothing else there is its business."""

_MAIN: Final = f"""\
import sys
if sys.version_info < {OLDEST}:
    sys.exit("the nodes need Python {".".join(map(str, OLDEST))} or newer; this is " + sys.version)
if sys.argv[1:2] == ["door"]:
    from jobs.backends.slurm.sessions.door import main
    main(sys.argv[2:])
from jobs.backends.slurm.sessions.beside import main
main()
"""

_TAKEN: Final = (
    "__init__.py",
    "states.py",
    "node/*.py",
    "node/sftp/*.py",
    "node/sandbox/__init__.py",
    "node/sandbox/seccomp.py",
    "node/sessions/__init__.py",
    "node/sessions/leader.py",
    "node/wrapper/__init__.py",
    "node/wrapper/outcome.py",
    "backends/__init__.py",
    "backends/slurm/__init__.py",
    "backends/slurm/sessions/__init__.py",
    "backends/slurm/sessions/beside.py",
    "backends/slurm/sessions/door.py",
    "backends/slurm/sessions/tls.py",
    "backends/slurm/sessions/wire.py",
)


def name() -> str:
    """What the file is called."""
    return _archive()[0]


def packed(root: Path, *, for_all: bool = False) -> Path:
    """The file, which is put there if need be, to be read by everybody or us alone.  OSError where that can't
    be.
    """
    name, data = _archive()
    path = root / FOLDER / name
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        layout.publish_bytes(path, data)
    if for_all:
        path.parent.chmod(0o711)
        path.chmod(0o644)
    return path


@cache
def _archive() -> tuple[str, bytes]:
    """Its name and what is in it, always the same for the same release."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py"), _MAIN)
        for path in _modules():
            name = path.relative_to(_home().parent)
            archive.writestr(zipfile.ZipInfo(str(name)), path.read_bytes())
    data = made.getvalue()
    return f"{hashlib.blake2b(data, digest_size=12).hexdigest()}.pyz", data


def _modules() -> Iterator[Path]:
    for pattern in _TAKEN:
        yield from sorted(_home().glob(pattern))


def _home() -> Path:
    return Path(jobs.__path__[0])
