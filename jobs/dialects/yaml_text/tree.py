"""Where everything stands in a YAML text: a tree of offsets, built only when somebody asks.

The text has been read before (`values`), so that neither depth nor aliases need looking after here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

from jobs.dialects.patterns import compile_pattern
from jobs.dialects.spans import Node
from jobs.dialects.yaml_text.rules import MERGE, Rules, key_text
from jobs.dialects.yaml_text.values import begins, ends

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
        """The member or element that a pointer's `token` names, merged ones last."""
        found = Node.child(self, token)
        if found is not None:
            return found
        sources = (source for merge in self.merges for source in (merge.items or [merge]))
        return next((found for source in sources if (found := source.child(token)) is not None), None)

    def own(self) -> list[YamlNode]:
        """The direct members or elements that are written here, in the order of the text."""
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


def trees(text: str, rules: Rules) -> list[YamlNode]:
    """The tree of every document of `text`."""
    return _Builder(text, rules).build()


class _Builder:
    def __init__(self, text: str, rules: Rules) -> None:
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
                node = self._added(begins(event))
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
        node = self._added(start)
        node.end, node.style = end, event.style or ""
        if event.anchor:
            self._anchors[event.anchor] = node

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        node = self._added(begins(event))
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

    def _added(self, start: int) -> YamlNode:
        """A new node, put where it belongs."""
        if not self._stack:
            node = YamlNode(start, start)
            self._tops.append(node)
            return node
        top = self._stack[-1]
        if top.node.items is not None:
            dash = start if top.node.flow else self._dash(top.node)
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

    def _dash(self, parent: YamlNode) -> int:
        """Where the dash of the next element of a list stands."""
        after = parent.items[-1].end if parent.items else parent.start
        found = _TO_DASH.match(self._text, after)
        return found.end() if found else after
