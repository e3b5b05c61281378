"""The node bundle: modules of `jobs.node` in one zip file that Python on a node can run.

It lies in the folder that the nodes see, or is fetched by the node relay, under a name by its contents, so
that several releases of the console can use one folder.  It needs only the standard library.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import jobs
from jobs import data_mover
from jobs.backends.remote import attempts

FOLDER: Final = ".node"
OLDEST_PYTHON: Final = (3, 11)

ISOLATED: Final = ("-I", "-S")
"""Options by which Python ignores what else is on the node."""

_MAIN: Final = f"""\
import sys
if sys.version_info < {OLDEST_PYTHON}:
    sys.exit("the nodes need Python {".".join(map(str, OLDEST_PYTHON))} or newer; this is " + sys.version)
if sys.argv[1:2] == ["door"]:
    from jobs.node.sessions.listener import main
    main(sys.argv[2:])
from jobs.node.sessions.agent import main
main()
"""
"""Scripts of running jobs call the listener `door`, whichever release wrote them."""

_PATTERNS: Final = (
    "__init__.py",
    "states.py",
    "node/*.py",
    "node/sftp/*.py",
    "node/sandbox/__init__.py",
    "node/sandbox/seccomp.py",
    "node/sessions/__init__.py",
    "node/sessions/agent.py",
    "node/sessions/leader.py",
    "node/sessions/listener.py",
    "node/sessions/protocol.py",
    "node/sessions/tls.py",
    "node/wrapper/__init__.py",
    "node/wrapper/outcome.py",
)


def file_name() -> str:
    """Return the name of the bundle's file."""
    return build()[0]


def publish(root: Path, *, for_all: bool = False) -> Path:
    """Put the bundle below `root` if need be, readable to all users or the console's alone.

    Returns its path.  Raises OSError where it can't be written.
    """
    name, data = build()
    path = root / FOLDER / name
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        attempts.create_bytes(path, data)
    if for_all:
        path.parent.chmod(0o711)
        path.chmod(0o644)
    return path


def zip_modules(
    main: tuple[str, str], patterns: Sequence[str], compression: int = zipfile.ZIP_STORED
) -> bytes:
    """Return a zip of a main program and of our modules, always the same for the same release.

    `main` is the program's name and text; `patterns` are those of paths below the package `jobs`.
    """
    home = Path(jobs.__path__[0])
    paths = [path for pattern in patterns for path in sorted(home.glob(pattern))]
    modules = [(str(path.relative_to(home.parent)), path.read_bytes()) for path in paths]
    return _zip([(main[0], main[1].encode()), *modules], compression)


@cache
def zip_data_mover() -> bytes:
    """Return the data mover as a program in one file."""
    paths = sorted(Path(data_mover.__path__[0]).glob("*.py"))
    names = ["__main__.py" if path.name == "main.py" else path.name for path in paths]
    files = [(name, path.read_bytes()) for name, path in zip(names, paths, strict=True)]
    return _zip(files, zipfile.ZIP_DEFLATED)


def _zip(files: Sequence[tuple[str, bytes]], compression: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return file.getvalue()


@cache
def build() -> tuple[str, bytes]:
    """Return the bundle's name and bytes, always the same for the same release."""
    data = zip_modules(("__main__.py", _MAIN), _PATTERNS)
    return f"{hashlib.blake2b(data, digest_size=12).hexdigest()}.pyz", data
