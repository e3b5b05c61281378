"""Pieces of shell text that several parts of the script have."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from jobs.node.staging.mount_paths import WORK


def define(name: str, body: Iterable[str]) -> list[str]:
    """Return the lines of a function."""
    return [f"{name}() {{", *(f"  {line}" for line in body), "  :", "}"]


def define_printing(name: str, text: str, end: str) -> list[str]:
    """Return the lines of a function that prints a text, in which there is no line `end`."""
    return [f"{name}() {{", f"  cat <<'{end}'", text, end, "}"]


def lies_in_work(path: str) -> bool:
    """Return whether a path in the job is its working folder, or below that."""
    return path == WORK or path.startswith(f"{WORK}/")


def locate(path: str) -> str:
    """Return the word for a path in the job; the replica's working folder is where the shell is."""
    below = path.removeprefix(WORK) if lies_in_work(path) else None
    return shlex.quote(path) if below is None else '"$PWD"' + (shlex.quote(below) if below else "")
