"""Removing what is left of an ended attempt, whatever the job made of its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jobs.node import files
from jobs.node.clearing import clear
from jobs.node.sandbox.engine import Engine
from jobs.node.supervisor import layout
from jobs.node.supervisor.layout import Layout
from jobs.node.supervisor.plan import Plan
from jobs.node.wrapper.errand import group_name

MONTHS: Final = 2
"""A key stays known this many months after it was forgotten, in case a frozen submitter wakes up."""


def is_forgotten(layout_: Layout, key: str) -> bool:
    """Whether the key was run and forgotten, so that it must never run again."""
    return any(layout_.forgotten(key, months_ago=months).exists() for months in range(MONTHS + 1))


def remember(layout_: Layout, key: str) -> None:
    """Write down that the key was run; old such notes are removed."""
    note = layout_.forgotten(key)
    if not note.parent.exists():
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_old_notes(layout_)
    note.touch(mode=0o600)


def remove_containers(attempt: Path) -> None:
    """Remove the containers that were kept because their replicas failed."""
    found = files.read(attempt / layout.PLAN)
    plan = Plan.load(found) if found else None
    if plan is None or not plan.keep_failed_s or not plan.house.engine:
        return
    names = [group_name(plan, place) for place in plan.replicas() if place.role.image]
    if names:
        Engine(plan.house.engine).remove(*names)


def remove(attempt: Path) -> None:
    """Remove the attempt's folder, and the job's when it was the last."""
    clear(attempt)
    if attempt.parent.exists() and not any(attempt.parent.iterdir()):
        attempt.parent.rmdir()


def _forget_old_notes(layout_: Layout) -> None:
    kept = {layout_.forgotten("", months_ago=months).name for months in range(MONTHS + 1)}
    for folder in layout_.forgotten("").parent.iterdir():
        if folder.name not in kept:
            remove(folder)
