"""Removing a folder, whatever a job made of it."""

from __future__ import annotations

from pathlib import Path


def remove_folder(folder: Path) -> None:
    """Remove the folder and all that is in it; absent is fine.

    By rm, which follows no links and goes as deep as a job can dig.
    """
    if not folder.exists():
        return
    import subprocess  # noqa: PLC0415 most replicas start without it

    if subprocess.run(["rm", "-rf", "--", str(folder)], capture_output=True, check=False).returncode:
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", "--", str(folder)], capture_output=True, check=True)
