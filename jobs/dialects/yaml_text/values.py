"""YAML text → plain values, in one pass over the parser's events, and the offsets of each on demand.

Hostile text is refused early: the tree of offsets need not look after depth and aliases.

Nothing is built from tags but text, numbers, lists and objects.  What an alias stands for is copied, and
counted, so that a short text can't become a large value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import yaml

from jobs.dialects.base import Params
from jobs.dialects.expansion_limit import ExpansionAllowance
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.source import MAX_DEPTH, MAX_VALUES
from jobs.dialects.spans import Node, escape
from jobs.dialects.syntax import INVISIBLE, MAX_REPORTED, Cause
from jobs.dialects.yaml_text.rules import MERGE, Scalar, YamlRules, key_text, resolve

Fault: TypeAlias = tuple[str, Cause]
"""A pointer and what is wrong there."""

_TAG: Final = "tag:yaml.org,2002:"
_SCALAR_TAGS: Final = frozenset({_TAG + name for name in ("int", "float", "bool", "null")})
_SHOWN: Final = 60
_INVISIBLE: Final = re.compile(rf"{INVISIBLE.pattern}|^[\u00a0\u3000]+")
"""What may not be in a key; a blank of another script before it is no indentation."""


class StopReading(Exception):
    """Reading on is of no use: the text holds too much, or too many faults."""

    def __init__(self, cause: Cause | None = None, pointer: str = "") -> None:
        super().__init__()
        self.cause = cause
        self.pointer = pointer


@dataclass(slots=True)
class _Frame:
    """A list or object that is being read."""

    value: dict[str, object] | list[object]
    anchor: str | None
    before: int
    length: int
    key: str | None = None
    merging: bool = False
    height: int = 1
    merged: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A value that an alias may stand for: its number of values and characters, and their depth."""

    value: object
    size: int
    length: int
    height: int


