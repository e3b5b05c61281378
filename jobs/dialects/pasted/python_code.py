"""A Python dict, or the SDK's call that makes a request, read from its source.  Nothing is executed.

Of the source only literals count, names that are given literals before, and the SDK's models with keyword
arguments (`JobSpec(type='Worker', …)`); what else stands there is told and left out.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from jobs.dialects.base import MAX_BYTES
from jobs.dialects.dlc import keys
from jobs.dialects.field_map import rows
from jobs.dialects.pasted.layers import Layer, Remark, ValueAt, closing_end, write_layer
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.record import short

LONGEST: Final = 64 * 1024
"""Characters of a program that is read."""

MOST_VALUES: Final = 20_000
MOST_DEPTH: Final = 40
MOST_MODELS: Final = 50
"""Names that are looked at in a text that is no program as a whole."""

CALL: Final = re.compile(r"CreateJobRequest(?<=\bCreateJobRequest)\s*\(")
"""The boundary stands behind its word: Python finds a pattern sooner that begins with plain text."""

_ASSIGNED: Final = re.compile(r"\s*[A-Za-z_]\w*[ \t]*=[ \t]*(?=\{)")
_BRACKETS: Final = compile_pattern(
    r"'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\"|[()\[\]{}]", re.DOTALL
)
_QUOTED: Final = compile_pattern(r"f?(?:'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\")")
_OPENS: Final = re.compile(r"[(\[]")
_OF_MAP: Final = re.compile(r"\s*\.\s*from_map\s*\(")
_MODEL: Final = re.compile(r"\b([A-Za-z_]\w*)\s*=\s*(?=JobSpec\s*\(|\[\s*JobSpec\s*\(|f?['\"])")
_LITERALS: Final = {"true": True, "false": False, "null": None}
"""JSON's words, where they stand in Python."""

_REQUEST: Final = "CreateJobRequest"
_FROM_MAP: Final = "from_map"
_NAMES: Final = {
    token.lower(): token
    for row in rows(keys.JOB)
    if not row.spelling.startswith("/JobConsole/")
    for token in row.spelling.replace("[]", "").split("/")
}
"""The keys of a request by their letters alone."""


class _NotLiteralError(Exception):
    """The value is not in the source."""


def of_dict(text: str) -> Layer | None:
    """Return a dict that stands alone, or is given to a name."""
    begun = _ASSIGNED.match(text)
    start = begun.end() if begun else len(text) - len(text.lstrip("\ufeff \t\r\n"))
    source = text[start:].rstrip()
    if len(source) > LONGEST:
        return None
    tree = _parse(f"({source}\n)")
    body = tree.body[0] if tree and len(tree.body) == 1 else None
    if not isinstance(body, ast.Expr) or not isinstance(body.value, ast.Dict):
        return None
    return _Reader(_Lines(f"({source}\n)", start - 1)).read(body.value, "python_dict")


def of_call(text: str) -> Layer | None:
    """Return the SDK's request in a program, or in a part of one."""
    if len(text) > LONGEST:
        return None
    tree = _parse(text)
    call = next((node for node in ast.walk(tree) if _is_request(node)), None) if tree else None
    if tree is None or call is None:
        return _of_part(text)
    return _Reader(_Lines(text, 0), _list_assignments(tree, call)).read(call, "python")


def _of_part(text: str) -> Layer | None:
    """The request in a text that is no program as a whole: its lines were lost, or there is prose around."""
    found = CALL.search(text)
    if found is None:
        return None
    start, end = found.start(), closing_end(_BRACKETS, text, found.end() - 1)
    more = _OF_MAP.match(text, end)
    end = closing_end(_BRACKETS, text, more.end() - 1) if more else end
    tree = _parse(f"({text[start:end]}\n)")
    call = next((node for node in ast.walk(tree) if _is_request(node)), None) if tree else None
    if call is None:
        return None
    names = dict(_models(text, start))
    return _Reader(_Lines(f"({text[start:end]}\n)", start - 1), names).read(call, "python")


def _models(text: str, before: int) -> Iterator[tuple[str, _Assignment]]:
    """Names that are given a model or a text in front of the request."""
    for found in islice(_MODEL.finditer(text, 0, before), MOST_MODELS):
        end = _value_end(text, found.end())
        tree = _parse(f"({text[found.end() : end]}\n)")
        body = tree.body[0] if tree and len(tree.body) == 1 else None
        if isinstance(body, ast.Expr):
            yield found[1], _Assignment(body.value, _Lines(f"({text[found.end() : end]}\n)", found.end() - 1))


def _value_end(text: str, start: int) -> int:
    quoted = _QUOTED.match(text, start)
    if quoted:
        return quoted.end()
    bracket = _OPENS.search(text, start)
    return closing_end(_BRACKETS, text, bracket.start()) if bracket else len(text)


