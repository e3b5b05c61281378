"""Possessive groups are matched alike on every Python."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from console.home import CHECKOUT
from jobs.dialects import patterns
from tests.seeds import FOLDER

STRING = r'"(?:[^"\\]|\\.)*+"'


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (STRING, r'"(?>(?:[^"\\]|\\.)*)"'),
        (r"(?:[^\]]++|(?P<inner>[\\)]*+)?+)++x", r"(?>(?:[^\]]++|(?>(?P<inner>[\\)]*+)?))+)x"),
        (r"[])(]*+\)*+", r"[])(]*+\)*+"),
    ],
)
def test_possessive_groups_are_written_as_atomic_ones(pattern: str, written: str) -> None:
    assert patterns.write_atomic(pattern) == written
    re.compile(written)


@pytest.mark.parametrize("text", ['"a\\"b"', '"never closed', '""', '"\\\\" tail'])
def test_both_ways_match_the_same(text: str) -> None:
    found = patterns.compile_pattern(STRING).match(text)
    again = re.match(patterns.write_atomic(STRING), text)
    assert (found and found[0]) == (again and again[0])


MODULES = [
    path for path in sorted((CHECKOUT / "jobs").rglob("*.py")) if "import compile_pattern" in path.read_text()
]


def patterns_of(path: Path) -> list[re.Pattern[str]]:
    """Return the patterns that a module keeps by names."""
    module = import_module(".".join(path.relative_to(CHECKOUT).with_suffix("").parts))
    return [each for each in vars(module).values() if isinstance(each, re.Pattern)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_patterns_of_the_product_match_samples_alike_both_ways(path: Path) -> None:
    texts = [each.read_text(encoding="utf-8") for each in sorted(FOLDER.iterdir())]
    found = patterns_of(path)
    assert found
    for pattern in found:
        atomic = re.compile(patterns.write_atomic(pattern.pattern), pattern.flags)
        for text in texts:
            assert [m.span() for m in pattern.finditer(text)] == [m.span() for m in atomic.finditer(text)]


@pytest.mark.parametrize("folder", ["console", "jobs", "quotas"])
def test_possessive_groups_are_compiled_for_every_python(folder: str) -> None:
    """A quantified group that gives nothing back is wrong before Python 3.11.5."""
    written = {
        path for path in (CHECKOUT / folder).rglob("*.py") if re.search(r"\)[*+?]\+", path.read_text())
    }
    assert written - {CHECKOUT / "jobs/dialects/patterns.py"} <= set(MODULES)
