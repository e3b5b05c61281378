"""The reference pages have a text in every row, and a conversion loses nothing that it need not."""

from pathlib import Path

import pytest

from jobs import dialects
from jobs.backends import registry
from jobs.dialects.base import Refused
from tests.jobs.backends.benches import CONTRACT_BENCHES
from tests.reference_pages.__main__ import COMMITTED, Page, build, find_gaps, find_stale, write
from tests.reference_pages.engines import find_unexplained
from tests.reference_pages.fields import is_about, misplaced
from tests.reference_pages.paths import holds, paths, values_at
from tests.reference_pages.probes import SAYS, probes, spec
from tests.reference_pages.survival import WHOLE, Fate, fate, fates, through, written

BARE = spec({})


def test_reference_pages_have_text_in_every_row() -> None:
    assert list(find_gaps(build())) == []


def test_find_gaps_reports_empty_cell_and_page_without_rows() -> None:
    text = "| variable | meaning |\n|---|---|\n| `PORT` |  |\n"
    pages = {"a.md": Page(text, frozenset({"meaning"})), "b.md": Page("# Nothing\n", frozenset())}
    assert list(find_gaps(pages)) == ["a.md: no meaning in `PORT` | ", "b.md has no rows."]


def test_comparison_of_backends_explains_each_missing_ability() -> None:
    assert list(find_unexplained()) == []
    assert set(CONTRACT_BENCHES) == set(registry.names())


def test_committed_reference_pages_are_current() -> None:
    assert list(find_stale(build())) == []


def test_find_stale_reports_changed_and_missing_page(tmp_path: Path) -> None:
    pages = build()
    stale = [f"docs/{name} is stale: run `make docs` and commit it." for name in COMMITTED]
    assert list(find_stale(pages, tmp_path)) == stale
    write(pages, tmp_path)
    assert list(find_stale(pages, tmp_path)) == []
    (tmp_path / COMMITTED[-1]).write_text("changed")
    assert list(find_stale(pages, tmp_path)) == stale[-1:]


def test_probes_cover_every_jobspec_path() -> None:
    assert set(SAYS) == {path for path, _default in paths()}


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
