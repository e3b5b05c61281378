"""`python -m tests.fuzz.one AGAIN DIALECT [libFuzzer's options]`: one dialect, until its time is over.

AGAIN is a program that does the same: libFuzzer starts it to find out which texts are needed.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["jobs.dialects", "jobs.spec"]):
    from jobs import dialects
    from tests.fuzz.target import try_text

    AGAIN, NAME, *OPTIONS = sys.argv[1:]
    dialects.get(NAME)


def test_one_input(data: bytes) -> None:
    """One text, as an upload would bring it."""
    try_text(NAME, data.decode(errors="replace"))


if __name__ == "__main__":
    atheris.Setup([AGAIN, *OPTIONS], test_one_input)
    atheris.Fuzz()
