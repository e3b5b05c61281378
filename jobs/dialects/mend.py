"""Commands that start a Jupyter anybody could use, and the same command made safe.

The SCM page's sample is the model: quotes escaped once too often, an empty token, every address, every
origin.  The mended command listens on the loopback address, takes its token from the environment
(`JUPYTER_TOKEN`, which notebook 5.3 to 7 and Jupyter Server all read, and which no process list shows)
and lets the console's gateway in under its own host name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

TOKEN_VARIABLE: Final = "JOB_CONSOLE_ENDPOINT_TOKEN"  # noqa: S105 - the variable's name
"""Where a backend puts the token that the endpoint's link carries."""

PREFIX: Final = f'export JUPYTER_TOKEN="${TOKEN_VARIABLE}"; '

_LEXEME: Final = re.compile(
    r"(?P<blank>(?:[ \t]|\\\r?\n)+)"
    r"|(?P<comment>(?<![^\s;&|()])\#[^\n]*)"
    r"|(?P<operator>[;&|<>()\r\n]+)"
    r"|(?P<word>(?:[^\s;&|<>()'\"\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+)",
    re.DOTALL,
)
_SERVERS: Final = frozenset({"notebook", "lab", "server", "nbclassic"})
_PROGRAMS: Final = frozenset(f"jupyter-{server}" for server in _SERVERS)
_MODULES: Final = frozenset({"notebook", "jupyterlab", "jupyter_server", "nbclassic"})
_WRAPPERS: Final = frozenset(
    ["exec", "nohup", "env", "sudo", "time", "nice", "setsid", "timeout", "stdbuf", "then", "do", "else", "{"]
)
_BEFORE: Final = re.compile(r"[A-Za-z_]\w*=.*|-.*|\d+[smh]?", re.DOTALL)
_OPTION: Final = re.compile(
    r"--(?:(?P<app>\w+)\.)?(?P<name>token|password|ip|allow_origin|base_url|disable_check_xsrf"
    r"|allow_remote_access)(?:=(?P<value>.*))?",
    re.DOTALL,
)
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_LITERAL: Final = re.compile(r"(?P<quote>[\"'])(?P<inner>.*)(?P=quote)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mended:
    """The command to run instead, and the codes of what was wrong with the first."""

    command: str
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Word:
    """One word of the shell's, with what the shell makes of it."""

    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class _Option:
    """An option of Jupyter's; `literal` tells that its value has quotes as part of it."""

    start: int
    end: int
    app: str
    name: str
    value: str
    literal: bool

    def written(self, value: str) -> str:
        """The option with another value."""
        app = f"{self.app}." if self.app else ""
        return f"--{app}{self.name}={shlex.quote(value)}"


Splice = tuple[int, int, str]


def mend_command(command: str) -> Mended | None:
    """The mended command, or None when nothing in it needs mending or can be understood."""
    if "jupyter" not in command and "notebook" not in command:
        return None
    splices: list[Splice] = []
    findings: list[str] = []
    needs_token = False
    for words in _simple_commands(command):
        arguments = _arguments(words)
        if arguments is None:
            continue
        options = tuple(_options(arguments))
        if _protected(options):
            splices += _requoted(option for option in options if option.literal)
        else:
            splices += _made_safe(options)
            findings += _faults(options)
            needs_token = True
        if any(option.literal for option in options):
            findings.append("literal_quotes")
    if not splices:
        return None
    mended = (PREFIX if needs_token else "") + _spliced(command, splices)
    return Mended(mended, tuple(dict.fromkeys(findings)))


def _simple_commands(command: str) -> Iterator[list[_Word]]:
    """The words of each simple command; nothing from where the quotes stop matching."""
    words: list[_Word] = []
    position = 0
    while position < len(command):
        match = _LEXEME.match(command, position)
        if not match:
            return
        if match.lastgroup == "word":
            words.append(_Word(match.start(), match.end(), _unquoted(match[0])))
        elif match.lastgroup == "operator":
            yield words
            words = []
        position = match.end()
    yield words


def _unquoted(word: str) -> str:
    """What the shell passes on, variables apart."""
    return "".join(shlex.split(word, comments=False))


def _arguments(words: Sequence[_Word]) -> Sequence[_Word] | None:
    """The words after the name of a Jupyter server; None when the command is none."""
    for index, word in enumerate(words):
        name = PurePosixPath(word.value).name
        after = words[index + 1].value if index + 1 < len(words) else ""
        if name == "jupyter" and after in _SERVERS:
            return words[index + 2 :]
        if name in _PROGRAMS:
            return words[index + 1 :]
        if name.startswith("python") and after == "-m":
            return _module_arguments(words[index + 2 :])
        if name not in _WRAPPERS and not _BEFORE.fullmatch(word.value):
            return None
    return None


def _module_arguments(words: Sequence[_Word]) -> Sequence[_Word] | None:
    """The same for `python -m` and what follows."""
    names = [word.value for word in words[:2]]
    if names[:1] == ["jupyter"] and names[-1] in _SERVERS:
        return words[2:]
    return words[1:] if names and names[0] in _MODULES else None


def _options(words: Sequence[_Word]) -> Iterator[_Option]:
    """The options that decide who may come in, with values given by `=` or as the next word."""
    for index, word in enumerate(words):
        match = _OPTION.fullmatch(word.value)
        if not match:
            continue
        value, end = match["value"], word.end
        if value is None:
            following = words[index + 1] if index + 1 < len(words) else None
            if following is None or following.value.startswith("--"):
                continue
            value, end = following.value, following.end
        literal = _LITERAL.fullmatch(value)
        inner = literal["inner"] if literal else value
        yield _Option(word.start, end, match["app"] or "", match["name"], inner, bool(literal))


def _protected(options: Sequence[_Option]) -> bool:
    """Whether a token or password is asked for; Jupyter makes its own token when none is given."""
    values = {option.name: option.value for option in options}
    return bool(values.get("token", "made by Jupyter") or values.get("password"))


def _faults(options: Sequence[_Option]) -> Iterator[str]:
    yield "token_empty"
    for option in options:
        if option.name == "ip" and option.value not in _LOOPBACK:
            yield "listens_everywhere"
        elif option.name == "allow_origin" and option.value:
            yield "any_origin"
        elif option.name == "disable_check_xsrf" and option.value.lower() == "true":
            yield "xsrf_off"


def _made_safe(options: Sequence[_Option]) -> Iterator[Splice]:
    """Every option that lets people in goes; where the token stood the gateway is let in."""
    for option in options:
        if option.name == "token":
            app = "ServerApp" if option.app in {"ServerApp", "IdentityProvider"} else "NotebookApp"
            yield option.start, option.end, f"--{app}.allow_remote_access=True"
        elif option.name == "ip":
            yield option.start, option.end, option.written("127.0.0.1")
        elif option.name == "base_url" and option.value not in {"", "/"}:
            yield from _requoted([option] if option.literal else [])
        else:
            yield option.start, option.end, ""


def _requoted(options: Iterator[_Option] | Sequence[_Option]) -> Iterator[Splice]:
    """Options whose quotes had become part of the value, with quotes that work."""
    for option in options:
        yield option.start, option.end, option.written(option.value)


def _spliced(command: str, splices: Sequence[Splice]) -> str:
    """`command` with `splices` made; a word that goes takes the blanks before it along."""
    parts, done = [], 0
    for start, end, new in sorted(splices):
        kept = command[done:start]
        parts += [kept if new else kept.rstrip(" \t"), new]
        done = end
    return "".join(parts) + command[done:]
