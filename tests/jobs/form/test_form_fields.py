"""The table of the form's fields names fields, rules and tests that there are, and leaves none out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from jobs.form.fields import FIELDS, ROWS, Field, Rows
from jobs.form.rules import BY_CODE, Page
from jobs.form.rules.advanced import SETTINGS
from tests.reference_pages.form_fields import Row, read_rows

TESTS = Path(__file__).parents[2]
ROWS_OF_PAGE = read_rows()
PAGES = {
    "both": (Page.CHINESE, Page.JAPANESE),
    "older": (Page.CHINESE,),
    "newer": (Page.JAPANESE,),
    "console": (),
}
PLACE = "place"
"""Where the job runs is chosen in the page's own form."""


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("row", ROWS_OF_PAGE, ids=[row.says[:60] for row in ROWS_OF_PAGE])
def test_form_table_row_names_existing_field_rule_and_test(row: Row) -> None:
    _section, pages, _says, field, rule, test = row
    assert field == PLACE or field in FIELDS or field in ROWS
    if rule:
        assert rule in BY_CODE
    file, _colons, name = test.partition("::")
    function, _bracket, case = name.partition("[")
    assert not function or function in functions(file)
    if function == "test_rule_case_has_the_expected_effect":
        assert case == f"{rule}]"
    assert pages in PAGES


def test_form_table_lists_every_rule() -> None:
    assert {row.rule for row in ROWS_OF_PAGE} - {""} == set(BY_CODE)


def test_form_table_pages_include_those_of_each_rule() -> None:
    """One row may tell of a field that both pages have, with a rule that stands on one."""
    for row in ROWS_OF_PAGE:
        if row.rule:
            pages = BY_CODE[row.rule].pages
            assert set(pages) <= {*PAGES["both"]}
            assert bool(pages) == (row.page != "console"), row


def test_form_table_lists_every_page_field() -> None:
    """What the pages don't have says so by its source: the SCM manual, CreateJob, or our own."""
    ours = re.compile(r"^PAI-DLC page")
    every: dict[str, Field | Rows] = {**FIELDS, **ROWS}
    wanted = {key for key, each in every.items() if ours.match(each.source)}
    there = {row.field for row in ROWS_OF_PAGE}
    assert sorted(wanted - there - SECONDARY) == []


SECONDARY = {"registry-registry", "roles-*-rdma"}
"""Parts of a private image's login, and of Lingjun's network, of which the pages speak without a field."""


def test_form_table_lists_every_advanced_setting_by_name() -> None:
    for setting in SETTINGS:
        found = [row for row in ROWS_OF_PAGE if row.field == f"option-{setting.key}"]
        assert any(f"`{setting.key}`" in row.says for row in found), setting.key