def _parse(source: str) -> ast.Module | None:
    """Return the source's tree; None where it is none, or too deep for a parser."""
    if sum(map(source.count, "([{,")) > MOST_VALUES:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_request(node: ast.AST) -> bool:
    """Return whether it is `CreateJobRequest(…)` with arguments, or `CreateJobRequest().from_map({…})`."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr == _FROM_MAP:
        return isinstance(called.value, ast.Call) and _name(called.value.func) == _REQUEST and bool(node.args)
    return _name(called) == _REQUEST and bool(node.keywords)


def _name(called: ast.expr) -> str:
    return (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )


@dataclass(frozen=True, slots=True)
class _Lines:
    """A source and the offset of its beginning in the pasted text."""

    source: str
    start: int
    starts: list[int] = field(default_factory=list)

    def at(self, node: ast.expr | ast.keyword) -> int:
        """Return the offset of a node; the parser counts bytes of UTF-8."""
        if not self.starts:
            self.starts.extend([0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", self.source))])
        start = self.starts[node.lineno - 1]
        before = self.source[start : start + node.col_offset].encode()[: node.col_offset]
        return max(self.start + start + len(before.decode(errors="ignore")), 0)


@dataclass(frozen=True, slots=True)
class _Assignment:
    """The value given to a name, and the source in which that stands."""

    value: ast.expr
    lines: _Lines | None = None


def _list_assignments(tree: ast.Module, call: ast.AST | None) -> dict[str, _Assignment]:
    """Return the values given to names in front of the call, each the last of it."""
    last = getattr(call, "lineno", 0)
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign) and node.lineno <= last)
    return {
        target.id: _Assignment(node.value)
        for node in sorted(assigned, key=lambda each: each.lineno)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


class _Reader:
    """Makes values of expressions, within bounds."""

    def __init__(self, lines: _Lines, names: Mapping[str, _Assignment] | None = None) -> None:
        self._lines = lines
        self._names = names or {}
        self._left = MOST_VALUES
        self._room = MAX_BYTES
        self._remarks: list[Remark] = []

    def read(self, node: ast.AST, kind: str) -> Layer | None:
        """Return the job file that an expression is."""
        assert isinstance(node, ast.expr)
        try:
            piece = self._read(node, MOST_DEPTH)
        except (_NotLiteralError, RecursionError):
            return None
        return write_layer(kind, piece, self._remarks)

    def _read(self, node: ast.expr, depth: int) -> ValueAt:
        self._left -= 1
        if depth == 0 or self._left < 0:
            raise _NotLiteralError
        at = self._lines.at(node)
        if isinstance(node, ast.Call):
            return self._read_model(node, at, depth)
        if isinstance(node, ast.Dict):
            return ValueAt(dict(self._read_members(node, depth)), at)
        if isinstance(node, (ast.List, ast.Tuple)):
            items = (self._try_piece(item, depth, "") for item in node.elts)
            return ValueAt([item for item in items if item is not None], at)
        if isinstance(node, ast.Name) and node.id in self._names:
            return self._read_name(node.id, depth)
        value = self._read_literal(node)
        self._room -= len(value) if isinstance(value, str) else 0
        if self._room < 0:
            raise _NotLiteralError
        return ValueAt(value, at)

    def _read_name(self, name: str, depth: int) -> ValueAt:
        named = self._names[name]
        before = self._lines
        self._lines = named.lines or before
        try:
            return self._read(named.value, depth - 1)
        finally:
            self._lines = before

    def _read_literal(self, node: ast.expr) -> str | int | float | bool | None:
        if isinstance(node, ast.JoinedStr):
            return "".join(self._part(part) for part in node.values)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._read_literal(node.operand)
            if isinstance(value, (int, float)):
                return -value
        if isinstance(node, ast.Name) and node.id in _LITERALS:
            return _LITERALS[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool, type(None))):
            return node.value
        raise _NotLiteralError

    def _part(self, part: ast.expr) -> str:
        """Return a part of an f-string: its text, or the literal that a name was given."""
        if isinstance(part, ast.FormattedValue) and part.format_spec is None and part.conversion == -1:
            named = self._names.get(part.value.id) if isinstance(part.value, ast.Name) else None
            return str(self._read_literal(named.value)) if named else f"<{ast.unparse(part.value)}>"
        return str(self._read_literal(part))

    def _read_members(self, node: ast.Dict, depth: int) -> Iterator[tuple[str, ValueAt]]:
        for key, value in zip(node.keys, node.values, strict=True):
            name = self._read_literal(key) if key is not None else None
            if key is None or not isinstance(name, str):
                raise _NotLiteralError
            piece = self._try_piece(value, depth, name)
            if piece is not None:
                yield name, ValueAt(piece.value, piece.at, self._lines.at(key))

    def _read_model(self, node: ast.Call, at: int, depth: int) -> ValueAt:
        """Return a model with keyword arguments, or made of a dict; `dict(…)` is one too."""
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr == _FROM_MAP and len(node.args) == 1:
            return self._read(node.args[0], depth - 1)
        name = _name(called)
        if node.args or not (name[:1].isupper() or name == "dict"):
            raise _NotLiteralError
        members = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _NotLiteralError
            key = keyword.arg if name == "dict" else _wire_name(keyword.arg)
            piece = self._try_piece(keyword.value, depth, key)
            if piece is not None:
                members[key] = ValueAt(piece.value, piece.at, self._lines.at(keyword))
        return ValueAt(members, at)

    def _try_piece(self, node: ast.expr, depth: int, key: str) -> ValueAt | None:
        """Return a value; None, and told, where it is not in the source."""
        try:
            piece = self._read(node, depth - 1)
            is_emptied = (
                piece.value == {} and bool(self._remarks) and ast.unparse(node) not in ("{}", "dict()")
            )
            return None if is_emptied else piece
        except _NotLiteralError:
            if min(self._left, self._room) < 0 or depth <= 1:
                raise
            params = {"key": key, "value": short(ast.unparse(node))}
            self._remarks.append(Remark("value_not_in_text", self._lines.at(node), params))
            return None


def _wire_name(argument: str) -> str:
    """Return the key of the request that an argument of the SDK's models stands for."""
    plain = argument.replace("_", "").lower()
    return _NAMES.get(plain) or "".join(part[:1].upper() + part[1:] for part in argument.split("_"))
