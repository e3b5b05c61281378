"""Bodies as OpenPAI's clients send them: JSON, forms with nested names, and YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from django.http import HttpRequest

from jobs.api.vendors.operations import InvalidParameters, WrongValue
from jobs.dialects.fields import Integer, Key
from jobs.dialects.openpai_v1 import keys

FORM: Final = "application/x-www-form-urlencoded"
MOST_FIELDS: Final = 20_000
DEEPEST: Final = 8

_NAME: Final = re.compile(r"(?P<first>[^\[\]]+)(?P<rest>(?:\[[^\[\]]*\])*)")
_PART: Final = re.compile(r"\[([^\[\]]*)\]")


def is_form(request: HttpRequest) -> bool:
    """Tell whether a body is form-encoded."""
    return request.content_type == FORM


def is_yaml(request: HttpRequest) -> bool:
    """Tell whether a body is said to be YAML."""
    return "yaml" in (request.content_type or "")


def parse_form(text: str) -> dict[str, Any]:
    """Return the object that a form stands for: `taskRoles[0][name]=a` is a list of objects.

    All values are texts; of two fields with one name the later counts.  Raises InvalidParameters.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise _not_a_form() from error
    tree: dict[str, Any] = {}
    for name, value in pairs:
        _insert(tree, _split(name), value)
    return {name: _to_lists(value) for name, value in tree.items()}


def _not_a_form() -> InvalidParameters:
    return InvalidParameters([WrongValue("body", "form")])


def _split(name: str) -> list[str]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise _not_a_form()
    path = [match["first"], *_PART.findall(match["rest"])]
    if len(path) > DEEPEST:
        raise _not_a_form()
    return path


def _insert(tree: dict[str, Any], path: list[str], value: str) -> None:
    for part in path[:-1]:
        key = part or str(len(tree))
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise _not_a_form()
    last = path[-1] or str(len(tree))
    if isinstance(tree.get(last), dict):
        raise _not_a_form()
    tree[last] = value


def _to_lists(value: Any) -> Any:
    """Return objects whose names are all numbers as lists, in the order of the numbers."""
    if not isinstance(value, dict):
        return value
    inner = {name: _to_lists(each) for name, each in value.items()}
    if all(name.isascii() and name.isdigit() and len(name) < 9 for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


def restore_numbers(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job file of version 1 from a form, with numbers where its schema has them.

    An empty number is the form's way to write null; a text that is no number stays, to be refused by name.
    """
    restored = _restore(job, keys.JOB)
    roles = restored.get(keys.TASK_ROLES.key)
    if isinstance(roles, list):
        restored[keys.TASK_ROLES.key] = [_restore_role(role) for role in roles]
    return restored


def _restore_role(role: Any) -> Any:
    if not isinstance(role, dict):
        return role
    restored = _restore(role, keys.TASK_ROLES.keys)
    ports = restored.get(keys.PORT_LIST.key)
    if isinstance(ports, list):
        restored[keys.PORT_LIST.key] = [
            _restore(port, keys.PORT_LIST.keys) if isinstance(port, dict) else port for port in ports
        ]
    return restored


def _restore(fields: Mapping[str, Any], rules: Iterable[Key]) -> dict[str, Any]:
    numbers = {rule.key: rule for rule in rules if isinstance(rule, Integer)}
    restored = {}
    for name, value in fields.items():
        rule = numbers.get(name)
        if rule is None or not isinstance(value, str):
            restored[name] = value
        elif value == "":
            if rule.nullable:
                restored[name] = None
        else:
            restored[name] = _number(value)
    return restored


def _number(text: str) -> int | str:
    """Return a whole number as such, every other text as it is."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text
