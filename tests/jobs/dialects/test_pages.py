"""The reference pages have a text in every row, and a conversion loses nothing that it need not."""

import pytest

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from tests.reference_pages.__main__ import Page, build, find_gaps
from tests.reference_pages.fields import is_about, misplaced
from tests.reference_pages.paths import holds, paths, values_at
from tests.reference_pages.probes import SAYS, probes, spec
from tests.reference_pages.survival import WHOLE, Fate, fate, fates, lost_between

BARE = spec({})


def test_every_row_of_the_reference_pages_has_its_text() -> None:
    assert list(find_gaps(build())) == []


def test_find_gaps_reports_an_empty_cell_and_a_page_without_rows() -> None:
    text = "| variable | meaning |\n|---|---|\n| `PORT` |  |\n"
    pages = {"a.md": Page(text, frozenset({"meaning"})), "b.md": Page("# Nothing\n", frozenset())}
    assert list(find_gaps(pages)) == ["a.md: no meaning in `PORT` | ", "b.md has no rows."]


def test_every_path_of_a_jobspec_is_tried() -> None:
    assert set(SAYS) == {path for path, _default in paths()}


def test_some_probe_of_every_path_says_something_of_its_own_there() -> None:
    said = {
        probe.path for probe in probes() if values_at(probe.spec, probe.path) != values_at(BARE, probe.path)
    }
    assert said == set(SAYS)


def test_what_two_dialects_can_both_say_gets_from_each_to_the_other() -> None:
    assert lost_between() == ()


@pytest.mark.parametrize("name", dialects.NAMES)
def test_every_loss_is_named_by_its_path(name: str) -> None:
    for probe in probes():
        notes = dialects.get(name).render(probe.spec, {}).notes
        named = {
            ".".join(part for part in note.pointer.split("/")[1:] if not part.isdigit()) for note in notes
        }
        path = probe.path.replace("[]", "")
        if fate(probe, name) not in WHOLE:
            assert any(path.startswith(each) or each.startswith(path) for each in named), probe


def test_the_field_map_names_paths_that_there_are() -> None:
    assert misplaced() == ()


@pytest.mark.parametrize("name", dialects.NAMES)
def test_the_field_map_has_a_key_for_every_path_that_is_kept_and_none_for_one_that_is_lost(name: str) -> None:
    rows = [row for row in dialects.fields(name) if row.path]
    for path, row in fates().items():
        if row[name] is Fate.KEPT:
            where = "env" if path == "secret_env" else path
            assert any(is_about(each, where) for each in rows), f"{path} comes back, by no key of the table"
    for each in rows:
        about = [path for path in fates() if is_about(each, path)]
        assert any(fates()[path][name] is not Fate.LOST for path in about), f"{each.spelling} says nothing"


@pytest.mark.parametrize("name", dialects.NAMES)
def test_a_job_without_a_time_limit_never_gets_one(name: str) -> None:
    for probe in probes():
        if probe.spec.time_limit_s is None:
            try:
                dialect = dialects.get(name)
                assert dialect.parse(Document(dialect.render(probe.spec, {}).text)).spec.time_limit_s is None
            except Refused:
                continue


def test_holding_is_by_element_and_by_member() -> None:
    assert holds([1, None, {"a": "1", "b": "2"}], [{"a": "1"}, None])
    assert not holds([1], [1, 1])
