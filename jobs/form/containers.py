"""Init containers and sidecars of a role ↔ rows of the form.

A row shows command and arguments as one list of words, since that is what runs.  Arguments of the image's own
command and the working folder have no field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.form.fields import Rows

Container = Mapping[str, Any]
"""A PodContainer taken apart."""


def member_of(rows: Rows) -> str:
    """Return the member of a role that the rows are about."""
    return rows.path.rpartition("/")[2]


def shown_values(container: Container) -> dict[str, Any]:
    """Return the values of a container that its row shows, by cell."""
    command = tuple(container["command"])
    words = (*command, *container["args"]) if command else ()
    return {"name": container["name"], "image": container["image"], "command": words, "env": container["env"]}


def merge_row(container: Container | None, cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the container with the values of its row; a new one for None."""
    values = {key: value for key, value in cells.items() if key != "was"}
    if container is None:
        return values
    if values["command"] == shown_values(container)["command"]:
        del values["command"]
    elif container["command"]:
        values["args"] = ()
    return {**container, **values}


def shown_part(container: Container) -> dict[str, Any]:
    """Return the container without what its row does not show."""
    args = container["args"] if container["command"] else ()
    return {**container, "args": args, "working_dir": ""}
