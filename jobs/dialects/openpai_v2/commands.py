"""Lists of commands ↔ the one command of a role and its environment.

The commands of a role run one after the other in one shell; those of its deployment stand before and
after them.  `export NAME=value` at the beginning is how v2 says an environment variable.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import placeholders, shell_words
from jobs.dialects.base import Fix, Problem, Refused
from jobs.dialects.expansion_limit import ExpansionAllowance
from jobs.dialects.fields import CONSOLE
from jobs.dialects.findings import Findings
from jobs.dialects.objects import as_list, as_object
from jobs.dialects.openpai_v2 import keys, templates
from jobs.dialects.openpai_v2.prerequisites import FIELDS, PURPOSES, secret_key
from jobs.dialects.openpai_v2.templates import Context, resolve
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.record import short
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec, RoleSpec

_EXPORT: Final = compile_pattern(
    r"\s*export[ \t]+(?P<name>[A-Za-z_][A-Za-z0-9_]*)="
    r"(?P<value>(?:[\w@%+=:,./\-]++|'[^']*+'|\"[^\"$`\\!]*+\")*+)\s*",
    re.ASCII,
)
_SECRET_EXPORT: Final = re.compile(
    r"\s*export[ \t]+(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<quote>['\"]?)"
    r"(?P<value><%[^%]*%>|\$SECRET:[A-Za-z0-9_.\-]+)(?P=quote)\s*"
)


@dataclass(slots=True)
class Script:
    """The command of a role, and the variables that are set before it.

    `env` is plain, `secrets` maps variables to the names of secrets; `used` are further variables that the
    command reads secrets from.
    """

    command: str = ""
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


def count_exports(commands: Sequence[str], context: Context) -> int:
    """Return how many of the first `commands` only set a variable; the last one is a command in any case."""
    return _take_exports(commands, Script(), context, ExpansionAllowance())


def _take_exports(commands: Sequence[str], script: Script, context: Context, room: ExpansionAllowance) -> int:
    count = 0
    while count < len(commands) - 1 and _take_export(commands[count], script, context, room):
        count += 1
    return count


def read(commands: Sequence[tuple[str, str]], context: Context, findings: Findings) -> Script:
    """Return the script of `commands`, each with its pointer."""
    script, texts = Script(), []
    first = _take_exports([text for _pointer, text in commands], script, context, findings.room)
    for pointer, text in commands[first:]:
        resolved = resolve(text, context, findings.room)
        if resolved.is_too_long:
            findings.problem("expands_too_far", pointer, CONSOLE, most=findings.room.most)
            break
        script.used |= resolved.secrets
        texts.append(resolved.text)
        _note_unresolved(pointer, text, resolved, context, findings)
    script.command = texts[0] if len(texts) == 1 else "\n".join(text.strip() for text in texts)
    return script


def _take_export(text: str, script: Script, context: Context, room: ExpansionAllowance) -> bool:
    """Add a command that only sets a variable to the script; tell whether it is one."""
    if not text.lstrip().startswith("export"):
        return False
    secret = _SECRET_EXPORT.fullmatch(text)
    if secret:
        name = _secret_name(secret["value"], context, room)
        if name:
            script.secrets[secret["name"]] = name
            script.env.pop(secret["name"], None)
            return True
    resolved = resolve(text, context, room)
    plain = None if resolved.is_too_long else _EXPORT.fullmatch(resolved.text)
    if not plain or resolved.secrets or resolved.unresolved:
        return False
    script.env[plain["name"]] = "".join(shell_words.split(plain["value"]))
    script.secrets.pop(plain["name"], None)
    return True


def _secret_name(text: str, context: Context, room: ExpansionAllowance) -> str | None:
    """Return the secret that a template or placeholder as a whole stands for."""
    if reference := placeholders.reference(text):
        return reference
    done = resolve(text, context, room)
    return next(iter(done.secrets.values()), None) if templates.whole_path(text) and not done.wanted else None


def _note_unresolved(
    pointer: str, text: str, resolved: templates.Resolved, context: Context, findings: Findings
) -> None:
    for path in dict.fromkeys(resolved.unresolved):
        near = templates.nearest_path(path, context) if findings.has_few("template_unresolved") else None
        fix = Fix(pointer, templates.replace_path(text, path, near)) if near else None
        findings.note("template_unresolved", pointer, fix, value=short(path), meant=near)
    for name in resolved.wanted:
        findings.note("secret_wanted", pointer, name=name)


def plain_exports(env: Mapping[str, str]) -> list[str]:
    """Return the commands that set plain variables."""
    return [f"export {name}={shlex.quote(value)}" for name, value in env.items()]


def secret_exports(secrets: Mapping[str, str]) -> list[str]:
    """Return the commands that set secret ones, by variable and key among the file's secrets."""
    return [f"export {name}='<% {templates.SECRETS}.{key} %>'" for name, key in secrets.items()]


