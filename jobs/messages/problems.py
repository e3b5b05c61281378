"""The problems of a job file, each in a sentence that says what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.base import Note, Problem
from jobs.language import gettext
from jobs.messages import amounts, feasibility, job_policies, manifests, requests, scripts
from jobs.messages.fieldnames import field_name
from jobs.messages.notes import note_message
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say
from jobs.messages.syntax import SYNTAX, YAML

AGAINST_PAGE: Final = "against_page"
"""The code of a problem that is a violation of a vendor's page; its parameter `rule` is the note's code."""

_CONTENT: Final[Mapping[str, tuple[str, ...]]] = {
    "required": (_("%(key)s is missing."),),
    "empty": (_("%(key)s can't be empty."),),
    "bad_name": (_("%(key)s “%(value)s” contains invalid characters. Allowed: %(allowed)s."),),
    "bad_key": (_("The key “%(key)s” must contain a letter, digit or underscore."),),
    "too_long": (_("%(key)s has %(length)s characters; at most %(most)s are allowed."),),
    "wrong_type": (
        _("%(key)s must be %(expected)s, not %(got)s."),
        _("The file must be %(expected)s, not %(got)s."),
    ),
    "not_whole": (_("%(key)s is %(value)s; it must be a whole number."),),
    "too_small": (_("%(key)s is %(value)s; it must be at least %(least)s."),),
    "too_great": (_("%(key)s is %(value)s; it must be at most %(most)s."),),
    "too_few": (_("%(key)s has too few elements; the minimum is %(least)s."),),
    "too_many": (_("%(key)s has %(count)s elements; at most %(most)s are allowed."),),
    "too_many_replicas": (_("The job has %(count)s replicas in total; at most %(most)s are allowed."),),
    "above_memory": (_("%(key)s is %(value)s; it must be at most memoryMB (%(most)s)."),),
    "above_task_number": (_("%(key)s is %(value)s; it must be at most taskNumber (%(most)s)."),),
    "bad_member": (
        _("“%(value)s” can contain only the characters %(allowed)s and can't begin with a digit."),
    ),
    "forbidden_key": (_("%(key)s is not allowed here."),),
    "duplicate_prerequisite": (_("Duplicate prerequisite %(value)s of type %(kind_of)s."),),
    "no_prerequisite": (
        _("Prerequisite %(value)s of type %(kind_of)s not found."),
        _("Prerequisite not found."),
    ),
    "duplicate_deployment": (_("Duplicate deployment %(value)s."),),
    "no_deployment": (_("Deployment %(value)s not found."),),
    "more_problems": (_("%(count)s more problems."),),
    "is_a_command": (_("This is a command, not a job file. Use it as the start command of a new job."),),
    "unknown_dialect": (_("Unrecognized job file. Supported formats: %(known)s."),),
    "ambiguous_dialect": (_("The format could be %(candidates)s. Select one."),),
    "no_own_secret": (
        _("$SECRET:%(name)s has no value. Save a secret named %(name)s in Settings, or enter the value."),
    ),
    "no_such_upload": (_("Upload not found, or no permission. Upload the files and use the name returned."),),
    "locked_by_template": (
        _("%(what)s is locked by template “%(template)s” v%(version)s. Use the value from the template."),
    ),
    "required_by_template": (
        _("%(what)s is required by template “%(template)s” v%(version)s. Enter a value."),
    ),
    "no_such_template": (_("The template used for this job was deleted or is not shared with you."),),
    "may_not_submit": (
        _(
            "Your role in workspace “%(name)s” does not allow submitting jobs. Ask a workspace "
            "admin to change it."
        ),
    ),
    "no_such_place": (_("Not found, or no permission: %(place)s “%(name)s”."),),
    "no_unix_name": (
        _(
            "Jobs on %(cluster)s run as their owner's UNIX user, and you have none. Ask a console "
            "admin to set your UNIX name."
        ),
    ),
    "over_public_ceiling": (
        _(
            "The job requests %(wanted)s; public resources (%(quota)s) allow at most %(limit)s per "
            "user. Request less, or select a resource quota."
        ),
        _("The job requests more than public resources allow per user."),
    ),
    "asset_not_yours": (_("%(id)s not found, or not available in workspace %(workspace)s."),),
    "asset_retired": (_("%(name)s (%(id)s) is retired and can't be used for new jobs. Select another."),),
    "no_dataset_version": (_("Dataset %(name)s has no version %(version)s."),),
    "two_image_logins": (
        _(
            "Images %(name)s and %(other)s need different registry logins, but a job can have only "
            "one. Set the login in the job file, or use images from one registry."
        ),
    ),
    AGAINST_PAGE: (_("Not allowed by the vendor's page."),),
    "no_place": (_("No quota in any workspace where you can submit jobs. Ask an admin for one."),),
}

_TYPES: Final = {
    "text": _("a string"),
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
    **job_policies.PROBLEMS,
}


def problem_message(problem: Problem) -> str:
    """Return the problem in a sentence; whose rule it is stands in `problem.source`."""
    if problem.code == AGAINST_PAGE and (rule := problem.params.get("rule")):
        return note_message(Note(str(rule), problem.pointer, problem.params))
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
    if problem.code in job_policies.PROBLEMS:
        words |= job_policies.describe_limit(problem.code, problem.params)
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
