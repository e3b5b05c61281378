"""Commands that start a Jupyter anybody could use, and the same command made safe.

The SCM page's sample is the model: quotes escaped once too often, an empty token, every address, every
origin.  The fixed command listens where the backend's connections come from: the loopback address, or that
of the node where the console has to come by the network.  It takes its token from the environment
(`JUPYTER_TOKEN`, which notebook 5.3 to 7 and Jupyter Server all read, and which no process list shows) and
lets the console's gateway in under its own host name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from jobs.dialects.patterns import compile_pattern

TOKEN_VARIABLE: Final = "JOB_CONSOLE_ENDPOINT_TOKEN"  # noqa: S105 - the variable's name
"""Where a backend puts the token that the endpoint's link carries."""

LISTENS: Final = "--ip=${JOB_CONSOLE_ENDPOINT_IP:-127.0.0.1}"
PREFIX: Final = f'export JUPYTER_TOKEN="${TOKEN_VARIABLE}"; '

_BLANK: Final = r"(?:[ \t]++|\\\r?\n)++"
_COMMENT: Final = r"(?<![^\s;&|()])\#[^\n]*+"
_WORD: Final = r"(?:[^\s;&|<>()'\"\\]++|\\.|'[^']*+'|\"(?:[^\"\\]++|\\.)*+\")++"
"""Quantifiers give nothing back: text that stops matching is read once, not once more for each beginning."""

_SIMPLE_COMMAND: Final = compile_pattern(
    rf"(?P<text>(?:{_BLANK}|{_COMMENT}|{_WORD})++)(?=[;&|<>()\r\n]|\Z)|[;&|<>()\r\n]++", re.DOTALL
)
_NEXT_WORD: Final = compile_pattern(rf"(?:{_BLANK}|{_COMMENT})*+(?P<word>{_WORD})", re.DOTALL)
_NO_OPTIONS: Final = compile_pattern(
    rf"(?:{_BLANK}|{_COMMENT}|(?!--)[^\s;&|<>()'\"\\]++(?![\"'\\]))++", re.DOTALL
)
"""Blanks and plain words that begin no option, as many as there are."""

_QUOTED: Final = re.compile(r"\\(.)|'([^']*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\([\"\\])")
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

MOST_WORDS_BEFORE: Final = 1000
"""Variables and programs such as `nohup` that may stand before Jupyter's name, and that name."""

MAX_SERVERS: Final = 1000
"""A command that names Jupyter in more simple commands than that was made to waste time: it is left alone."""


@dataclass(frozen=True, slots=True)
class FixedCommand:
    """The command to run instead, and the codes of what was wrong with the first."""

    command: str
    findings: tuple[str, ...]


class _Word(NamedTuple):
    """One word of the shell's, with what the shell makes of it."""

    start: int
    end: int
    value: str


class _Option(NamedTuple):
    """An option of Jupyter's; `literal` tells that its value has quotes as part of it."""

    start: int
    end: int
    app: str
    name: str
    value: str
    literal: bool

    def to_text(self, value: str) -> str:
        """Return the option with another value."""
        app = f"{self.app}." if self.app else ""
        return f"--{app}{self.name}={shlex.quote(value)}"


Splice = tuple[int, int, str]


def fix_command(command: str) -> FixedCommand | None:
    """Return the fixed command, or None when nothing in it needs fixing or can be understood."""
    splices: list[Splice] = []
    findings: list[str] = []
    needs_token = False
    simple_commands = list(islice(_simple_commands(command), MAX_SERVERS + 1))
    if len(simple_commands) > MAX_SERVERS:
        return None
    for start, end in simple_commands:
        arguments = _arguments(islice(_words(command, start, end), MOST_WORDS_BEFORE))
        if arguments is None:
            continue
        options = tuple(_options(command, arguments, end))
        if _has_password(options):
            splices += _requote(option for option in options if option.literal)
        else:
            splices += _make_safe(options)
            findings += _faults(options)
            needs_token = True
        if any(option.literal for option in options):
            findings.append("literal_quotes")
    if not splices:
        return None
    fixed = (PREFIX if needs_token else "") + _apply(command, splices)
    return FixedCommand(fixed, tuple(dict.fromkeys(findings)))


