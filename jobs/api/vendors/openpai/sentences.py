"""Sentences of OpenPAI's schemas for problems of job files: Joi's for version 1, Ajv's for version 2."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from jobs.dialects.base import Params, Problem
from jobs.dialects.spans import split

TOO_MANY_NEEDED: Final = (
    "minFailedTaskCount or minSucceededTaskCount should not be greater than tasks number."
)

_PATTERNS: Final = {
    "jobName": r"/^[A-Za-z0-9\-._]+$/",
    "name": "/^[A-Za-z0-9._~]+$/",
    "label": "/^[A-Za-z0-9._~]+$/",
}
"""OpenPAI v0.14.  A name with `~` is accepted here, as SCM has it."""

_TYPES: Final = {
    "integer": "must be a number",
    "number": "must be a number",
    "text": "must be a string",
    "object": "must be an object",
    "list": "must be an array",
    "boolean": "must be a boolean",
}


def joi_sentence(problem: Problem) -> str | None:
    """Return Joi's sentence for a problem of a job file of version 1; None where it has none."""
    if problem.code == "above_task_number":
        return TOO_MANY_NEEDED
    tell = _JOI.get(problem.code)
    rule = tell(problem.params) if tell is not None else None
    if rule is None:
        return None
    path = split(problem.pointer)
    if problem.code == "bad_key":
        return _nest(path, f'"{problem.params["key"]}" {rule}')
    return _nest(path, f'"{path[-1] if path else "value"}" {rule}')


def _nest(path: list[str], reason: str) -> str:
    """Return the reason inside of what Joi says about everything around it."""
    if not path:
        return reason
    for index in range(len(path) - 1, -1, -1):
        is_position = path[index].isdigit() and index > 0
        if is_position:
            reason = f'"{path[index - 1]}" at position {path[index]} fails because [{reason}]'
        else:
            reason = f'child "{path[index]}" fails because [{reason}]'
    return reason


def _pattern(params: Params) -> str | None:
    pattern = _PATTERNS.get(str(params.get("key")))
    return f'with value "{params.get("value")}" fails to match the required pattern: {pattern}'


def _at_least(params: Params) -> str:
    return f"must be larger than or equal to {params.get('least')}"


def _at_most(params: Params) -> str:
    return f"must be less than or equal to {params.get('most')}"


_JOI: Final[Mapping[str, Callable[[Params], str | None]]] = {
    "required": lambda _params: "is required",
    "empty": lambda _params: "is not allowed to be empty",
    "bad_name": _pattern,
    "bad_key": lambda _params: "is not allowed",
    "too_few": lambda params: f"must contain at least {params.get('least')} items",
    "too_small": _at_least,
    "too_great": _at_most,
    "above_memory": _at_most,
    "not_whole": lambda _params: "must be an integer",
    "wrong_type": lambda params: _TYPES.get(str(params.get("expected"))),
}


def protocol_sentence(problem: Problem) -> str | None:
    """Return the sentence of a check that follows the schema of version 2; None for the schema's problems."""
    tell = _PROTOCOL.get(problem.code)
    return tell(problem.params) if tell is not None else None


_PROTOCOL: Final[Mapping[str, Callable[[Params], str]]] = {
    "duplicate_prerequisite": lambda params: (
        f"Duplicate {params.get('kind_of')} prerequisites {params.get('value')}."
    ),
    "no_prerequisite": lambda params: f"Prerequisite {params.get('value')} does not exist.",
    "duplicate_deployment": lambda params: f"Duplicate deployments {params.get('value')}.",
    "no_deployment": lambda params: f"Default deployment {params.get('value')} does not exist.",
}


def ajv_errors(problems: tuple[Problem, ...]) -> str | None:
    """Return Ajv's errors for problems of a job file of version 2, as JSON; None where it has none."""
    errors = [found for problem in problems if (found := _ajv_error(problem)) is not None]
    return json.dumps(errors, ensure_ascii=False) if errors else None


def _ajv_error(problem: Problem) -> dict[str, Any] | None:
    path = split(problem.pointer)
    tell = _AJV.get(problem.code)
    if tell is None:
        return None
    keyword, message, params = tell(problem.params, path[-1] if path else "")
    around = path[:-1] if keyword == "required" else path
    return {
        "keyword": keyword,
        "dataPath": "".join(_step(part) for part in around),
        "params": params,
        "message": message,
    }


def _step(part: str) -> str:
    if part.isdigit():
        return f"[{part}]"
    return f".{part}" if part.isidentifier() else f"['{part}']"


_AjvError = tuple[str, str, dict[str, Any]]
_AJV_TYPES: Final = {"text": "string", "list": "array"}


def _ajv_type(params: Params, _name: str) -> _AjvError:
    expected = str(params.get("expected"))
    kind = _AJV_TYPES.get(expected, expected)
    return "type", f"should be {kind}", {"type": kind}


def _ajv_minimum(params: Params, _name: str) -> _AjvError:
    least = params.get("least")
    return "minimum", f"should be >= {least}", {"comparison": ">=", "limit": least, "exclusive": False}


def _ajv_maximum(params: Params, _name: str) -> _AjvError:
    most = params.get("most")
    return "maximum", f"should be <= {most}", {"comparison": "<=", "limit": most, "exclusive": False}


_AJV: Final[Mapping[str, Callable[[Params, str], _AjvError]]] = {
    "required": lambda _params, name: (
        "required",
        f"should have required property '{name}'",
        {"missingProperty": name},
    ),
    "wrong_type": _ajv_type,
    "not_whole": lambda _params, _name: ("type", "should be integer", {"type": "integer"}),
    "too_small": _ajv_minimum,
    "too_great": _ajv_maximum,
    "too_few": lambda params, _name: (
        "minItems",
        f"should NOT have fewer than {params.get('least')} items",
        {"limit": params.get("least")},
    ),
}
