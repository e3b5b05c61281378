"""Every field of the form: what it is called, what it means, and which JobSpec path it fills.

A module for each part of the form.  The fields and their help follow the PAI-DLC page in both its editions
(seeds 000 and 003) and the SCM manual (seed 002, section 2); `source` says which.  `path` is a JSON pointer
into a JobSpec, with `*` for the number of a task role; a field without one is read by the list that it
belongs to.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from jobs.form.fields.advanced import ADVANCED
from jobs.form.fields.base import WAS, Field, Kind, Rows, Words
from jobs.form.fields.basic import BASIC, TAGS
from jobs.form.fields.data import DATASETS, MOUNTS
from jobs.form.fields.environment import ENV, ENVIRONMENT
from jobs.form.fields.faults import FAULTS
from jobs.form.fields.network import NETWORK
from jobs.form.fields.resources import PORTS, RESOURCES
from jobs.form.fields.roles import ROLES
from jobs.form.fields.running import AFTER, RUNNING

__all__ = [
    "AFTER",
    "DATASETS",
    "ENV",
    "FIELDS",
    "MOST_ROLES",
    "MOST_ROWS",
    "MOUNTS",
    "PORTS",
    "ROWS",
    "TAGS",
    "WAS",
    "Field",
    "Kind",
    "Rows",
    "Words",
]

FIELDS: Final = MappingProxyType(
    {
        each.key: each
        for each in (*BASIC, *ENVIRONMENT, *RESOURCES, *ADVANCED, *RUNNING, *NETWORK, *FAULTS, *ROLES)
    }
)
"""Every field that stands by itself, by its key."""

ROWS: Final = MappingProxyType({each.key: each for each in (TAGS, ENV, DATASETS, MOUNTS, PORTS, AFTER)})
"""Every list of rows, by its key."""

MOST_ROWS: Final = 50
MOST_ROLES: Final = 16
"""A file with more of either is shown up to here, and the rest is in the file alone."""
