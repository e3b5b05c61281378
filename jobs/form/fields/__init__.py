"""Every field of the form: its label, its help, and its JobSpec path.

A module for each part of the form.  The fields and their help follow the PAI-DLC page in both its editions
and the SCM manual; `source` names them.  `path` is a JSON pointer
into a JobSpec, with `*` for the number of a role; a field without one is read by the list that it
belongs to.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from jobs.form.fields.base import WAS, Field, FieldKind, Rows, Words
from jobs.form.fields.basic import BASIC, TAGS
from jobs.form.fields.environment import DATASETS, ENV, ENVIRONMENT, INIT_CONTAINERS, MOUNTS, SIDECARS
from jobs.form.fields.faults import FAULTS, ROLES
from jobs.form.fields.resources import ADVANCED, AFTER, NETWORK, PORTS, RESOURCES, RUNNING

__all__ = [
    "AFTER",
    "DATASETS",
    "ENV",
    "FIELDS",
    "INIT_CONTAINERS",
    "MOST_ROLES",
    "MOST_ROWS",
    "MOUNTS",
    "PORTS",
    "ROWS",
    "SIDECARS",
    "TAGS",
    "WAS",
    "Field",
    "FieldKind",
    "Rows",
    "Words",
]

FIELDS: Final = MappingProxyType(
    {
        each.key: each
        for each in (*BASIC, *ENVIRONMENT, *RESOURCES, *ADVANCED, *RUNNING, *NETWORK, *FAULTS, *ROLES)
    }
)
"""Every single field, by its key."""

ROWS: Final = MappingProxyType(
    {each.key: each for each in (TAGS, ENV, DATASETS, MOUNTS, INIT_CONTAINERS, SIDECARS, PORTS, AFTER)}
)
"""Every list of rows, by its key."""

MOST_ROWS: Final = 50
MOST_ROLES: Final = 16
"""A file with more of either is shown up to here, and the rest is in the file alone."""
