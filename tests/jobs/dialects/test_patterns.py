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
        (STRING, r'"(?:[^"\\]|\\.|(?!))*+"'),
        (r"(?:[^\]]++|(?P<inner>[\\)]*+)?+)++x", r"(?:[^\]]++|(?P<inner>[\\)]*+|(?!))?+|(?!))++x"),
        (r"[])(]*+\)*+(?:a)*", r"[])(]*+\)*+(?:a)*"),
    ],
)
def test_end_groups_appends_never_matching_alternative(pattern: str, written: str) -> None:
    assert patterns.end_groups(pattern) == written
    re.compile(written)


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        (STRING, '"a\\"b" tail', '"a\\"b"'),
        (STRING, '"never closed', None),
        (r"(?:ab?c)++", "acab", "ac"),
        (r"(?:'[^']*+'|a++)*+", "aa'never closed", "aa"),
        (r"(?:/(?![/*])|a)*+", "a//a", "a"),
    ],
)
def test_possessive_group_ends_where_last_repetition_began(
    pattern: str, text: str, matched: str | None
) -> None:
    for each in (patterns.compile_pattern(pattern), re.compile(patterns.end_groups(pattern))):
        found = each.match(text)
        assert (found and found[0]) == matched


MODULES = [
    path for path in sorted((CHECKOUT / "jobs").rglob("*.py")) if "import compile_pattern" in path.read_text()
]


def patterns_of(path: Path) -> list[re.Pattern[str]]:
    """Return the patterns that a module keeps by names."""
    module = import_module(".".join(path.relative_to(CHECKOUT).with_suffix("").parts))
    return [each for each in vars(module).values() if isinstance(each, re.Pattern)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_product_patterns_match_samples_alike_both_ways(path: Path) -> None:
    texts = [each.read_text(encoding="utf-8") for each in sorted(FOLDER.iterdir())]
    found = patterns_of(path)
    assert found
    for pattern in found:
        again = re.compile(patterns.end_groups(pattern.pattern), pattern.flags)
        for text in texts:
            assert [m.span() for m in pattern.finditer(text)] == [m.span() for m in again.finditer(text)]


@pytest.mark.parametrize("folder", ["console", "jobs", "quotas"])
def test_modules_with_possessive_groups_are_all_listed(folder: str) -> None:
    """A quantified group that gives nothing back is wrong before Python 3.11.5."""
    written = {
        path for path in (CHECKOUT / folder).rglob("*.py") if re.search(r"\)[*+?]\+", path.read_text())
    }
    assert written - {CHECKOUT / "jobs/dialects/patterns.py"} <= set(MODULES)
