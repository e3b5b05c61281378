"""PEP 517 build backend of the command line's wheel, by `jobs.client.wheel_builder`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from jobs.client import wheel_builder


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """Write the wheel into a folder; return its name."""
    name = wheel_builder.file_name()
    Path(wheel_directory, name).write_bytes(wheel_builder.wheel())
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Refuse: the sources are the console's."""
    raise NotImplementedError("The command line is built of the console's checkout.")
