"""The page that compares the backends: the contract's tests, optional abilities, and each field of a job."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from console.documentation.reference.spec_paths import list_paths
from console.documentation.reference.table import cell, code, table
from jobs.backends import accounts, base, measures, origins, registry, sessions
from jobs.backends.support import Fate, find_support
from tests.jobs.backends.benches import CONTRACT_BENCHES

INTRODUCTION: Final = """\
# Comparison of the backends

What each backend does, row by row. `make docs` makes this page.

## What every backend does

The tests of `tests/jobs/backends/test_contract.py`, and the backends on whose real engine each of them runs.
"""

ABILITIES_HEAD: Final = """\
## What only some can do

`jobs/backends/base.py` and its neighbours have a protocol for each of these; a backend has the ability if it
has the protocol's methods.
"""

FIELDS_HEAD: Final = """\
## Fields of a job

**yes**: the job has it, or the console sees to it. *Nearly*: something near to it. *Refused*: a job that asks
for it is not taken. Kept: it stays in the file, for export. `backends-fields.md` also names the tests.
"""

CONTRACT: Final = Path(base.__file__).parents[2] / "tests/jobs/backends/test_contract.py"

_POLLED: Final = "the console asks at intervals"
_ONE_BY_ONE: Final = "one submission after the other"
_ONCE_BY_CLAIM: Final = "a claim file lets an attempt begin once"
_NO_ACCOUNTS: Final = "the engine keeps no accounts"
_NOT_MEASURED: Final = "the console asks no source of metrics there"
_NO_KERNEL_LOG: Final = "the console does not read the log of the nodes' kernels"
_BY_RELAY: Final = "the nodes deliver logs by the relay"


@dataclass(frozen=True, slots=True)
class Ability:
    """An optional ability: the protocols of which a backend needs one, and why others lack it."""

    label: str
    protocols: tuple[type, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    is_inverted: bool = False
    """The backends without the protocol are those that can do it."""

    def has(self, backend: type) -> bool:
        """Tell whether a backend of this class can do it."""
        return self.is_inverted != any(_implements(backend, each) for each in self.protocols)


ABILITIES: Final = (
    Ability("Preview of what is submitted", (base.Rendering,)),
    Ability("Dry run", (base.Trying,)),
    Ability(
        "Test of the cluster's prerequisites",
        (base.Checking,),
        {"local": "`job-console-server doctor` tests this machine"},
    ),
    Ability("Terminals, files, port forwarding and endpoints of running replicas", (sessions.Enterable,)),
    Ability(
        "Jobs of others are listed",
        (origins.LiveAttempts,),
        {"local": "what others run on the machine is no job"},
        is_inverted=True,
    ),
    Ability(
        "Changes are noticed at once",
        (base.Watching, base.Following),
        {"ray": _POLLED, "slurm": _POLLED},
    ),
    Ability(
        "Logs are copied by a process of the console",
        (base.Following,),
        {
            "local": "logs are files of this machine",
            "ray": _BY_RELAY,
            "slurm": f"logs are files of a shared folder, or {_BY_RELAY}",
        },
    ),
    Ability(
        "Several submissions at the same time",
        (base.ConcurrentSubmission,),
        {"local": _ONE_BY_ONE, "ray": _ONE_BY_ONE},
    ),
    Ability(
        "Jobs are held until their handle is recorded",
        (base.HeldSubmission,),
        {"local": _ONCE_BY_CLAIM, "ray": "Ray takes a submission ID once"},
    ),
    Ability(
        "The time limit of a running job can be moved",
        (base.Extending,),
        {
            "kubernetes": "a pod's `activeDeadlineSeconds` can only become smaller",
            "ray": "the limit is set when the job begins",
            "slurm": "Slurm lets only operators raise a limit",
        },
    ),
    Ability(
        "A failed replica is restarted alone",
        (base.RestartingReplicas,),
        {"kubernetes": "the whole job is restarted"},
    ),
    Ability(
        "Elastic jobs grow after a checkpoint",
        (base.Checkpointing,),
        {
            "kubernetes": "checkpoints are in a volume that only the job's pods mount",
            "slurm": "the console does not look at what jobs have saved there",
        },
    ),
    Ability(
        "Credentials of a role by a file that is renewed",
        (base.CredentialFiles,),
        {
            "kubernetes": "jobs with a role are refused",
            "local": "the job's network, or a server beside it, gives them",
            "ray": "jobs with a role are refused",
        },
    ),
    Ability(
        "Usage of running jobs",
        (measures.Measuring, measures.MeasuredElsewhere),
        {"kubernetes": _NOT_MEASURED, "ray": _NOT_MEASURED},
    ),
    Ability(
        "Usage by a Prometheus of the site",
        (measures.MeasuredElsewhere,),
        {
            "kubernetes": _NOT_MEASURED,
            "local": "the console measures by itself",
            "ray": _NOT_MEASURED,
        },
    ),
    Ability(
        "Usage of ended jobs from the engine's accounting",
        (measures.Accounted,),
        {"kubernetes": _NO_ACCOUNTS, "local": "the console measures by itself", "ray": _NO_ACCOUNTS},
    ),
    Ability(
        "Faults of GPUs from the kernel's log",
        (measures.KernelLogging,),
        {"kubernetes": _NO_KERNEL_LOG, "ray": _NO_KERNEL_LOG, "slurm": _NO_KERNEL_LOG},
    ),
    Ability(
        "Quotas from the engine's accounts",
        (accounts.Accounting,),
        {"kubernetes": _NO_ACCOUNTS, "local": _NO_ACCOUNTS, "ray": _NO_ACCOUNTS},
    ),
    Ability("Jobs that a restored database does not know are found", (origins.OriginReader,)),
)

_FATES: Final = {
    Fate.HONOURED: "**yes**",
    Fate.CONSOLE: "**yes**",
    Fate.APPROXIMATED: "*nearly*",
    Fate.REFUSED: "*refused*",
    Fate.KEPT: "kept",
}


def page() -> str:
    """Return the whole page."""
    names = registry.names()
    return "\n".join(
        (
            INTRODUCTION,
            table(("promise", *names), _contract_rows()),
            ABILITIES_HEAD,
            table(("ability", *names), _ability_rows()),
            FIELDS_HEAD,
            table(("field", *names), _field_rows()),
        )
    )


def contract_tests() -> list[str]:
    """Return the names of the contract's tests, in their order."""
    tree = ast.parse(CONTRACT.read_text(encoding="utf-8"))
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return [name for name in functions if name.startswith("test_")]


