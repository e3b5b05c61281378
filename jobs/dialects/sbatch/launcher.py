"""The script that runs several roles, or a role of several replicas: an srun for each role.

Slurm runs a script once, on its first node; what runs everywhere has to be started by srun.  The text is
always the same but for its last lines, one for each role, by which it is recognised again.  Sizes come
from the options by way of Slurm's own variables, so that nothing is said twice.  A role may end the job:
when one of its replicas fails (`fails`), or when all of them have succeeded (`ends`).  Ranks and the
master's address are set as the DLC page has them, the master's or chief's replicas first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.dialects import shell_words

LEADERS: Final = ("master", "chief", "launcher", "head")
FAILS: Final = "fails"
ENDS: Final = "ends"
NEVER: Final = "-"

PREAMBLE: Final = Path(__file__).with_suffix(".sh").read_text(encoding="utf-8") + "\n"
EARLIER: Final = PREAMBLE.replace(
    '"--gpus-per-task=${gpus##*:}") # with its type, Slurm 22.05 gives none',
    '"--gpus-per-task=$gpus")',
)
"""As earlier releases wrote it, and people keep it."""

EPILOGUE: Final = "finish"

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Started:
    """One role as the script starts it; `options` go to its srun."""

    name: str
    command: str
    fails: bool = True
    ends: bool = False
    options: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)


def write(roles: Sequence[Started]) -> str:
    """Return the script."""
    lines = [f"lead {leader([role.name for role in roles])}", *map(_write_role, roles), EPILOGUE]
    return PREAMBLE + "\n".join(lines)


def read(script: str) -> tuple[Started, ...] | None:
    """The roles of a script that `written` made, also when their lines were changed; None for any other."""
    if script.startswith(EARLIER):
        script = PREAMBLE + script.removeprefix(EARLIER)
    if not script.startswith(PREAMBLE):
        return None
    try:
        words = shell_words.split(script[len(PREAMBLE) :])
    except ValueError:
        return None
    if words[:1] != ["lead"] or words[-1:] != [EPILOGUE] or len(words) < 8:
        return None
    roles = tuple(_read_roles(words[2:-1]))
    return roles if roles and write(roles) == script.rstrip("\n") else None


def leader(names: Iterable[str]) -> int:
    """Return the place of the role with rank 0: a leader by its name, or else the first (DLC page)."""
    lower = [name.lower() for name in names]
    return next((lower.index(name) for name in LEADERS if name in lower), 0)


def _write_role(role: Started) -> str:
    """One role, every word of a person's quoted."""
    env = "".join(f"{name}={shell_words.quote(value)} " for name, value in role.env.items())
    failing, ending = FAILS if role.fails else NEVER, ENDS if role.ends else NEVER
    words = [role.name, failing, ending, *role.options, "--", role.command]
    return f"{env}role {' '.join(map(shell_words.quote, words))}"


def _read_roles(words: Sequence[str]) -> Iterator[Started]:
    """Yield the roles as the shell would see them; nothing more where they can't be read on."""
    position = 0
    while position < len(words):
        env: dict[str, str] = {}
        while position < len(words) and (match := _ASSIGNMENT.fullmatch(words[position])):
            env[match[1]] = match[2]
            position += 1
        if words[position : position + 1] != ["role"] or len(words) - position < 6:
            return
        name, failing, ending = words[position + 1 : position + 4]
        position += 4
        if "--" not in words[position:-1]:
            return
        stop = words.index("--", position)
        yield Started(
            name,
            words[stop + 1],
            failing == FAILS,
            ending == ENDS,
            tuple(words[position:stop]),
            env,
        )
        position = stop + 2
