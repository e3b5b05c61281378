"""The variables of a script, and the secrets among them taken out of its text and put in again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.sbatch import launcher, values, words
from jobs.dialects.sbatch import script as scripts
from jobs.dialects.sbatch.launcher import Started
from jobs.dialects.sbatch.lines import Script
from jobs.dialects.sbatch.script import Body
from jobs.dialects.sbatch.values import Export
from jobs.dialects.withhold import withhold

EXPORT: Final = "export"
_BLOCK: Final = "block"


@dataclass(frozen=True, slots=True)
class Told:
    """Where a script tells variables: its --export (None when that says something else), and its text."""

    export: Export | None
    body: Body
    roles: tuple[Started, ...] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Those of the job; what the script sets itself counts over --export."""
        given = self.export.variables if self.export else {}
        return {**given, **self.body.env}


def read(script: Script) -> Told:
    """The variables of `script`."""
    said = script.options(0).get(EXPORT)
    export = values.export(said) if said is not None else Export()
    body = scripts.read(script.interpreter, script.commands)
    roles = launcher.read(body.command)
    fits = roles is not None and len(roles) == script.components
    return Told(export, body, roles if fits else None)


def withheld(told: Told) -> tuple[Told, dict[str, str], tuple[str, ...]]:
    """`told` with placeholders for its secrets, the secrets, and the variables that held them."""
    roles = {f"role-{index}": dict(role.env) for index, role in enumerate(told.roles or ())}
    export = dict(told.export.variables) if told.export else {}
    variables = {EXPORT: export, _BLOCK: dict(told.body.env), **roles}
    held = withhold(variables, (), variables.keys())
    if not held.secrets:
        return told, {}, ()
    assert isinstance(held.value, dict)
    named = tuple(dict.fromkeys(pointer.rpartition("/")[2] for pointer in held.found))
    return _with(told, held.value), held.secrets, named


def filled(told: Told, secrets: Mapping[str, str]) -> Told:
    """`told` with the values of `secrets` for their placeholders."""

    def fill(env: Mapping[str, str]) -> dict[str, str]:
        return {name: placeholders.fill(value, secrets) for name, value in env.items()}

    roles = {f"role-{index}": fill(role.env) for index, role in enumerate(told.roles or ())}
    export = fill(told.export.variables) if told.export else {}
    return _with(told, {EXPORT: export, _BLOCK: fill(told.body.env), **roles})


def _with(told: Told, variables: Mapping[str, Mapping[str, str]]) -> Told:
    """`told` with other values of the same variables."""
    export = replace(told.export, variables=variables[EXPORT]) if told.export else None
    body = replace(told.body, env=variables[_BLOCK])
    if told.roles is None:
        return Told(export, body)
    roles = tuple(
        replace(role, env=dict(variables[f"role-{index}"])) for index, role in enumerate(told.roles)
    )
    return Told(export, replace(body, command=launcher.written(roles)), roles)


def text_with(script: Script, before: Told, after: Told) -> str:
    """The script's text, saying `after` where it said `before`."""
    splices: list[tuple[int, int, str]] = []
    if before.export and after.export and before.export != after.export:
        splices = list(_exports(script, after.export))
    text = script.text
    if before.body != after.body:
        _interpreter, behind = scripts.written(after.body)
        splices.append((script.body, len(text), behind))
    if not splices:
        return script.original
    parts, done = [], 0
    for start, stop, new in splices:
        parts += [text[done:start], new]
        done = stop
    return "".join(parts) + text[done:]


def _exports(script: Script, export: Export) -> Iterable[tuple[int, int, str]]:
    """The last --export of the script, with the others emptied of what they may hold."""
    ours = [each for each in script.arguments if (each.component, each.name) == (0, EXPORT)]
    for each in ours:
        new = export.written if each is ours[-1] else "ALL"
        yield each.value_start, each.value_end, words.written(new)
