"""`python -m tests.glossary`: names in the code and texts of the interface keep to locale/glossary.toml."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from babel.messages.pofile import read_po

from console.home import CHECKOUT

LANGUAGES: Final = ("zh_Hans", "ja")
PLACEHOLDER: Final = re.compile(r"%\(\w+\)[sd]|\{\w*\}|<[^>]*>|`[^`]*`|“[^”]*”")
"""What a text does not say itself: values, markup, code, and quoted words."""
WORDS: Final = re.compile(r"[A-Z]?[a-z]+")


def main() -> int:
    """Print every deviation, one a line; return 1 when there is any."""
    with (CHECKOUT / "locale" / "glossary.toml").open("rb") as file:
        glossary = tomllib.load(file)
    found = [*_texts(glossary), *_names(glossary["names"])]
    print("\n".join(found) or "Names and texts keep to the glossary.")
    return int(bool(found))


def _texts(glossary: dict[str, Any]) -> Iterator[str]:
    terms = {
        re.compile(rf"(?<![\w./-]){term}s?(?![\w./-])", re.IGNORECASE): both
        for term, both in glossary["terms"].items()
    }
    avoid = {
        re.compile(rf"\b(?:{words})\b", re.IGNORECASE): instead
        for words, instead in glossary["avoid"].items()
    }
    for domain in ("django", "djangojs"):
        for at, language in enumerate(LANGUAGES):
            exceptions = tuple(glossary["exceptions"][language])
            for english, translated in _catalogue(language, domain):
                plain = PLACEHOLDER.sub(" ", english)
                if at == 0:
                    for pattern, instead in avoid.items():
                        if match := pattern.search(plain):
                            yield f'"{english}": not "{match[0]}" but: {instead}'
                if exceptions and english.startswith(exceptions):
                    continue
                for pattern, both in terms.items():
                    if pattern.search(plain) and not re.search(both[at], translated):
                        yield f'{language}: "{english}" is "{translated}", without {both[at]}'


def _catalogue(language: str, domain: str) -> Iterator[tuple[str, str]]:
    """Yield each English text and its translation; of several forms, all together."""
    path = CHECKOUT / "locale" / language / "LC_MESSAGES" / f"{domain}.po"
    with path.open("rb") as file:
        for message in read_po(file):
            if message.id:
                yield "\n".join(_forms(message.id)), "\n".join(_forms(message.string or ""))


def _forms(text: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def _names(words: dict[str, str]) -> Iterator[str]:
    """Yield the modules, classes, functions, arguments and variables that have a private word."""
    for name in _files("console", "jobs", "quotas"):
        path = Path(name)
        if path.suffix != ".py" or "migrations" in path.parts:
            continue
        named = {path.stem: 1}
        for node in ast.walk(ast.parse((CHECKOUT / name).read_text(encoding="utf-8"))):
            for each in _named(node):
                named.setdefault(each, getattr(node, "lineno", 1))
        for each, line in named.items():
            for word in {part.lower() for part in WORDS.findall(each)} & words.keys():
                yield f"{name}:{line} {each}: not {word} but {words[word]}"


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr


def _files(*folders: str) -> list[str]:
    command = ["git", "ls-files", *folders]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.split()


if __name__ == "__main__":
    sys.exit(main())
