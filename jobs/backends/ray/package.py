"""The package of a job on Ray: its driver, and the modules of `jobs.node` that run its replicas.

It is the same for all jobs of a release, has nothing of a job in it, and goes by its contents' digest.
"""

from __future__ import annotations

import hashlib
import zipfile
from functools import cache
from typing import Final

from jobs.backends.remote.bundle import zip_modules

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
    data = zip_modules((MAIN, _MAIN), _PATTERNS, zipfile.ZIP_DEFLATED)
    return f"_ray_pkg_{hashlib.blake2b(data, digest_size=12).hexdigest()}.zip", data
