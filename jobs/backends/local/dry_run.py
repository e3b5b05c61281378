"""Dry run: every check of `submit`, and nothing started."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from jobs.backends.base import MASK, DryRunCheck, NotSubmitted, Refused, Submission
from jobs.backends.local import accept, allocations
from jobs.backends.local.config import LocalConfig
from jobs.backends.staging import job_secrets
from jobs.node.sandbox import engine
from jobs.node.supervisor.layout import Layout
from jobs.node.wrapper import tensorboard

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


def run_checks(
    submission: Submission, config: LocalConfig, runtime: accept.JobRuntime, layout: Layout
) -> Iterator[DryRunCheck]:
    """Each thing that was tried, in the order in which it would matter; the first refusal ends it."""
    masked = dict.fromkeys(job_secrets.list_names(submission, config.code()), MASK)
    submission = replace(submission, secrets=masked, endpoint_token=MASK)
    try:
        layer = accept.refuse_impossible(submission, config, runtime)
    except Refused as refused:
        yield DryRunCheck("accepted", False, reason=refused.reason)
        return
    yield DryRunCheck("accepted", True)
    places = ", ".join(bound.path for bound in layer.bounds)
    if places:
        yield DryRunCheck("mounts", True, detail=places)
    try:
        accept.plan(submission, config, runtime, layer, allocations.sum_held(layout))
        yield DryRunCheck("room", True, detail=config.node)
    except NotSubmitted as not_sent:
        yield DryRunCheck("room", None, reason=not_sent.reason)
    yield from _images(submission, runtime)
    yield from _programs(submission, config, runtime)
    yield DryRunCheck("user", True, detail=str(config.uid_of(submission.person.number, runtime.isolation)))


def _images(submission: Submission, runtime: accept.JobRuntime) -> Iterator[DryRunCheck]:
    for image in dict.fromkeys(role.image for role in submission.spec.roles if role.image):
        if not runtime.engine:
            yield DryRunCheck("image_unused", None, detail=image)
        elif engine.Engine(runtime.engine).has_image(image):
            yield DryRunCheck("image", True, detail=image)
        else:
            yield DryRunCheck("image_pulled", None, detail=image)


def _programs(
    submission: Submission, config: LocalConfig, runtime: accept.JobRuntime
) -> Iterator[DryRunCheck]:
    """The program with which each command begins, where that can be told and no image has it; TensorBoard."""
    if accept.lacks_tensorboard(submission.spec, config, runtime):
        yield DryRunCheck("program", None, detail=tensorboard.NAME)
    for role in submission.spec.roles:
        begins = _PROGRAM.match(role.command)
        if begins is None or runtime.contains(role) or begins[1] in _OF_THE_SHELL:
            continue
        program = begins[1]
        if "/" not in program:
            there = shutil.which(program, path=config.path) is not None
            yield DryRunCheck("program", True if there else None, detail=program)
