"""Which fields of a dialect a sample of ours uses: every key of its text, without indexes."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from jobs.dialects import pairs
from jobs.dialects.document import Document
from jobs.dialects.field_map import FieldRow
from jobs.dialects.sbatch.header import read as read_script
from jobs.dialects.sbatch.secrets import read

SAMPLES = Path(__file__).parent / "samples"

_PARAMETER = re.compile(r"^([A-Za-z_]+)=(.*)$", re.MULTILINE)
_BY_NAME = frozenset({"taskRoles", "roles"})
"""Keys whose members, where they are no list, have names of the person's own."""

_PLACE = re.compile(r"\[[^\]]*\]")


def samples(name: str) -> dict[str, str]:
    """The samples of the dialect called `name`: file name → text."""
    return {path.name: path.read_text() for path in sorted((SAMPLES / name).glob("*"))}


def spellings(row: FieldRow) -> set[str]:
    """Every way in which the row's key is written, as a pointer without indexes."""
    plain = _PLACE.sub("", row.spelling)
    around = plain.rpartition("/")[0]
    return {plain, *(f"{around}/{alias}" for alias in row.aliases)}


def used(file_name: str, text: str) -> set[str]:
    """The keys of a text; JSON is read as the YAML that it also is."""
    if file_name.endswith(".params"):
        comments = {comment for comment in ("# dlc submit",) if comment in text}
        return comments.union(*(_inner(key, value) for key, value in _PARAMETER.findall(text)))
    if file_name.endswith(".sbatch"):
        return set(_of_script(text))
    return {pointer for document in yaml.safe_load_all(text) for pointer in _keys(document, "")}


def _of_script(text: str) -> Iterator[str]:
    """The options of a script, its parts, and what is said of its roles."""
    told = read(read_script(Document(text)))
    yield from ("/interpreter", "/script")
    yield from (f"/{argument.name}" for argument in read_script(Document(text)).arguments)
    for role in told.roles or ():
        yield from ("/role/name", "/role/command")
        said = {"fails": role.fails, "ends": role.ends, "env": role.env}
        yield from (f"/role/{name}" for name, value in said.items() if value)


def _inner(key: str, value: str) -> Iterator[str]:
    yield f"/{key}"
    yield from (f"/{key}/{name}" for name in pairs.parse(value))


def _keys(value: object, pointer: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{pointer}/{key}"
            named = key in _BY_NAME and isinstance(inner, dict)
            yield from _keys(list(inner.values()) if named else inner, f"{pointer}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner, pointer)
