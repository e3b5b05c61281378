"""The page of the vendors' APIs: how to point a client here, and how far each operation is supported."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs import dialects
from jobs.api.vendors import registry
from jobs.api.vendors.api import VendorApi
from jobs.api.vendors.operations import Operation, Parameter, Support
from tests.reference_pages.table import cell, code, table

INTRODUCTION = """\
# APIs for the vendors' clients

The console answers the APIs of PAI-DLC, PAI's workspace service, Baidu AIHC and OpenPAI as their own
clients call them: change the endpoint in a script, and its jobs run here. Rights, quotas, checks and the
audit trail are those of the pages. The console's own API is [the native one](api.md).

## Point a client here

Alibaba's and Baidu's clients sign their requests with an access key. Create one in *Settings*, or on the
console's machine, with the same `CONSOLE_HOME`:

    .venv/bin/python manage.py issue_access_key admin --scopes read submit stop admin

It prints `{"access_key_id": "…", "access_key_secret": "…"}` once. A key allows no more than its scopes and
its owner's rights; the tables name the scope of each operation. `HOST:PORT` is the console's address, such
as `127.0.0.1:8000`.

**PAI-DLC and the workspace service** (`alibabacloud_pai_dlc20201203`, `alibabacloud_aiworkspace20210204`):
the key is in `ALIBABA_CLOUD_ACCESS_KEY_ID` and `ALIBABA_CLOUD_ACCESS_KEY_SECRET`, or in the configuration.
`protocol` is `https` where the console has TLS.

    Config(credential=cred, region_id="cn-hangzhou", endpoint="HOST:PORT", protocol="http")

**Baidu AIHC** (`bce-python-sdk`, and the program `aihc` with `host = http://HOST:PORT` in
`~/.aihc/config`):

    BceClientConfiguration(credentials=BceCredentials("ID", "SECRET"), endpoint="http://HOST:PORT")

**OpenPAI** (`@microsoft/openpai-js-sdk`, `paicli`, `curl`): the REST server is at `/rest-server`. Clients
sign in with user name and password, or send an [access token](api.md#a-token) as `Authorization: Bearer …`.

    new PAIV2.OpenPAIClient({rest_server_uri: "HOST:PORT/rest-server", username, password, https: false})

- A WorkspaceId is the workspace's short name. A ResourceId, a queue or a virtual cluster is the quota's
  short name, or WORKSPACE/CLUSTER/QUOTA where several have that name.
- **Storage.** An address such as `nas://31a8e4.cn-hangzhou/` is a folder only at the vendor. To mount it
  here, an admin maps it, or all of `nas://`, to a folder (Administration › Storage) and allows
  that folder in `folders` ([folders of this machine](local-backend.md#folders-of-this-machine)). Until then
  jobs that mount it are refused.
- **Images.** The vendors' registries can only be reached from their clouds. On a cluster with a container
  engine, name another image, or load one under the vendor's name on the nodes (`podman tag`): what is there
  is not pulled. Without an engine the new console's cluster runs such jobs without their image, and marks
  them so ([images](local-backend.md#images)).

## Support

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
