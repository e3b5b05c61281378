"""Whether this machine would take a job as it is: all that `submit` would find, and nothing started."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from jobs.backends.base import MASK, NotSent, Refused, Submission, Tried
from jobs.backends.local import accept, confided, holdings
from jobs.backends.local.config import LocalConfig
from jobs.node.sandbox import engine
from jobs.node.supervisor.layout import Layout

_PROGRAM: Final = re.compile(r"\s*([A-Za-z0-9_./+-]+)(?:\s|$)")
_OF_THE_SHELL: Final = (
    frozenset(
        (
            "alias",
            "bg",
            "break",
            "case",
            "cd",
            "command",
            "declare",
            "do",
            "done",
            "echo",
            "eval",
            "exec",
            "exit",
        )
    )
    | frozenset(
        (
            "export",
            "false",
            "for",
            "function",
            "getopts",
            "if",
            "kill",
            "let",
            "local",
            "printf",
            "pwd",
            "read",
        )
    )
    | frozenset(
        ("readonly", "return", "select", "set", "shift", "shopt", "source", "test", "time", "times", "trap")
    )
    | frozenset(("true", "type", "typeset", "ulimit", "umask", "unset", "until", "wait", "while"))
)
"""Words that are no program's; no more of bash's than commands begin with."""


def tried(
    submission: Submission, config: LocalConfig, means: accept.Means, layout: Layout
) -> Iterator[Tried]:
    """Each thing that was tried, in the order in which it would matter; the first refusal ends it."""
    masked = dict.fromkeys(confided.named(submission, config), MASK)
    submission = replace(submission, secrets=masked, endpoint_token=MASK)
    try:
        laid = accept.refuse_impossible(submission, config, means)
    except Refused as refused:
        yield Tried("accepted", False, reason=refused.reason)
        return
    yield Tried("accepted", True)
    places = ", ".join(bound.path for bound in laid.bounds)
    if places:
        yield Tried("mounts", True, detail=places)
    try:
        accept.plan(submission, config, means, laid, holdings.held(layout))
        yield Tried("room", True, detail=config.node)
    except NotSent as not_sent:
        yield Tried("room", None, reason=not_sent.reason)
    yield from _images(submission, means)
    yield from _programs(submission, config, means)
    yield Tried("user", True, detail=str(config.uid_of(submission.person.number, means.isolation)))


def _images(submission: Submission, means: accept.Means) -> Iterator[Tried]:
    for image in dict.fromkeys(role.image for role in submission.spec.roles if role.image):
        if not means.engine:
            yield Tried("image_unused", None, detail=image)
        elif engine.Engine(means.engine).has_image(image):
            yield Tried("image", True, detail=image)
        else:
            yield Tried("image_pulled", None, detail=image)


def _programs(submission: Submission, config: LocalConfig, means: accept.Means) -> Iterator[Tried]:
    """The program with which each command begins, where that can be told and no image has it."""
    for role in submission.spec.roles:
        begins = _PROGRAM.match(role.command)
        if begins is None or means.contains(role) or begins[1] in _OF_THE_SHELL:
            continue
        program = begins[1]
        if "/" not in program:
            there = shutil.which(program, path=config.path) is not None
            yield Tried("program", True if there else None, detail=program)