def _simple_commands(command: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each simple command that names Jupyter, up to a quote without an end."""
    if "jupyter" not in command and "notebook" not in command:
        return
    position = 0
    while match := _SIMPLE_COMMAND.match(command, position):
        position = match.end()
        text = match["text"] or ""
        if "jupyter" in text or "notebook" in text:
            yield match.span()


def _words(command: str, start: int, end: int) -> Iterator[_Word]:
    """Yield the words of a shell between two offsets."""
    while word := _word(command, start, end):
        yield word
        start = word.end


def _word(command: str, start: int, end: int) -> _Word | None:
    """Return the first of them."""
    match = _NEXT_WORD.match(command, start, end)
    return _Word(match.start("word"), match.end(), _unquote(match["word"])) if match else None


def _unquote(word: str) -> str:
    """Return the value that the shell passes on, without expanding variables."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _QUOTED.sub(_inner, word)


def _inner(quoted: re.Match[str]) -> str:
    escaped, single, double = quoted.groups()
    if double is not None:
        return _ESCAPED.sub(r"\1", double)
    return str(single if escaped is None else escaped)


def _arguments(words: Iterator[_Word]) -> int | None:
    """Return the offset of a Jupyter server's arguments; None when the command is none."""
    word = next(words, None)
    while word:
        name = word.value.rpartition("/")[2]
        if name in _PROGRAMS:
            return word.end
        after = next(words, None)
        if name == "jupyter" and after and after.value in _SERVERS:
            return after.end
        if name.startswith("python") and after and after.value == "-m":
            return _module_arguments(words)
        if name not in _WRAPPERS and not _BEFORE.fullmatch(word.value):
            return None
        word = after
    return None


def _module_arguments(words: Iterator[_Word]) -> int | None:
    """Return the same for `python -m` and what follows."""
    module, among = next(words, None), _MODULES
    if module and module.value == "jupyter":
        module, among = next(words, None), _SERVERS
    return module.end if module and module.value in among else None


def _options(command: str, start: int, end: int) -> Iterator[_Option]:
    """Yield the options that decide who may come in, with values given by `=` or as the next word."""
    position = start
    while position < end:
        if skipped := _NO_OPTIONS.match(command, position, end):
            position = skipped.end()
        word = _word(command, position, end)
        if word is None:
            return
        position = word.end
        match = _OPTION.fullmatch(word.value)
        if not match:
            continue
        value, last = match["value"], word.end
        if value is None:
            following = _word(command, position, end)
            if following is None or following.value.startswith("--"):
                continue
            value, last = following.value, following.end
        literal = _LITERAL.fullmatch(value)
        inner = literal["inner"] if literal else value
        yield _Option(word.start, last, match["app"] or "", match["name"], inner, bool(literal))


def _has_password(options: Sequence[_Option]) -> bool:
    """Return whether a token or password is asked for; Jupyter makes its own token when none is given."""
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


def _make_safe(options: Sequence[_Option]) -> Iterator[Splice]:
    """Take out every option that lets people in; let the gateway in where the token stood."""
    listens = "" if any(option.name == "ip" for option in options) else f" {LISTENS}"
    for option in options:
        if option.name == "token":
            app = "ServerApp" if option.app in {"ServerApp", "IdentityProvider"} else "NotebookApp"
            yield option.start, option.end, f"--{app}.allow_remote_access=True{listens}"
        elif option.name == "ip":
            yield option.start, option.end, LISTENS
        elif option.name == "base_url" and option.value not in {"", "/"}:
            yield from _requote([option] if option.literal else [])
        else:
            yield option.start, option.end, ""


def _requote(options: Iterator[_Option] | Sequence[_Option]) -> Iterator[Splice]:
    """Options whose quotes had become part of the value, with quotes that work."""
    for option in options:
        yield option.start, option.end, option.to_text(option.value)


def _apply(command: str, splices: Sequence[Splice]) -> str:
    """Return `command` with `splices` made; a word that goes takes the blanks before it along."""
    parts, done = [], 0
    for start, end, new in sorted(splices):
        kept = command[done:start]
        parts += [kept if new else kept.rstrip(" \t"), new]
        done = end
    return "".join(parts) + command[done:]
