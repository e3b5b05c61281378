"""How a value of a JobSpec is written in a form's field, and read from it.

For every measure `read(show(value)) == value`; what people write for it may be looser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final, Protocol

from jobs.dialects.amounts import parse_prose
from jobs.dialects.fields import Quantity

Params = Mapping[str, str | int]

ON: Final = "on"
MIB_PER_GIB: Final = 1024
MOST_DIGITS: Final = 9
GREATEST: Final = Decimal(10) ** 15
_SHELL: Final = ("sh", "-c")
_PAIR: Final = re.compile(r"\s*([^=\s][^=]*?)\s*=(.*)", re.DOTALL)


class InvalidValue(Exception):
    """A typed text is no valid value; `code` is a sentence of `jobs.messages.form_fields`."""

    def __init__(self, code: str, **params: str | int) -> None:
        super().__init__(code)
        self.code = code
        self.params: Params = params


class Measure(Protocol):
    """A way of writing values in a field."""

    def show(self, value: Any) -> str:
        """The value as the field shows it; "" for none."""

    def read(self, text: str) -> Any:
        """The value that was typed.  Raises Wrong."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text.  `fits` is its pattern, `wrong` the code of the problem otherwise.

    `none` stands for an empty field.
    """

    fits: str = ""
    wrong: str = "bad_text"
    longest: int = 0
    required: bool = False
    strip: bool = True
    none: Any = ""

    def show(self, value: Any) -> str:
        return "" if value is None else str(value)

    def read(self, text: str) -> Any:
        text = text.strip() if self.strip else text
        if not text.strip():
            if self.required:
                raise InvalidValue("needed")
            return text or self.none
        if self.longest and len(text) > self.longest:
            raise InvalidValue("too_long", most=self.longest)
        if self.fits and not re.fullmatch(self.fits, text):
            raise InvalidValue(self.wrong, value=text)
        return text


@dataclass(frozen=True, slots=True)
class Number:
    """A number in the form's unit, `scale` of which are one of the JobSpec's: 1000 milli-CPU are a core.

    The bounds are the JobSpec's.  `none` stands for an empty field; without it one is needed.
    """

    scale: int = 1
    least: int = 0
    most: int | None = None
    none: int | None = None
    optional: bool = False

    def show(self, value: Any) -> str:
        """As few digits as it takes to read the value again."""
        if value is None or (self.optional and value == self.none):
            return ""
        shown = Decimal(0)
        for digits in range(MOST_DIGITS):
            shown = (Decimal(value) / self.scale).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
            if self._whole(shown) == value:
                break
        return f"{shown.normalize():f}" if shown else "0"

    def read(self, text: str) -> Any:
        text = text.strip()
        if not text:
            if self.optional:
                return self.none
            raise InvalidValue("needed")
        try:
            number = Decimal(text.replace(",", ".") if self.scale > 1 else text)
        except InvalidOperation:
            raise InvalidValue("no_number", value=text) from None
        if not number.is_finite() or abs(number) > GREATEST:
            raise InvalidValue("no_number", value=text)
        if self.scale == 1 and number != number.to_integral_value():
            raise InvalidValue("not_whole", value=text)
        value = self._whole(number)
        if value < self.least:
            raise InvalidValue("too_small", least=self.show(self.least))
        if self.most is not None and value > self.most:
            raise InvalidValue("too_great", most=self.show(self.most))
        return value

    def _whole(self, number: Decimal) -> int:
        return int((number * self.scale).to_integral_value(ROUND_HALF_UP))


@dataclass(frozen=True, slots=True)
class MemorySize(Number):
    """MiB, written in GiB or with a unit: `64 MiB`, `2 GiB`, `16GB`; `named` shows the unit too."""

    scale: int = MIB_PER_GIB
    named: bool = False

    def show(self, value: Any) -> str:
        if not self.named or value is None or (self.optional and value == self.none):
            return Number.show(self, value)
        return f"{value} MiB" if value % MIB_PER_GIB else f"{value // MIB_PER_GIB} GiB"

    def read(self, text: str) -> Any:
        mib = parse_prose(text.strip().replace(",", "."), Quantity.MEMORY, "Gi")
        return Number.read(self, text if mib is None else str(mib / self.scale))


@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no."""

    def show(self, value: Any) -> str:
        return ON if value else ""

    def read(self, text: str) -> Any:
        return bool(text)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of `options` (posted text → value)."""

    options: Mapping[str, Any] = field(default_factory=dict)

    def show(self, value: Any) -> str:
        for posted, meant in self.options.items():
            if meant == value:
                return posted
        return str(value.value if isinstance(value, Enum) else value)

    def read(self, text: str) -> Any:
        if text not in self.options:
            raise InvalidValue("no_option", value=text)
        return self.options[text]


@dataclass(frozen=True, slots=True)
class Lines:
    """A list: one element a line; `loosely` commas part them too."""

    loosely: bool = False

    def show(self, value: Any) -> str:
        return "\n".join(value)

    def read(self, text: str) -> Any:
        parts = re.split(r"[\n,]" if self.loosely else r"\n", text.replace("\r\n", "\n"))
        return tuple(part.strip() for part in parts if part.strip())


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and values: `name=value`, one a line, or a JSON object; `loosely` commas part them too."""

    loosely: bool = True

    def show(self, value: Any) -> str:
        """One a line, or JSON where a value would not survive that."""
        lines = "\n".join(f"{name}={text}" for name, text in value.items())
        try:
            survives = list(self.read(lines).items()) == list(value.items())
        except InvalidValue:
            survives = False
        return lines if survives else json.dumps(value, ensure_ascii=False)

    def read(self, text: str) -> Any:
        text = text.replace("\r\n", "\n").strip()
        if text.startswith("{"):
            return self._object(text)
        by_commas = self.loosely and "\n" not in text and text.count("=") > 1
        parts = text.split("," if by_commas else "\n")
        found: dict[str, str] = {}
        for part in filter(str.strip, parts):
            pair = _PAIR.fullmatch(part)
            if pair is None:
                raise InvalidValue("no_pair", value=part.strip())
            found[pair[1]] = pair[2].strip()
        return found

    def _object(self, text: str) -> dict[str, str]:
        try:
            value = json.loads(text)
        except ValueError:
            raise InvalidValue("no_json") from None
        if not isinstance(value, dict):
            raise InvalidValue("no_json")
        return {name: each if isinstance(each, str) else json.dumps(each) for name, each in value.items()}


@dataclass(frozen=True, slots=True)
class CommandWords:
    """The words of a command: a JSON list of them, or a text that `sh -c` runs.

    Source: the two forms of CMD in a Dockerfile.
    """

    def show(self, value: Any) -> str:
        words = tuple(value)
        if len(words) == 3 and self.read(words[2]) == words:
            return str(words[2])
        return json.dumps(words, ensure_ascii=False) if words else ""

    def read(self, text: str) -> Any:
        if not text.strip():
            return ()
        words = self._list(text) if text.lstrip().startswith("[") else None
        if words is None and text.lstrip().startswith('["'):
            raise InvalidValue("no_words")
        return (*_SHELL, text) if words is None else words

    @staticmethod
    def _list(text: str) -> tuple[str, ...] | None:
        """Return the words of a JSON list; None for anything else, such as the shell's `[ -f file ]`."""
        try:
            words = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return tuple(words) if all(isinstance(word, str) for word in words) else None
