"""Every job file that stands on the vendors' pages we started from, as it is printed there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.spec import JobSpec

FOLDER: Final = Path(__file__).parent / "data" / "seeds"


@dataclass(frozen=True, slots=True)
class Seed:
    """One file: the number of its page, and the dialect that it is written in.

    `says` is in its log, where nothing is missing: its own first words, or the shell's about a program that
    is not here.  `lacks` is what a site does not have until an admin registers it.
    """

    page: str
    file: str
    dialect: str
    says: str = ""
    lacks: str = ""

    @property
    def text(self) -> str:
        """The file, byte for byte."""
        return (FOLDER / self.file).read_bytes().decode()

    @property
    def placeholder(self) -> str:
        """Return the manual's placeholder in its image, which no engine can pull; "" without one."""
        found = re.search("<[^<>]*>", self.spec.roles[0].image)
        return found[0] if found else ""

    @property
    def spec(self) -> JobSpec:
        """What it says."""
        return dialects.get(self.dialect).parse(Document(self.text)).spec

    def __str__(self) -> str:
        return f"{self.page}-{self.file}"


SEEDS: Final = (
    Seed("000", "dlc-sdk-public.json", "dlc", lacks="d-example"),
    Seed("000", "dlc-sdk-quota.json", "dlc", says="Hello World"),
    Seed("000", "tfjob.params", "dlc-params", says="good"),
    Seed("001", "dlc-tfjob.json", "dlc", lacks="code-****"),
    Seed("002", "helloworld.json", "openpai-v1", says="nvidia-smi"),
    Seed("002", "jupyter.json", "openpai-v1", says="jupyter"),
    Seed("003", "dlc-sdk-quota.json", "dlc", says="Hello World"),
    Seed("003", "dlc-sdk-spot-discount.json", "dlc", says="Hello World"),
    Seed("003", "dlc-sdk-spot-price.json", "dlc", says="Hello World"),
    Seed("003", "tfjob-one-line.params", "dlc-params", says="good"),
    Seed("004", "aihc-pytorchjob.json", "aihc", lacks="pfs-pxE6jz"),
)
"""By page: 000 and 003 create jobs by SDK and command line, 001 is `CreateJob`, 002 is SCM's, 004 AIHC's."""


def converted(seed: Seed, target: str) -> JobSpec:
    """What the seed's job says after it was written in `target`; AssertionError when that is no job file."""
    dialect = dialects.get(target)
    try:
        return dialect.parse(Document(dialect.render(seed.spec, {}).text)).spec
    except Refused as refused:
        raise AssertionError(f"{seed} as {target}: {refused.problems}") from refused