def change(old: Sequence[str], resolved: Sequence[str], command: str) -> list[str]:
    """Return `old` commands, which say `resolved`, made to say `command`; equal ones at both ends stay."""
    texts = [text.strip() for text in resolved]
    if command == (resolved[0] if len(resolved) == 1 else "\n".join(texts)):
        return list(old)
    rest, begin, end = command, 0, len(old)
    while begin < end and rest.startswith(f"{texts[begin]}\n"):
        rest = rest[len(texts[begin]) + 1 :]
        begin += 1
    while end > begin and rest.endswith(f"\n{texts[end - 1]}"):
        rest = rest[: -len(texts[end - 1]) - 1]
        end -= 1
    return [*old[:begin], rest, *old[end:]]


# --- writing ---------------------------------------------------------------------------------------------


EXPORT_LENGTH = 256
"""What a variable counts beside its name and value, for each role that it is written for."""


def write_scripts(
    job: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str], *, in_parameters: bool
) -> None:
    """Write the commands of every role; with `in_parameters` its environment is said elsewhere."""
    before = {role.name: role for role in there.roles} if there else {}
    same = there is not None and (there.env, there.secret_env) == (spec.env, spec.secret_env)
    roles, room = as_object(job.get(keys.TASK_ROLES.key)), ExpansionAllowance()
    for role in spec.roles:
        old = before.get(role.name)
        if same and old is not None and (old.command, old.env) == (role.command, role.env):
            continue
        copied = {} if in_parameters else spec.env
        if not room.take(sum(len(name) + len(value) + EXPORT_LENGTH for name, value in copied.items())):
            raise Refused((Problem("expands_too_far", "", 1, 1, {"most": room.most}, source=CONSOLE),))
        CommandWriter(job, names[role.name], spec, role, in_parameters=in_parameters).write()
    job[keys.TASK_ROLES.key] = roles


class CommandWriter:
    """One role's commands, and what is needed to write them."""

    def __init__(
        self, job: JsonObject, name: str, spec: JobSpec, role: RoleSpec, *, in_parameters: bool
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
        count = count_exports(every, self._context())
        rest = every[count:]
        said = [self._read([text]).command for text in rest]
        new = change(rest, said, self._wanted) if rest else [self._wanted]
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
        """Return `rest` behind what sets the variables."""
        plain = plain_exports(self._env)
        script = self._read([*plain, *rest])
        known = {**script.used, **script.secrets}
        missing = {
            variable: secret_key(self._job, name)
            for variable, name in self._secrets.items()
            if known.get(variable) != name
        }
        return [*plain, *secret_exports(missing), *rest]

    def _fits(self, every: list[str]) -> bool:
        """Tell whether these commands say what is wanted."""
        script = self._read(every)
        return (script.command, script.env, {**script.used, **script.secrets}) == (
            self._wanted,
            self._env,
            self._secrets,
        )

    def _read(self, every: list[str]) -> Script:
        return read([("", text) for text in every], self._context(), Findings())

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
        """Return the commands of the chosen deployment before and after those of the role."""
        said = as_object(self._deployment().get(self._name))
        return _texts(said.get(keys.PRE_COMMANDS.key)), _texts(said.get(keys.POST_COMMANDS.key))

    def _deployment(self) -> dict[str, object]:
        """Return the chosen deployment's roles."""
        chosen = as_object(self._job.get(keys.DEFAULTS.key)).get(keys.DEPLOYMENT.key)
        for item in as_list(self._job.get(keys.DEPLOYMENTS.key)):
            said = as_object(item)
            if chosen and said.get(keys.DEPLOYMENT_NAME.key) == chosen:
                return as_object(said.get(keys.DEPLOYMENT_ROLES.key))
        return {}


def _texts(value: object) -> list[str]:
    return [text for text in as_list(value) if isinstance(text, str)]