def find_unexplained() -> Iterator[str]:
    """Yield a sentence for each ability that a backend lacks without a reason, or has with one."""
    for ability, backend in ((each, name) for each in ABILITIES for name in registry.names()):
        if ability.has(registry.find(backend).backend) == (backend in ability.reasons):
            yield f"The page has to say why {backend} lacks “{ability.label}”, and only if it does."


def _contract_rows() -> Iterator[tuple[str, ...]]:
    for name in contract_tests():
        sentence = name.removeprefix("test_").replace("_", " ").capitalize()
        yield sentence, *("yes" if CONTRACT_BENCHES.get(each) else "" for each in registry.names())


def _ability_rows() -> Iterator[tuple[str, ...]]:
    """Yield the abilities, after what the engine itself decides."""
    yield _classes("Schedules jobs itself", lambda backend: backend.has_scheduler, "the console does")
    yield _classes(
        "Resources of an ended replica are free while the others run",
        lambda backend: backend.can_shrink,
        "the engine keeps them until the job ends",
    )
    for ability in ABILITIES:
        cells = (
            "yes" if ability.has(registry.find(each).backend) else f"no: {ability.reasons.get(each, '')}"
            for each in registry.names()
        )
        yield ability.label, *cells


def _classes(label: str, can: Callable[[type[base.Backend]], object], otherwise: str) -> tuple[str, ...]:
    able = (bool(can(registry.find(each).backend)) for each in registry.names())
    return label, *("yes" if each else f"no: {otherwise}" for each in able)


def _field_rows() -> Iterator[tuple[str, ...]]:
    tables = {name: registry.find(name).support for name in registry.names()}
    for path, _default in list_paths():
        cells = []
        for support in tables.values():
            found = find_support(support, path)
            why = f": {cell(found.why)}" if found and found.why else ""
            cells.append(f"{_FATES[found.fate]}{why}" if found else "")
        yield code(path), *cells


def _implements(backend: type, protocol: type) -> bool:
    """Tell whether a class has all members of a protocol; `issubclass` refuses those with properties."""
    return all(hasattr(backend, name) for name in vars(protocol) if not name.startswith("_"))
