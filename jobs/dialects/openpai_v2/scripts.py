"""Commands and environment of a JobSpec → `commands`, where they have changed."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.dialects.base import Problem, Refused
from jobs.dialects.expansion import Room
from jobs.dialects.fields import CONSOLE
from jobs.dialects.findings import Findings
from jobs.dialects.openpai_v2 import commands, keys
from jobs.dialects.openpai_v2.commands import Script
from jobs.dialects.openpai_v2.extras import as_list, as_object
from jobs.dialects.openpai_v2.prerequisites import FIELDS, PURPOSES
from jobs.dialects.openpai_v2.prerequisites_document import secret_key
from jobs.dialects.openpai_v2.templates import Context
from jobs.dialects.rendering import JsonObject
from jobs.spec import JobSpec, TaskRole

EXPORT_LENGTH = 256
"""What a variable counts beside its name and value, for each role that it is written for."""


def write_scripts(
    job: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str], *, in_parameters: bool
) -> None:
    """The commands of every role; with `in_parameters` its environment is said elsewhere."""
    before = {role.name: role for role in there.roles} if there else {}
    same = there is not None and (there.env, there.secret_env) == (spec.env, spec.secret_env)
    roles, room = as_object(job.get(keys.TASK_ROLES.key)), Room()
    for role in spec.roles:
        old = before.get(role.name)
        if same and old is not None and (old.command, old.env) == (role.command, role.env):
            continue
        copied = {} if in_parameters else spec.env
        if not room.take(sum(len(name) + len(value) + EXPORT_LENGTH for name, value in copied.items())):
            raise Refused((Problem("expands_too_far", "", 1, 1, {"most": room.most}, source=CONSOLE),))
        _Writer(job, names[role.name], spec, role, in_parameters=in_parameters).write()
    job[keys.TASK_ROLES.key] = roles


class _Writer:
    """One role's commands."""

    def __init__(
        self, job: JsonObject, name: str, spec: JobSpec, role: TaskRole, *, in_parameters: bool
    ) -> None:
        self._job = job
        self._name = name
        self._wanted = role.command
        self._env = dict(role.env) if in_parameters else {**spec.env, **role.env}
        said = as_object(job.get(keys.PARAMETERS.key)) if in_parameters else {}
        self._secrets = {
            variable: ref.name for variable, ref in spec.secret_env.items() if variable not in said
        }
        self._role = as_object(as_object(job.get(keys.TASK_ROLES.key)).get(name))
        self._own = _texts(self._role.get(keys.COMMANDS.key))

    def write(self) -> None:
        """Keep what may stay of the commands, and add what is missing."""
        before, after = self._around()
        every = [*before, *self._own, *after]
        count = commands.exports(every, self._context())
        rest = every[count:]
        said = [self._read([text]).command for text in rest]
        new = commands.changed(rest, said, self._wanted) if rest else [self._wanted]
        lead, tail = before[count:], len(after)
        own = [*self._own[: max(count - len(before), 0)], *new[len(lead) : len(new) - tail]]
        around_stays = new[: len(lead)] == lead and (not after or new[-tail:] == after)
        if own and around_stays and self._fits([*before, *own, *after]):
            self._role[keys.COMMANDS.key] = own
            return
        kept = self._with_variables(new)
        if lead and around_stays and self._fits(kept):
            split = len(kept) - len(new) + len(lead)
            as_object(self._deployment()[self._name])[keys.PRE_COMMANDS.key] = kept[:split]
            self._role[keys.COMMANDS.key] = kept[split : len(kept) - tail]
            return
        if before or after:
            self._deployment()[self._name] = {}
        self._role[keys.COMMANDS.key] = kept if self._fits(kept) else self._with_variables([self._wanted])

    def _with_variables(self, rest: list[str]) -> list[str]:
        """`rest` behind what sets the variables."""
        plain = commands.plain_exports(self._env)
        script = self._read([*plain, *rest])
        known = {**script.used, **script.secrets}
        missing = {
            variable: secret_key(self._job, name)
            for variable, name in self._secrets.items()
            if known.get(variable) != name
        }
        return [*plain, *commands.secret_exports(missing), *rest]

    def _fits(self, every: list[str]) -> bool:
        """Whether these commands say what is wanted."""
        script = self._read(every)
        return (script.command, script.env, {**script.used, **script.secrets}) == (
            self._wanted,
            self._env,
            self._secrets,
        )

    def _read(self, every: list[str]) -> Script:
        return commands.read([("", text) for text in every], self._context(), Findings())

    def _context(self) -> Context:
        held: dict[str, object] = {
            "$parameters": as_object(self._job.get(keys.PARAMETERS.key)),
            "$secrets": as_object(self._job.get(keys.SECRETS.key)),
        }
        for item in as_list(self._job.get(keys.PREREQUISITES.key)):
            said = as_object(item)
            kind = str(said.get(keys.ITEM_TYPE.key))
            if kind in PURPOSES and self._role.get(FIELDS[kind].key) == said.get(keys.ITEM_NAME.key):
                held[f"${kind}"] = said
        return held

    def _around(self) -> tuple[list[str], list[str]]:
        """What the chosen deployment puts before and after the commands."""
        said = as_object(self._deployment().get(self._name))
        return _texts(said.get(keys.PRE_COMMANDS.key)), _texts(said.get(keys.POST_COMMANDS.key))

    def _deployment(self) -> dict[str, object]:
        """The chosen deployment's roles."""
        chosen = as_object(self._job.get(keys.DEFAULTS.key)).get(keys.DEPLOYMENT.key)
        for item in as_list(self._job.get(keys.DEPLOYMENTS.key)):
            said = as_object(item)
            if chosen and said.get(keys.DEPLOYMENT_NAME.key) == chosen:
                return as_object(said.get(keys.DEPLOYMENT_ROLES.key))
        return {}


def _texts(value: object) -> list[str]:
    return [text for text in as_list(value) if isinstance(text, str)]
