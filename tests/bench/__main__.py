"""`python -m tests.bench [--json] [--before COMMIT | PART …]`: measures, and judges nothing."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

import psutil
import pytest

from tests.bench import (
    accept,
    admission,
    before,
    curves,
    dialects,
    drawn,
    engines,
    form,
    logs,
    node,
    peers,
    reconcile,
    scale,
    screen,
    searches,
    slurm,
    uploads,
    vendors,
    viewers,
    watch,
    ways,
    weight,
)
from tests.bench.figures import Figure, table

PARTS: Final[Mapping[str, Callable[[], list[Figure]]]] = {
    "accept": accept.measure,
    "admission": admission.measure,
    "curves": curves.measure,
    "dialects": dialects.measure,
    "drawn": drawn.measure,
    "engines": engines.measure,
    "form": form.measure,
    "logs": logs.measure,
    "node": node.measure,
    "peers": peers.measure,
    "reconcile": reconcile.measure,
    "scale": scale.measure,
    "screen": screen.measure,
    "searches": searches.measure,
    "slurm": slurm.measure,
    "uploads": uploads.measure,
    "vendors": vendors.measure,
    "vendor_lists": vendors.measure_lists,
    "viewers": viewers.measure,
    "watch": watch.measure,
    "ways": ways.measure,
    "weight": weight.measure,
}

NOT_HERE: Final = ("jobs that dstack runs: it downloads the programs for that, which no package has",)
"""What no part can measure."""


def main() -> None:
    """Run the parts one after the other, print the table and what was left out."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--before", metavar="COMMIT", help="accept and check, beside those of a commit")
    options = parser.parse_args()
    if options.before:
        _tell(before.measure(options.before), ["anything else"], as_json=options.json)
        return
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    figures: list[Figure] = []
    left_out = [f"{name}: not asked for" for name in PARTS if options.parts and name not in options.parts]
    for name in options.parts or PARTS:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        try:
            figures += PARTS[name]()
        except (Exception, pytest.skip.Exception) as problem:  # noqa: BLE001  # the others are measured all the same
            left_out.append(f"{name}: {str(problem) or type(problem).__name__}")
    _tell(figures, [*left_out, *NOT_HERE], as_json=options.json)


def _tell(figures: list[Figure], left_out: list[str], *, as_json: bool) -> None:
    if as_json:
        shown = {
            "machine": _machine(),
            "figures": [each.to_json() for each in figures],
            "not_measured": left_out,
        }
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    print(f"{_machine()}, {time.strftime('%Y-%m-%d')}\n\n{table(figures)}\n\nNot measured:")
    print("\n".join(f"- {each}" for each in left_out))


def _machine() -> str:
    memory = round(psutil.virtual_memory().total / 2**30)
    database = "PostgreSQL" if os.environ.get("DATABASE_URL") else "SQLite"
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, {memory} GiB, {platform.system()}, Python {platform.python_version()}, "
        f"{database}, load {load:.1f} when it ended"
    )


if __name__ == "__main__":
    main()
