"""Data, code, network and libraries of a `CreateJob` request."""

from __future__ import annotations

import json

from jobs.dialects.dlc import keys
from jobs.dialects.dlc.limits import PAGE
from jobs.dialects.request import Request
from jobs.dialects.variables import as_text
from jobs.spec import CodeSource, Mount, Network, Requirements


def mounts(job: Request) -> tuple[Mount, ...]:
    """The datasets and directly mounted places; DLC does not say which are for output."""
    found = (_mount(source) for source in job.requests(keys.DATA_SOURCES))
    return tuple(mount for mount in found if mount)


def _mount(source: Request) -> Mount | None:
    known, uri = source.text(keys.DATA_SOURCE_ID), source.text(keys.DATA_URI)
    path, options = source.text(keys.DATA_PATH), _options(source)
    read_only = source.meaning(keys.DATA_ACCESS) == "ro"
    if not (known or uri):
        where = source.at(keys.DATA_SOURCE_ID.key)
        source.findings.problem("required", where, PAGE, key=keys.DATA_SOURCE_ID.key)
        return None
    return Mount(id=known, uri=uri, path=path, options=options, read_only=read_only)


def _options(source: Request) -> dict[str, str]:
    """The options of one mount; what is no JSON object is kept for DLC."""
    text = source.text(keys.DATA_OPTIONS)
    if not text:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return {name: as_text(item) for name, item in value.items()} if isinstance(value, dict) else {}


def code(job: Request) -> CodeSource | None:
    """The registered code source."""
    group = job.group(keys.CODE_SOURCE)
    known = group.text(keys.CODE_SOURCE_ID)
    branch, commit, path = (group.text(rule) for rule in (keys.CODE_BRANCH, keys.CODE_COMMIT, keys.CODE_PATH))
    if known:
        return CodeSource(id=known, branch=branch, commit=commit, path=path)
    if branch or commit or path:
        where = group.at(keys.CODE_SOURCE_ID.key)
        job.findings.problem("required", where, PAGE, key=keys.CODE_SOURCE_ID.key)
    return None


def network(job: Request) -> Network:
    """The virtual network."""
    group = job.group(keys.USER_VPC)
    return Network(
        vpc=group.text(keys.VPC_ID),
        switch=group.text(keys.SWITCH_ID),
        security_group=group.text(keys.SECURITY_GROUP_ID),
        cidrs=group.texts(keys.EXTENDED_CIDRS),
        gateway=group.text(keys.DEFAULT_ROUTE),
    )


def requirements(job: Request) -> Requirements:
    """Python packages to install."""
    return Requirements(packages=job.texts(keys.LIBRARIES), directory=job.text(keys.LIBRARY_DIR))
