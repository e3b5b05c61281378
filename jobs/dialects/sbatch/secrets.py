"""The variables of a script, and the secrets among them taken out of its text and put in again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.sbatch import header, launcher, values
from jobs.dialects.sbatch import script as scripts
from jobs.dialects.sbatch.header import Script
from jobs.dialects.sbatch.launcher import Started
from jobs.dialects.sbatch.script import ScriptBody
from jobs.dialects.sbatch.values import Export
from jobs.dialects.secret_extraction import withhold
from jobs.dialects.spans import Splice, splice

EXPORT: Final = "export"
_BLOCK: Final = "block"


@dataclass(frozen=True, slots=True)
class ScriptVariables:
    """The variables of a script: its --export (None when that says something else), and its text."""

    export: Export | None
    body: ScriptBody
    roles: tuple[Started, ...] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Return those of the job; what the script sets itself counts over --export."""
        given = self.export.variables if self.export else {}
        return {**given, **self.body.env}


def read(script: Script) -> ScriptVariables:
    """Return the variables of `script`."""
    said = script.options(0).get(EXPORT)
    export = values.export(said) if said is not None else Export()
    body = scripts.read(script.interpreter, script.commands)
    roles = launcher.read(body.command)
    fits = roles is not None and len(roles) == script.components
    return ScriptVariables(export, body, roles if fits else None)


def withheld(told: ScriptVariables) -> tuple[ScriptVariables, dict[str, str], tuple[str, ...]]:
    """Return `told` with placeholders for its secrets, the secrets, and the variables that held them."""
    roles = {f"role-{index}": dict(role.env) for index, role in enumerate(told.roles or ())}
    export = dict(told.export.variables) if told.export else {}
    variables = {EXPORT: export, _BLOCK: dict(told.body.env), **roles}
    held = withhold(variables, (), variables.keys())
    if not held.secrets:
        return told, {}, ()
    assert isinstance(held.value, dict)
    named = tuple(dict.fromkeys(pointer.rpartition("/")[2] for pointer in held.found))
    return _replace_variables(told, held.value), held.secrets, named


def fill_in(told: ScriptVariables, secrets: Mapping[str, str]) -> ScriptVariables:
    """Return `told` with the values of `secrets` for their placeholders."""

    def fill(env: Mapping[str, str]) -> dict[str, str]:
        return {name: placeholders.fill(value, secrets) for name, value in env.items()}

    roles = {f"role-{index}": fill(role.env) for index, role in enumerate(told.roles or ())}
    export = fill(told.export.variables) if told.export else {}
    return _replace_variables(told, {EXPORT: export, _BLOCK: fill(told.body.env), **roles})


def _replace_variables(told: ScriptVariables, variables: Mapping[str, Mapping[str, str]]) -> ScriptVariables:
    """Return `told` with other values of the same variables."""
    export = replace(told.export, variables=variables[EXPORT]) if told.export else None
    body = replace(told.body, env=variables[_BLOCK])
    if told.roles is None:
        return ScriptVariables(export, body)
    roles = tuple(
        replace(role, env=dict(variables[f"role-{index}"])) for index, role in enumerate(told.roles)
    )
    return ScriptVariables(export, replace(body, command=launcher.write(roles)), roles)


def rewrite(script: Script, before: ScriptVariables, after: ScriptVariables) -> str:
    """Return the script's text, saying `after` where it said `before`."""
    splices: list[Splice] = []
    if before.export and after.export and before.export != after.export:
        splices = list(_splice_exports(script, after.export))
    if before.body != after.body:
        _interpreter, behind = scripts.write(after.body)
        splices.append((script.body, len(script.text), behind))
    return splice(script.text, splices) if splices else script.original


def _splice_exports(script: Script, export: Export) -> Iterable[Splice]:
    """Yield the last --export of the script, with the others emptied of what they may hold."""
    ours = [each for each in script.arguments if (each.component, each.name) == (0, EXPORT)]
    for each in ours:
        new = export.written if each is ours[-1] else "ALL"
        yield each.value_start, each.value_end, header.quote(new)
