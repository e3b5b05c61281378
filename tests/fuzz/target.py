"""What is tried with each text, by the fuzzer and again by the test of its corpus."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document

CORPUS: Final = Path(__file__).parent / "corpus"
MOST_CPU_S: Final = 1.0
"""For texts of a few KiB: far more than any needs, and far less than a hang."""


MOST_MEMORY: Final = 64 * 2**20
"""Bytes that a text may take beside itself."""


class SlowError(Exception):
    """A text took too long."""


def try_text(name: str, text: str) -> bool:
    """Whether the dialect called `name` accepts `text`.

    Anything but a refusal comes out as it is.  What is accepted stays byte for byte when nothing is changed,
    and says the same when it is written anew.
    """
    dialect = dialects.get(name)
    begun = time.process_time()
    dialect.sniff(Document(text))
    try:
        parsed = dialect.parse(Document(text))
    except Refused:
        return False
    finally:
        taken = time.process_time() - begun
        if taken > MOST_CPU_S:
            raise SlowError(f"{taken:.1f} s")
    assert dialect.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert dialect.parse(Document(dialect.render(parsed.spec, parsed.extras).text)).spec == parsed.spec
    return True


def corpus(name: str) -> list[str]:
    """The texts that were kept for the dialect called `name`."""
    path = CORPUS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def keep(name: str, texts: list[str]) -> None:
    """Save the texts kept for a dialect, the shortest first."""
    ordered = sorted(texts, key=lambda text: (len(text), text))
    (CORPUS / f"{name}.jsonl").write_text("".join(json.dumps(text) + "\n" for text in ordered))
