"""The archive that travels to the nodes of jobs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from jobs.backends.remote import bundle

IMPORT_EACH = """
import importlib, sys
home, *names = sys.argv[1:]
sys.path.insert(0, home)
for name in names:
    for loaded in [each for each in sys.modules if each.partition(".")[0] == "jobs"]:
        del sys.modules[loaded]
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
    else:
        assert module.__file__.startswith(home), module.__file__
"""


def test_bundle_modules_import_with_standard_library_only(tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle.publish(tmp_path)) as archive:
        names = [name for name in archive.namelist() if name != "__main__.py"]
        archive.extractall(tmp_path / "unpacked")
    modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in names]
    assert {"jobs.node.sessions.agent", "jobs.node.sessions.listener"} <= set(modules)
    done = subprocess.run(
        [sys.executable, *bundle.ISOLATED, "-c", IMPORT_EACH, str(tmp_path / "unpacked"), *modules],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
