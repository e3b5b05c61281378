"""The reference pages have a text in every row, and a conversion loses nothing that it need not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from console.documentation.reference.spec_paths import list_paths
from jobs import dialects
from jobs.backends import registry
from jobs.dialects.base import Refused
from tests.jobs.backends.benches import CONTRACT_BENCHES
from tests.reference_pages.__main__ import build
from tests.reference_pages.engines import find_unexplained
from tests.reference_pages.fields import is_about, misplaced
from tests.reference_pages.paths import holds, values_at
from tests.reference_pages.probes import SAYS, probes, spec
from tests.reference_pages.survival import WHOLE, Fate, fate, fates, lost_between, through, written
from tests.reference_pages.table import rows

BARE = spec({})
REQUIRED: Final[Mapping[str, frozenset[str]]] = {
    "settings": frozenset({"variable", "meaning", "value", "default"}),
    "dialect-fields": frozenset({"dialect", "spelling", "source"}),
    "backends": frozenset({"promise", "ability", "field", *registry.names()}),
    "conversions": frozenset({"JobSpec", "from \\ to"}),
    "cluster-settings": frozenset({"setting", "label", "meaning"}),
    "backends-fields": frozenset({"field", "there"}),
    "vendor-apis": frozenset({"operation", "request", "scope", "field", "support"}),
    "fault-arguments": frozenset({"argument", "of", "type", "unit", "default", "source", "effect here"}),
    "form-fields": frozenset({"page", "what it says", "field", "test"}),
}
"""The columns of each page's tables that must not be empty in any row."""


def find_gaps(pages: Mapping[str, str], required: Mapping[str, frozenset[str]] = REQUIRED) -> Iterator[str]:
    """Yield a sentence for each row that lacks a text, and for each page without rows."""
    for name, text in pages.items():
        found = list(rows(text))
        if not found:
            yield f"{name} has no rows."
        for row in found:
            for column in sorted(required[name] & row.keys()):
                if not row[column]:
                    yield f"{name}: no {column} in {' | '.join(row.values())}"


def test_reference_pages_have_text_in_every_row() -> None:
    assert list(find_gaps(build())) == []


def test_find_gaps_reports_empty_cell_and_page_without_rows() -> None:
    pages = {"a": "| variable | meaning |\n|---|---|\n| `PORT` |  |\n", "b": "# Nothing\n"}
    required = {"a": frozenset({"meaning"}), "b": frozenset[str]()}
    assert list(find_gaps(pages, required)) == ["a: no meaning in `PORT` | ", "b has no rows."]


def test_comparison_of_backends_explains_each_missing_ability() -> None:
    assert list(find_unexplained()) == []
    assert set(CONTRACT_BENCHES) == set(registry.names())


def test_conversion_keeps_what_both_formats_can_say() -> None:
    assert lost_between() == ()


def test_probes_cover_every_jobspec_path() -> None:
    assert set(SAYS) == {path for path, _default in list_paths()}


def test_probes_set_their_own_value_at_every_path() -> None:
    said = {
        probe.path for probe in probes() if values_at(probe.spec, probe.path) != values_at(BARE, probe.path)
    }
    assert said == set(SAYS)


@pytest.mark.parametrize("name", dialects.NAMES)
def test_losses_are_named_by_their_path(name: str) -> None:
    for probe in probes():
        notes = written(name, probe.spec).notes
        named = {
            ".".join(part for part in note.pointer.split("/")[1:] if not part.isdigit()) for note in notes
        }
        path = probe.path.replace("[]", "")
        if fate(probe, name) not in WHOLE:
            assert any(path.startswith(each) or each.startswith(path) for each in named), probe


def test_field_map_names_only_existing_paths() -> None:
    assert misplaced() == ()


@pytest.mark.parametrize("name", dialects.NAMES)
def test_field_map_covers_preserved_paths_and_no_lost_ones(name: str) -> None:
    rows = [row for row in dialects.fields(name) if row.path]
    for path, row in fates().items():
        if row[name] is Fate.KEPT:
            where = "env" if path == "secret_env" else path
            assert any(is_about(each, where) for each in rows), f"{path} comes back, by no key of the table"
    for each in rows:
        about = [path for path in fates() if is_about(each, path)]
        assert any(fates()[path][name] is not Fate.LOST for path in about), f"{each.spelling} says nothing"


@pytest.mark.parametrize("name", dialects.NAMES)
def test_job_without_time_limit_never_gets_one(name: str) -> None:
    for probe in probes():
        if probe.spec.time_limit_s is None:
            try:
                assert through(name, probe.spec).time_limit_s is None
            except Refused:
                continue


def test_holds_compares_by_element_and_by_member() -> None:
    assert holds([1, None, {"a": "1", "b": "2"}], [{"a": "1"}, None])
    assert not holds([1], [1, 1])
