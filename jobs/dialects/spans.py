"""The offsets of each value of a JSON text: a tree, built only when it is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from jobs.dialects.patterns import compile_pattern

Splice: TypeAlias = tuple[int, int, str]

_PIECE: Final = compile_pattern(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


@dataclass(slots=True, eq=False)
class Node:
    """One value: text[start:end].  `key_start` is where its key stands, or its own start in a list.

    `members` holds an object's values by key (the last of equal keys), `items` a list's; `repeats` the
    keys of an object that were already there, each with its offset and the value that it replaces.
    """

    start: int
    key_start: int
    end: int = -1
    members: dict[str, Node] | None = None
    items: list[Node] | None = None
    repeats: list[tuple[str, int, Node]] = field(default_factory=list)

    def add(self, node: Node, key: str) -> None:
        """Take `node` in: under `key` in an object, at the end in a list."""
        if self.items is not None:
            self.items.append(node)
        elif self.members is not None:
            if key in self.members:
                self.repeats.append((key, node.key_start, self.members.pop(key)))
            self.members[key] = node

    def child(self, token: str) -> Node | None:
        """Return the member or element that a pointer's `token` names."""
        if self.members is not None:
            return self.members.get(token)
        if self.items is not None and token.isascii() and token.isdigit() and len(token) < 7:
            index = int(token)
            return self.items[index] if index < len(self.items) else None
        return None

    def children(self) -> Iterator[tuple[str, Node]]:
        """Yield every direct member or element with its pointer token."""
        if self.members is not None:
            yield from self.members.items()
        for index, item in enumerate(self.items or ()):
            yield str(index), item


def tree(text: str) -> Node:
    """Return the offsets of strict JSON `text`; it must already have been read by a JSON parser."""
    top = Node(0, 0)
    stack: list[Node] = []
    key: tuple[str, int] | None = None
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece in ",:":
            continue
        if piece in "]}":
            stack.pop().end = match.end()
            continue
        parent = stack[-1] if stack else None
        if parent is not None and parent.members is not None and key is None:
            key = _key(piece), match.start()
            continue
        node = Node(match.start(), key[1] if key else match.start(), match.end())
        if parent is None:
            top = node
        else:
            parent.add(node, key[0] if key else "")
        key = None
        if piece in "{[":
            node.members, node.items = ({}, None) if piece == "{" else (None, [])
            stack.append(node)
    return top


def find(top: Node, tokens: list[str]) -> tuple[Node, bool]:
    """Return the node that `tokens` lead to and True, or the deepest one on the way and False."""
    node = top
    for token in tokens:
        child = node.child(token)
        if child is None:
            return node, False
        node = child
    return node, True


def walk(top: Node) -> Iterator[tuple[str, Node]]:
    """Yield every node with its pointer, in the order of the text."""
    waiting = [("", top)]
    while waiting:
        pointer, node = waiting.pop()
        yield pointer, node
        inner = [(f"{pointer}/{escape(token)}", child) for token, child in node.children()]
        waiting.extend(reversed(inner))


def splice(text: str, splices: Iterable[Splice]) -> str:
    """Return `text` with each (start, end, new text) put in; one inside of an earlier one is left out."""
    parts, done = [], 0
    for start, stop, new in splices:
        if start >= done:
            parts += [text[done:start], new]
            done = stop
    return "".join(parts) + text[done:]


def line_start(text: str, offset: int) -> int:
    """Return where the line begins that holds `offset`."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def escape(token: str) -> str:
    """Return `token` as it is written in an RFC 6901 pointer."""
    return token.replace("~", "~0").replace("/", "~1")


def split(pointer: str) -> list[str]:
    """Return the tokens of an RFC 6901 pointer."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _key(piece: str) -> str:
    """Return the value of the string literal `piece`."""
    if "\\" not in piece:
        return piece[1:-1]
    decoded: str = json.loads(piece, strict=False)
    return decoded
