"""The text behind the options of a script ↔ the variables and the command of a job.

A script for a plain shell is its own command.  One for another program (Python, a login shell) becomes a
command that hands it to that program.  Variables stand in a block of their own in front of the command;
only that block is read back, a foreign script's own `export` lines are part of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import shell_words
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.sbatch.header import begins_with_options

BASH: Final = "/bin/bash"
PLAIN: Final = frozenset(
    {BASH, "/bin/sh", "/usr/bin/bash", "/usr/bin/sh", "/usr/bin/env bash", "/usr/bin/env sh"}
)
"""Programs whose scripts are commands of a shell as they are."""

GUARD: Final = ": the commands begin here, whatever they look like"
"""A command of the shell that does nothing, where Slurm would read options out of the job's command."""

BLOCK: Final = "# Environment of the job"

_EXPORT: Final = compile_pattern(
    r"export (?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>(?:'[^']*'|\"'\"|[\w@%+=:,./\-])*+)\n", re.ASCII
)
_QUOTED: Final = re.compile(r"'([^']*)'|\"(')\"")
_WRAPPED: Final = re.compile(
    r"script=\$\(mktemp\) && cat > \"\$script\" <<'(?P<mark>END_OF_SCRIPT(?:_[0-9]{1,6})?)'\n"
    r"(?P<script>.*)\n(?P=mark)\nexec (?P<program>[^\n]*) \"\$script\"",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ScriptBody:
    """The interpreter of a script, the variables that it sets first, and its commands."""

    interpreter: str
    command: str
    env: Mapping[str, str] = field(default_factory=dict)


def read(interpreter: str, text: str) -> ScriptBody:
    """Read a script with this interpreter and this text behind its options."""
    text = text.replace("\r\n", "\n").removeprefix("\n")
    if interpreter not in PLAIN:
        return ScriptBody(BASH, wrap(interpreter, text.removesuffix("\n")) if text.strip() else "")
    env, rest = _block(text)
    return ScriptBody(interpreter, rest.removeprefix(f"{GUARD}\n").removesuffix("\n"), env)


def write(body: ScriptBody) -> tuple[str, str]:
    """Return the interpreter, and the text that goes behind the options; `read` takes it apart again."""
    foreign = None if body.env else unwrap(body.command)
    if foreign and not begins_with_options(foreign[1]) and foreign[1].strip():
        return foreign[0], f"\n{foreign[1]}\n"
    block = "".join(f"export {name}={shell_words.quote(value)}\n" for name, value in body.env.items())
    guarded = body.command.startswith(GUARD) or (not block and begins_with_options(body.command))
    guard = f"{GUARD}\n" if guarded or body.command.startswith(BLOCK) else ""
    start = f"{BLOCK}\n{block}\n" if block else ""
    return body.interpreter, f"\n{start}{guard}{body.command}\n"


def wrap(interpreter: str, script: str) -> str:
    """A shell's command that runs `script` as the kernel would: the program, one argument, the file."""
    mark = shell_words.here_document_mark(script)
    program = " ".join(map(shlex.quote, interpreter.split(" ", 1)))
    return f'script=$(mktemp) && cat > "$script" <<\'{mark}\'\n{script}\n{mark}\nexec {program} "$script"'


def unwrap(command: str) -> tuple[str, str] | None:
    """Interpreter and script of a command that `wrapped` made."""
    match = _WRAPPED.fullmatch(command)
    if not match:
        return None
    try:
        interpreter = " ".join(shell_words.split(match["program"]))
    except ValueError:
        return None
    right = interpreter.strip() not in PLAIN and wrap(interpreter, match["script"]) == command
    return (interpreter, match["script"]) if right else None


def _block(text: str) -> tuple[dict[str, str], str]:
    """Return the variables of the block at the beginning, and what follows; none where there is no block."""
    start = len(BLOCK) + 1
    if not text.startswith(f"{BLOCK}\n"):
        return {}, text
    env: dict[str, str] = {}
    while match := _EXPORT.match(text, start):
        env[match["name"]] = _QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", match["value"])
        start = match.end()
    if not env or text[start : start + 1] != "\n":
        return {}, text
    return env, text[start + 1 :]
