"""How pip makes the command line's wheel of a checkout (PEP 517); `jobs.client.packaging` does the work."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from jobs.client import packaging


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """Write the wheel into a folder; return its name."""
    name = packaging.file_name()
    Path(wheel_directory, name).write_bytes(packaging.wheel())
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Refuse: the sources are the console's."""
    raise NotImplementedError("The command line is built of the console's checkout.")
