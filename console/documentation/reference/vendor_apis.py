"""The page of the vendors' APIs: how far each operation is supported."""

from __future__ import annotations

import re
from collections.abc import Iterator

from console.documentation.reference.table import cell, code, table
from jobs import dialects
from jobs.api.vendors import registry
from jobs.api.vendors.api import VendorApi
from jobs.api.vendors.operations import Operation, Parameter, Support

INTRODUCTION = """\
# Operations of the vendors' APIs

Every operation of the APIs of PAI-DLC, PAI's workspace service, Baidu AIHC and OpenPAI, and how far it is
supported. The page "APIs for the vendors' clients" (compatible-apis.md) says how to point a client here.

| support | meaning |
|---|---|
| **answered** | as the vendor documents it |
| answered in part | the note says what differs |
| *accepted without effect* | the note says why |
| *refused* | with the vendor's error for unsupported operations, and the note as its message |

Fields that are not listed are answered. *Since* is the first release of the client that has the operation.
"""

OPERATION_HEAD = ("operation", "request", "scope", "since", "support", "note")
FIELD_HEAD = ("operation", "field", "support", "note")
KEPT = "kept with the job"
KEPT_NOTE = "Part of the job file, for export; not executed."
NETWORK_KEYS = ("createSvcForAllWorkers", "customPortList", "customPortNumPerWorker")
NETWORK_NOTE = "Applied where jobs have networks of their own; elsewhere for export."

_SHOWN = {
    Support.FULL: f"**{Support.FULL.value}**",
    Support.PARTIAL: Support.PARTIAL.value,
    Support.IGNORED: f"*{Support.IGNORED.value}*",
    Support.REFUSED: f"*{Support.REFUSED.value}*",
}


def page() -> str:
    """Return the whole page."""
    return "\n".join((INTRODUCTION, *(_section(api) for api in registry.APIS if api.operations)))


def _section(api: VendorApi) -> str:
    fields = [row for operation in api.operations for row in _fields(operation)]
    parts = [
        f"## {api.name} {api.version}".rstrip(),
        "",
        table(OPERATION_HEAD, (_operation(api, each) for each in api.operations)),
    ]
    if fields:
        parts += [f"### Fields of {api.name} {api.version}".rstrip(), "", table(FIELD_HEAD, fields)]
    return "\n".join(parts)


def _operation(api: VendorApi, operation: Operation) -> tuple[str, ...]:
    return (
        code(operation.name),
        code(f"{operation.method} {_address(api, operation)}"),
        operation.scope or "none",
        operation.since,
        _SHOWN[operation.support],
        cell(operation.note),
    )


def _address(api: VendorApi, operation: Operation) -> str:
    """Return the address of an operation, with its variables as `{name}`."""
    if not api.prefixes:
        return f"/?action={operation.name}"
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", operation.path)


def _fields(operation: Operation) -> Iterator[tuple[str, ...]]:
    """Yield a row for each field that is not fully supported, and for each key that a job file only keeps."""
    name = code(operation.name)
    for path, parameter in _walk(operation.parameters):
        if parameter.support is not Support.FULL:
            yield name, code(path), _SHOWN[parameter.support], cell(parameter.note)
    for row in dialects.fields(operation.format) if operation.format else ():
        if row.spelling.endswith(NETWORK_KEYS):
            yield name, code(row.spelling), _SHOWN[Support.PARTIAL], NETWORK_NOTE
        elif not row.path:
            yield name, code(row.spelling), KEPT, KEPT_NOTE


def _walk(parameters: tuple[Parameter, ...], around: str = "") -> Iterator[tuple[str, Parameter]]:
    for each in parameters:
        path = f"{around}.{each.name}" if around else each.name
        yield path, each
        yield from _walk(each.fields, path)
