"""The package of a job on Ray: its driver, and the modules of `jobs.node` that run its replicas.

It is the same for all jobs of a release, has nothing of a job in it, and goes by its contents' digest.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import cache
from pathlib import Path
from typing import Final

import jobs

MAIN: Final = "run_job.py"
_MAIN: Final = """\
import sys

if sys.version_info < (3, 11):
    sys.exit("the nodes need Python 3.11 or newer; this is " + sys.version)
from jobs.backends.ray.driver import main

sys.exit(main(*sys.argv[1:]))
"""
_PATTERNS: Final = (
    "__init__.py",
    "facilities.py",
    "faults.py",
    "states.py",
    "trees.py",
    "data_mover/**/*.py",
    "node/**/*.py",
    "backends/__init__.py",
    "backends/ray/__init__.py",
    "backends/ray/driver.py",
)


@cache
def build() -> tuple[str, bytes]:
    """Return the package's name at Ray, and its bytes: always the same for the same release."""
    home = Path(jobs.__path__[0])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(MAIN), _MAIN, zipfile.ZIP_DEFLATED)
        for path in (path for pattern in _PATTERNS for path in sorted(home.glob(pattern))):
            entry = zipfile.ZipInfo(str(path.relative_to(home.parent)))
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    data = file.getvalue()
    return f"_ray_pkg_{hashlib.blake2b(data, digest_size=12).hexdigest()}.zip", data
