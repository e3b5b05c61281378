"""Completion of commands, options and formats in bash, zsh and fish, made of the parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from jobs.client.parser import parser

_BASH = Path(__file__).with_suffix(".sh").read_text(encoding="utf-8")
_ZSH = "#compdef job-console\nautoload -Uz bashcompinit && bashcompinit\n"


def run(_name: str, arguments: argparse.Namespace) -> int:
    """Print the script for a shell."""
    made = {"bash": _bash, "zsh": lambda: _ZSH + _bash(), "fish": _fish}[arguments.shell]
    print(made(), end="")  # noqa: T201
    return 0


def _bash() -> str:
    whole, commands = parser(), _commands()
    options = [
        f"        {name}) words={shlex.quote(' '.join(_options(one)))} ;;" for name, one in commands.items()
    ]
    values = []
    for name, one in commands.items():
        for flags, choices in _values(one):
            patterns = "|".join(f"{name}:{flag}" for flag in flags or [name])
            values.append(f"    {patterns}) words={shlex.quote(' '.join(choices))} ;;")
    first = shlex.quote(" ".join([*commands, *_options(whole)]))
    made = {"    # VALUES": "\n".join(values), "COMMANDS": first, "        # OPTIONS": "\n".join(options)}
    text = _BASH
    for mark, lines in made.items():
        text = text.replace(mark, lines)
    return text


def _fish() -> str:
    lines = []
    for name, one in _commands().items():
        about = shlex.quote(one.description or "")
        lines.append(f"complete -c job-console -f -n __fish_use_subcommand -a {name} -d {about}")
        inside = f"complete -c job-console -n {shlex.quote(f'__fish_seen_subcommand_from {name}')}"
        for action in one._actions:  # noqa: SLF001 argparse tells of them in no other way
            flags = "".join(
                f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
                for flag in action.option_strings
            )
            choices = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}" if action.choices else ""
            if flags or choices:
                lines.append(
                    f"{inside}{flags}{choices} -d {shlex.quote((action.help or '').replace('%%', '%'))}"
                )
    return "\n".join(lines) + "\n"


def _commands() -> Mapping[str, argparse.ArgumentParser]:
    actions = parser()._actions  # noqa: SLF001 likewise
    (found,) = (each for each in actions if isinstance(each, argparse._SubParsersAction))  # noqa: SLF001
    return dict(found.choices)


def _options(one: argparse.ArgumentParser) -> list[str]:
    return [flag for action in one._actions for flag in action.option_strings]  # noqa: SLF001


def _values(one: argparse.ArgumentParser) -> Iterator[tuple[list[str], list[str]]]:
    """The options, or none for the argument, that take one of several values, and those values."""
    for action in one._actions:  # noqa: SLF001
        if action.choices and not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield list(action.option_strings), list(map(str, action.choices))
