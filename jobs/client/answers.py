"""Answers of the console as values; `data` has every field, also those that are newer than this client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self
from urllib.parse import unquote

from jobs.states import TERMINAL, State


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a request or its job file; `pointer` is the field, empty for the whole."""

    code: str
    message: str
    pointer: str = ""
    line: int | None = None
    column: int | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Return a problem of problem details."""
        names = ("code", "message", "pointer", "line", "column")
        return cls(**{name: data[name] for name in names if name in data})


_NAMES: Final = ("id", "name", "state", "owner", "workspace", "cluster", "quota")


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the console last described it."""

    id: str
    name: str
    state: str
    reason: str
    owner: str
    workspace: str
    cluster: str
    quota: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    data: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Return the job of an answer."""
        return cls(
            reason=data["reason"]["message"],
            created_at=datetime.fromisoformat(data["created_at"]),
            started_at=_time(data["started_at"]),
            ended_at=_time(data["ended_at"]),
            data=data,
            **{name: data[name] for name in _NAMES},
        )

    @property
    def is_ended(self) -> bool:
        """Tell whether it has ended."""
        return State(self.state) in TERMINAL

    @property
    def is_succeeded(self) -> bool:
        """Tell whether it has ended well."""
        return self.state == State.SUCCEEDED

    @property
    def exit_codes(self) -> Mapping[str, int | None]:
        """Return the exit code of each of its first replicas, by ROLE/INDEX; 128+n after signal n."""
        rows = self.data.get("tasks") or ()
        return {f"{row['role']}/{row['index']}": row["exit_code"] for row in rows}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A port that a replica serves; `url` opens it in a browser."""

    role: str
    index: int
    label: str
    url: str | None
    host: str
    port: int
    ready: bool

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Return the endpoint of an answer."""
        return cls(**{name: data[name] for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a replica's folder; `path` is what `list_files` and `download` take."""

    path: str
    name: str
    kind: str
    size: int | None
    modified: datetime | None

    @classmethod
    def of(cls, data: Mapping[str, Any], folder: str) -> Self:
        """Return an entry of `folder` of an answer."""
        path = f"{folder.rstrip('/')}/{unquote(data['key'])}".lstrip("/")
        return cls(path, data["name"], data["kind"], data["size"], _time(data["modified"]))


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
