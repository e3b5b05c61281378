"""The problems of a job file, each in a sentence that says what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.base import Problem
from jobs.language import gettext
from jobs.messages import amounts, feasibility, manifests, requests, scripts
from jobs.messages.fieldnames import field_name
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say
from jobs.messages.syntax import SYNTAX, YAML

_CONTENT: Final[Mapping[str, tuple[str, ...]]] = {
    "required": (_("%(key)s is missing."),),
    "empty": (_("%(key)s must not be empty."),),
    "bad_name": (_("%(key)s “%(value)s” may only have the characters %(allowed)s."),),
    "bad_key": (_("The key “%(key)s” has no letter, digit or underscore."),),
    "too_long": (_("%(key)s has %(length)s characters; at most %(most)s are allowed."),),
    "wrong_type": (
        _("%(key)s must be %(expected)s, not %(got)s."),
        _("The file must be %(expected)s, not %(got)s."),
    ),
    "not_whole": (_("%(key)s is %(value)s; it must be a whole number."),),
    "too_small": (_("%(key)s is %(value)s; it must be at least %(least)s."),),
    "too_great": (_("%(key)s is %(value)s; it may be at most %(most)s."),),
    "too_few": (_("%(key)s must have at least %(least)s."),),
    "too_many": (_("%(key)s has %(count)s elements; at most %(most)s are allowed."),),
    "too_many_replicas": (_("All task roles together have %(count)s tasks; at most %(most)s are allowed."),),
    "above_memory": (_("%(key)s is %(value)s; it may be at most memoryMB, which is %(most)s."),),
    "above_task_number": (_("%(key)s is %(value)s; it may be at most taskNumber, which is %(most)s."),),
    "bad_member": (
        _("“%(value)s” may only have the characters %(allowed)s, and may not begin with a digit."),
    ),
    "forbidden_key": (_("%(key)s is not allowed here."),),
    "duplicate_prerequisite": (_("The prerequisite %(value)s of type %(kind_of)s is there twice."),),
    "no_prerequisite": (
        _("There is no prerequisite %(value)s of type %(kind_of)s."),
        _("There is no such prerequisite."),
    ),
    "duplicate_deployment": (_("The deployment %(value)s is there twice."),),
    "no_deployment": (_("There is no deployment %(value)s."),),
    "more_problems": (_("There are %(count)s more problems."),),
    "is_a_command": (_("This is a command, not a job file: use it as the start command of a new job."),),
    "unknown_dialect": (_("This is no kind of job file that is known here. Known are: %(known)s."),),
    "ambiguous_dialect": (_("This may be %(candidates)s: choose which it is."),),
    "no_own_secret": (
        _("There is no value for $SECRET:%(name)s: save a secret %(name)s in Settings, or write the value."),
    ),
    "no_such_upload": (
        _("There is no such upload, or it is not yours to use: send the files, and name what is answered."),
    ),
    "locked_by_template": (
        _("%(what)s is locked by the template “%(template)s” v%(version)s: leave it as it is there."),
    ),
    "required_by_template": (
        _("%(what)s is required by the template “%(template)s” v%(version)s: give it a value."),
    ),
    "no_such_template": (
        _("The template that this was made from is not there any more, or not open to you."),
    ),
    "may_not_submit": (
        _(
            "Your role in workspace “%(name)s” does not allow submitting jobs: an admin of the workspace can "
            "change it."
        ),
    ),
    "no_such_place": (_("There is no %(place)s “%(name)s” that you may use."),),
    "no_unix_name": (
        _(
            "Jobs on %(cluster)s run as their owner's own UNIX user, and you have none here: ask an admin of "
            "this console to enter your UNIX name."
        ),
    ),
    "over_public_ceiling": (
        _(
            "The job asks for %(wanted)s; of public resources (%(quota)s) one person may hold at most "
            "%(limit)s: ask for less, or choose a resource quota."
        ),
        _("The job asks for more than one person may hold of public resources."),
    ),
    "asset_not_yours": (_("There is nothing of the id %(id)s that jobs of %(workspace)s may be made of."),),
    "asset_retired": (
        _("%(name)s (%(id)s) was retired: new jobs can't be made of it any more; choose another."),
    ),
    "no_dataset_version": (_("The dataset %(name)s has no version %(version)s."),),
    "two_image_logins": (
        _(
            "The images %(name)s and %(other)s ask for different logins, and a job has one: give it in the "
            "job file, or take images of one registry."
        ),
    ),
    "no_place": (_("No workspace that you may submit to has a quota yet: ask an admin for one."),),
}

_TYPES: Final = {
    "text": _("a text in quotes"),
    "integer": _("a whole number"),
    "number": _("a number"),
    "boolean": _("true or false"),
    "list": _("a list"),
    "object": _("an object"),
    "null": _("null"),
}
_PLACES: Final = {"workspace": _("workspace"), "cluster": _("cluster"), "quota": _("quota")}
_SENTENCES: Final = {
    **SYNTAX,
    **YAML,
    **_CONTENT,
    **requests.PROBLEMS,
    **scripts.PROBLEMS,
    **manifests.PROBLEMS,
    **feasibility.PROBLEMS,
}


def problem_message(problem: Problem) -> str:
    """Return the problem in a sentence; whose rule it is stands in `problem.source`."""
    templates = _SENTENCES.get(problem.code)
    return say(templates, {**problem.params, **_in_words(problem)}) if templates else problem.code


def _in_words(problem: Problem) -> dict[str, str]:
    """Parameters that are words of ours."""
    words = {}
    for name in ("expected", "got"):
        kind = problem.params.get(name)
        if isinstance(kind, str):
            words[name] = gettext(_TYPES.get(kind, kind))
    allowed = problem.params.get("allowed")
    if isinstance(allowed, str):
        words["allowed"] = readable_set(allowed)
    kind = problem.params.get("kind")
    if isinstance(kind, str):
        words["place"] = gettext(_PLACES.get(kind, kind))
    field = problem.params.get("field")
    if isinstance(field, str):
        words["what"] = field_name(field)
    if problem.code == "over_public_ceiling":
        words |= {name: amounts.quantity(kind, problem.params.get(name)) for name in ("wanted", "limit")}
    return words


def readable_set(allowed: str) -> str:
    """Return a regular expression's set of characters as people read it: "A-Z a-z 0-9 . _ ~"."""
    parts, rest = [], allowed
    while rest:
        if rest[0] == "\\":
            part, rest = rest[1:2], rest[2:]
        elif rest[1:2] == "-" and len(rest) > 2:
            part, rest = rest[:3], rest[3:]
        else:
            part, rest = rest[0], rest[1:]
        parts.append(part)
    return " ".join(parts)
