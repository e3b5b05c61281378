"""Lists of commands ↔ a role's one command and its environment.

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
from jobs.dialects.base import Fix
from jobs.dialects.expansion import Room
from jobs.dialects.fields import CONSOLE
from jobs.dialects.findings import Findings
from jobs.dialects.openpai_v2 import templates
from jobs.dialects.openpai_v2.templates import Context, resolve
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.record import short

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
    """What a role runs: its command, and the variables that are set before it.

    `env` is plain, `secrets` maps variables to the names of secrets; `used` are further variables that the
    command reads secrets from.
    """

    command: str = ""
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


def exports(commands: Sequence[str], context: Context) -> int:
    """How many of the first `commands` only set a variable; the last one is a command in any case."""
    script, room = Script(), Room()
    count = 0
    while count < len(commands) - 1 and _taken(commands[count], script, context, room):
        count += 1
    return count


def read(commands: Sequence[tuple[str, str]], context: Context, findings: Findings) -> Script:
    """The script of `commands`, each with its pointer."""
    script = Script()
    first = 0
    while first < len(commands) - 1 and _taken(commands[first][1], script, context, findings.room):
        first += 1
    texts = []
    for pointer, text in commands[first:]:
        resolved = resolve(text, context, findings.room)
        if resolved.is_too_long:
            findings.problem("expands_too_far", pointer, CONSOLE, most=findings.room.most)
            break
        script.used |= resolved.secrets
        texts.append(resolved.text)
        _tell(pointer, text, resolved, context, findings)
    script.command = texts[0] if len(texts) == 1 else "\n".join(text.strip() for text in texts)
    return script


def _taken(text: str, script: Script, context: Context, room: Room) -> bool:
    """Whether the command only sets a variable; then it is the script's."""
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


def _secret_name(text: str, context: Context, room: Room) -> str | None:
    """The secret that a template or placeholder as a whole stands for."""
    if reference := placeholders.reference(text):
        return reference
    done = resolve(text, context, room)
    return next(iter(done.secrets.values()), None) if templates.whole(text) and not done.wanted else None


def _tell(
    pointer: str, text: str, resolved: templates.Resolved, context: Context, findings: Findings
) -> None:
    for path in dict.fromkeys(resolved.unresolved):
        near = templates.nearest(path, context) if findings.has_few("template_unresolved") else None
        fix = Fix(pointer, templates.replaced(text, path, near)) if near else None
        findings.note("template_unresolved", pointer, fix, value=short(path), meant=near)
    for name in resolved.wanted:
        findings.note("secret_wanted", pointer, name=name)


def plain_exports(env: Mapping[str, str]) -> list[str]:
    """The commands that set plain variables."""
    return [f"export {name}={shlex.quote(value)}" for name, value in env.items()]


def secret_exports(secrets: Mapping[str, str]) -> list[str]:
    """The commands that set secret ones, by variable and key among the file's secrets."""
    return [f"export {name}='<% {templates.SECRETS}.{key} %>'" for name, key in secrets.items()]


def changed(old: Sequence[str], resolved: Sequence[str], command: str) -> list[str]:
    """`old` commands, which say `resolved`, made to say `command`: those at both ends that stay are kept."""
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
