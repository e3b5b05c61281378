"""Typed settings from environment variables, which describe themselves for `manage.py settings_table`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class EnvError(ValueError):
    """A variable holds what cannot be used; the message is one sentence that names the variable."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One row of the settings table."""

    name: str
    kind: str
    default: str
    about: str
    group: str


class Env:
    """Reads variables from `source` and remembers each one that was asked for, in order.

    A variable that is absent or empty has its default. Every method raises `EnvError` for what makes no
    sense.
    """

    def __init__(self, source: Mapping[str, str]) -> None:
        self.variables: dict[str, Variable] = {}
        self._source = source
        self._group = ""

    def group(self, title: str) -> None:
        """The variables that follow stand under this heading in the table."""
        self._group = title

    def text(self, name: str, default: str, about: str, *, shown: str | None = None) -> str:
        """Any text. `shown` stands in the table when the default differs between machines."""
        return self._read(name, "text", default, default if shown is None else shown, about, str)

    def choice(self, name: str, default: str, about: str, *, of: tuple[str, ...]) -> str:
        """One of the words in `of`."""

        def parse(raw: str) -> str:
            if raw not in of:
                raise ValueError(f"one of {', '.join(of)}")
            return raw

        return self._read(name, " or ".join(of), default, default, about, parse)

    def flag(self, name: str, default: bool, about: str) -> bool:
        """1, true, yes, on or 0, false, no, off, in any case."""

        def parse(raw: str) -> bool:
            word = raw.lower()
            if word not in _TRUE | _FALSE:
                raise ValueError("1 or 0")
            return word in _TRUE

        return self._read(name, "1 or 0", default, str(int(default)), about, parse)

    def integer(
        self,
        name: str,
        default: int,
        about: str,
        *,
        unit: str = "",
        least: int = 0,
        most: int | None = None,
    ) -> int:
        """A whole number between `least` and `most`, both allowed; `unit` is shown in the table."""

        def parse(raw: str) -> int:
            value = int(raw) if raw.lstrip("+-").isdecimal() else None
            if value is None or value < least or (most is not None and value > most):
                raise ValueError(
                    f"a whole number of at least {least}" + (f" and at most {most}" if most else "")
                )
            return value

        return self._read(name, unit or "number", default, str(default), about, parse)

    def seconds(self, name: str, default: float, about: str, *, least: float = 0.0) -> float:
        """A length of time in seconds; fractions are allowed."""

        def parse(raw: str) -> float:
            try:
                value = float(raw)
            except ValueError:
                value = -1.0
            if not least <= value < float("inf"):
                raise ValueError(f"a number of seconds, at least {least:g}")
            return value

        return self._read(name, "seconds", default, f"{default:g}", about, parse)

    def words(self, name: str, default: tuple[str, ...], about: str) -> list[str]:
        """A list, separated by commas; blanks around the items do not count."""

        def parse(raw: str) -> list[str]:
            return [word.strip() for word in raw.split(",") if word.strip()]

        return self._read(name, "list", list(default), ",".join(default), about, parse)

    def networks(self, name: str, about: str) -> list[str]:
        """Read IP addresses and networks, separated by commas; none by default."""

        def parse(raw: str) -> list[str]:
            found = [word.strip() for word in raw.split(",") if word.strip()]
            try:
                for each in found:
                    ip_network(each)
            except ValueError as problem:
                raise ValueError("IP addresses and networks, separated by commas") from problem
            return found

        return self._read(name, "list", [], "", about, parse)

    def mapping(self, name: str, about: str) -> dict[str, Any]:
        """A JSON object; nothing by default."""

        def parse(raw: str) -> dict[str, Any]:
            try:
                value = json.loads(raw)
            except ValueError:
                value = None
            if not isinstance(value, dict):
                raise ValueError("a JSON object")  # noqa: TRY004  # it is about the text
            return value

        return self._read(name, "JSON object", {}, "", about, parse)

    def path(self, name: str, default: Path, about: str, *, shown: str | None = None) -> Path:
        """A file or folder, made absolute; `~` is the home folder."""

        def parse(raw: str) -> Path:
            return Path(raw).expanduser().absolute()

        return self._read(name, "path", default, shown or str(default), about, parse)

    def secret(self, name: str, default: str, about: str, *, shown: str = "") -> str:
        """A secret: from NAME, or from the file that NAME_FILE names, with blanks at both ends taken off."""
        file_name = f"{name}_FILE"
        in_file = self._source.get(file_name, "")
        if in_file and self._source.get(name):
            raise EnvError(f"{name} and {file_name} are both set; keep one of them.")
        value = self._read(name, f"secret, or {file_name}", default, shown, about, str)
        if not in_file:
            return value
        try:
            return Path(in_file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise EnvError(f"{file_name} names {in_file}, which cannot be read: {problem}.") from problem

    def secrets(self, name: str, about: str) -> dict[str, str]:
        """Secrets by name, as a JSON object of texts: from NAME, or from the file that NAME_FILE names."""
        raw = self.secret(name, "", about)
        if not raw:
            return {}
        try:
            value = json.loads(raw)
        except ValueError:
            value = None
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            raise EnvError(f"{name} must be a JSON object of texts.")  # never with the value: it is a secret
        return value

    def _read(
        self,
        name: str,
        kind: str,
        default: T,
        shown: str,
        about: str,
        parse: Callable[[str], T],
    ) -> T:
        self.variables[name] = Variable(name, kind, shown, about, self._group)
        raw = self._source.get(name, "").strip()
        if not raw:
            return default
        try:
            return parse(raw)
        except ValueError as problem:
            raise EnvError(f"{name} must be {problem}, not {raw!r}.") from problem