class YamlReader:
    """Reads all documents of a stream; `faults` is what may not stand in a job file."""

    def __init__(self, text: str, rules: YamlRules) -> None:
        self._rules = rules
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CBaseLoader)
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._open: set[str] = set()
        self._count = 0
        self._length = 0
        self._room = ExpansionAllowance()
        self.documents: list[object] = []
        self.starts: list[int] = []
        self.faults: list[Fault] = []

    def read(self) -> None:
        """Read everything; raises `yaml.MarkedYAMLError`, and StopReading for hostile text."""
        for event in self._events:
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif isinstance(event, yaml.MappingStartEvent):
                self._begin({}, event, _TAG + "map")
            elif isinstance(event, yaml.SequenceStartEvent):
                self._begin([], event, _TAG + "seq")
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                self.starts.append(begins(event))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.key is None and isinstance(frame.value, dict):
            self._length += len(event.value)
            self._key(frame, event)
            return
        self._count_values(1, event)
        said: str = event.value
        self._length += len(said)
        plain = event.implicit[0]
        value: Scalar = said
        if event.tag is not None and event.tag != "!" and event.tag != _TAG + "str":
            if event.tag in _SCALAR_TAGS:
                plain = True
            else:
                self._fault("yaml_tag", event, {"tag": event.tag[:_SHOWN]})
        if plain and event.tag in (None, *_SCALAR_TAGS):
            meaning = resolve(said, self._rules)
            if isinstance(meaning, Cause):
                self._fault(meaning.code, event, meaning.params)
                meaning = 0
            value = meaning
        elif "\0" in said:
            self._fault("null_character", event)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, 1, len(said), 0)
        self._add(value, event)

    def _key(self, frame: _Frame, event: yaml.ScalarEvent) -> None:
        """The next value's key."""
        key: str = event.value
        if event.implicit[0]:
            if key == MERGE:
                frame.key, frame.merging = key, True
                return
            key = key_text(key, self._rules)
        frame.key = key
        if key in frame.value:
            if key in frame.merged:
                frame.merged.discard(key)
            else:
                self._fault("duplicate_key", event, {"key": key[:_SHOWN]})
        if key.isascii():
            return
        invisible = _INVISIBLE if event.implicit[0] else INVISIBLE
        if found := invisible.search(key):
            frame.key = None
            shown = invisible.sub("", key)[:_SHOWN]
            self._fault("invisible_key", event, {"character": f"U+{ord(found[0][0]):04X}", "key": shown})
            frame.key = key

    def _begin(
        self, value: dict[str, object] | list[object], event: yaml.CollectionStartEvent, tag: str
    ) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise StopReading(Cause("too_deep", begins(event), {"most": MAX_DEPTH}))
        if event.tag not in (None, "!", tag):
            self._fault("yaml_tag", event, {"tag": str(event.tag)[:_SHOWN]})
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.key is None and isinstance(frame.value, dict):
            raise StopReading(Cause("yaml_complex_key", begins(event)))
        self._count_values(1, event)
        if event.anchor:
            self._open.add(event.anchor)
        self._stack.append(_Frame(value, event.anchor, self._count, self._length))

    def _end(self) -> None:
        frame = self._stack.pop()
        if frame.anchor:
            self._open.discard(frame.anchor)
            size = self._count - frame.before + 1
            self._anchors[frame.anchor] = _Anchored(
                frame.value, size, self._length - frame.length, frame.height
            )
        if self._stack:
            self._stack[-1].height = max(self._stack[-1].height, frame.height + 1)
        self._add(frame.value, None)

    def _alias(self, event: yaml.AliasEvent) -> None:
        frame = self._stack[-1] if self._stack else None
        name = event.anchor or ""
        known = self._anchors.get(name)
        if name in self._open or known is None:
            code = "yaml_alias_of_itself" if name in self._open else "yaml_unknown_alias"
            raise StopReading(Cause(code, begins(event), {"name": name[:_SHOWN]}))
        if frame is not None and frame.key is None and isinstance(frame.value, dict):
            raise StopReading(Cause("yaml_complex_key", begins(event)))
        if len(self._stack) + known.height > MAX_DEPTH:
            raise StopReading(Cause("too_deep", begins(event), {"most": MAX_DEPTH}))
        self._count_values(known.size, event)
        if not self._room.take(known.length):
            cause = Cause("expands_too_far", begins(event), {"most": self._room.most})
            raise StopReading(cause, self._pointer())
        self._length += known.length
        if frame is not None:
            frame.height = max(frame.height, known.height + 1)
        self._add(copy_value(known.value), event)

    def _add(self, value: object, event: yaml.Event | None) -> None:
        """Put a value where it belongs."""
        if not self._stack:
            self.documents.append(value)
            return
        frame = self._stack[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        key, frame.key = frame.key or "", None
        if not frame.merging:
            frame.value[key] = value
            return
        frame.merging = False
        sources = value if isinstance(value, list) else [value]
        for source in sources:
            if not isinstance(source, dict):
                self._fault("yaml_merge", event)
                continue
            for name, inner in source.items():
                if name not in frame.value:
                    frame.value[name] = inner
                    frame.merged.add(name)

    def _count_values(self, more: int, event: yaml.Event) -> None:
        self._count += more
        if self._count > MAX_VALUES:
            raise StopReading(Cause("too_many_values", begins(event), {"most": MAX_VALUES}))

    def _fault(self, code: str, event: yaml.Event | None, params: Params | None = None) -> None:
        offset = begins(event) if event else 0
        self.faults.append((self._pointer(), Cause(code, offset, params or {})))
        if len(self.faults) >= MAX_REPORTED:
            raise StopReading

    def _pointer(self) -> str:
        tokens = (
            str(len(frame.value)) if isinstance(frame.value, list) else frame.key for frame in self._stack
        )
        return "".join(f"/{escape(token)}" for token in tokens if token is not None)


def begins(event: yaml.Event) -> int:
    """Return the offset of what an event tells of."""
    return event.start_mark.index if event.start_mark else 0


def ends(event: yaml.Event) -> int:
    """Return the offset behind what an event tells of."""
    return event.end_mark.index if event.end_mark else 0


def copy_value(value: object) -> object:
    """Return `value` with lists and objects of its own."""
    if isinstance(value, dict):
        return {key: copy_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [copy_value(inner) for inner in value]
    return value


_BLOCK: Final = ("|", ">")
_TO_DASH: Final = compile_pattern(r"(?:\s++|#[^\r\n]*+|[&!]\S*+)*+")


@dataclass(slots=True, eq=False)
class YamlNode(Node):
    """One value: `key_end` is where its key ends; a list's elements in block style begin at their dash.

    `flow` tells that a list or object is written with brackets, `style` how a text is quoted.  An alias
    shows what it stands for among its members; `merges` are the values of merge keys (`<<`).
    """

    parent: YamlNode | None = None
    key_end: int = -1
    flow: bool = False
    style: str = ""
    alias: bool = False
    merges: list[YamlNode] = field(default_factory=list)

    def child(self, token: str) -> Node | None:
        """Return the member or element that a pointer's `token` names, merged ones last."""
        found = Node.child(self, token)
        if found is not None:
            return found
        sources = (source for merge in self.merges for source in (merge.items or [merge]))
        return next((found for source in sources if (found := source.child(token)) is not None), None)

    def own(self) -> list[YamlNode]:
        """Return the direct members or elements that are written here, in the order of the text."""
        own = [child for _token, child in self.children() if isinstance(child, YamlNode)]
        return sorted([*own, *self.merges], key=lambda node: node.key_start) if self.merges else own


@dataclass(slots=True)
class _Key:
    """The next value's key, and where it begins and ends."""

    name: str
    start: int
    end: int
    merging: bool


@dataclass(slots=True)
class _Open:
    """A list or object that is being read."""

    node: YamlNode
    anchor: str | None
    key: _Key | None = None


def trees(text: str, rules: YamlRules) -> list[YamlNode]:
    """Return the tree of every document of `text`."""
    return _Builder(text, rules).build()


class _Builder:
    def __init__(self, text: str, rules: YamlRules) -> None:
        self._text = text
        self._rules = rules
        self._stack: list[_Open] = []
        self._anchors: dict[str, YamlNode] = {}
        self._tops: list[YamlNode] = []

    def build(self) -> list[YamlNode]:
        """Take every event."""
        events: Iterator[yaml.Event] = yaml.parse(self._text, Loader=yaml.CBaseLoader)
        for event in events:
            self._take(event)
        return self._tops

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                known = self._anchors[event.anchor or ""]
                node = self._add_node(begins(event))
                node.end, node.alias = ends(event), True
                node.members, node.items, node.merges = known.members, known.items, known.merges
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end(event)
            case yaml.DocumentStartEvent():
                self._anchors.clear()

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        start, end = begins(event), ends(event)
        if event.style in _BLOCK:
            end = start + len(self._text[start:end].rstrip())
        top = self._stack[-1] if self._stack else None
        if top is not None and top.node.members is not None and top.key is None:
            plain = event.implicit[0]
            name = key_text(event.value, self._rules) if plain else event.value
            top.key = _Key(name, start, end, plain and event.value == MERGE)
            return
        node = self._add_node(start)
        node.end, node.style = end, event.style or ""
        if event.anchor:
            self._anchors[event.anchor] = node

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        node = self._add_node(begins(event))
        node.flow = bool(event.flow_style)
        if isinstance(event, yaml.MappingStartEvent):
            node.members = {}
        else:
            node.items = []
        self._stack.append(_Open(node, event.anchor))

    def _end(self, event: yaml.Event) -> None:
        done = self._stack.pop()
        own = done.node.own()
        done.node.end = max(child.end for child in own) if own else ends(event)
        if done.node.flow:
            done.node.end = ends(event)
        if done.anchor:
            self._anchors[done.anchor] = done.node

    def _add_node(self, start: int) -> YamlNode:
        """Return a new node, put where it belongs."""
        if not self._stack:
            node = YamlNode(start, start)
            self._tops.append(node)
            return node
        top = self._stack[-1]
        if top.node.items is not None:
            dash = start if top.node.flow else self._find_dash(top.node)
            node = YamlNode(start, dash, parent=top.node, key_end=dash + 1)
            top.node.items.append(node)
            return node
        key = top.key or _Key("", start, start, merging=False)
        top.key = None
        node = YamlNode(start, key.start, parent=top.node, key_end=key.end)
        if key.merging:
            top.node.merges.append(node)
        else:
            top.node.add(node, key.name)
        return node

    def _find_dash(self, parent: YamlNode) -> int:
        """Return the offset of the dash of a list's next element."""
        after = parent.items[-1].end if parent.items else parent.start
        found = _TO_DASH.match(self._text, after)
        return found.end() if found else after
