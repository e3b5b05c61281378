"""The query line: what it means, how it is written, and what is wrong with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.search.query import BY_KEY, COMPARISONS, Kind, Term, parse

VALUES = {
    Kind.TEXT: st.text("abc文-_.:/ ", min_size=1).filter(lambda text: text.strip() == text and text != ""),
    Kind.NUMBER: st.integers(0, 10**9 - 1).map(str),
    Kind.NUMBER_OR_TEXT: st.sampled_from(["4", "A100", "RTX 4090"]),
    Kind.TIME: st.sampled_from(["7d", "12h", "2w", "2026-01-31"]),
}


@st.composite
def terms(draw: st.DrawFn) -> Term:
    key = draw(st.sampled_from(["", *BY_KEY]))
    known = BY_KEY.get(key)
    kind = known.kind if known else Kind.TEXT
    value = draw(st.sampled_from(known.choices) if known and known.choices else VALUES[kind])
    is_number = kind is Kind.NUMBER or (kind is Kind.NUMBER_OR_TEXT and value.isdigit())
    operators = [":", *COMPARISONS] if is_number else [":"]
    return Term(key, value, draw(st.sampled_from(operators)) if key else ":", draw(st.booleans()))


@given(st.lists(terms(), max_size=5, unique=True))
def test_query_is_read_as_it_was_written(wanted: list[Term]) -> None:
    query = parse(" ".join(map(str, wanted)))
    assert (query.terms, query.problems) == (tuple(wanted), ())


@given(st.text(max_size=80))
def test_any_text_is_read_and_its_terms_are_stable(text: str) -> None:
    query = parse(text)
    assert parse(str(query)).terms == query.terms


@pytest.mark.parametrize(
    ("text", "code", "suggestion"),
    [
        ("stat:failed", "unknown_filter", "state"),
        ("xyzzy:1", "unknown_filter", ""),
        ("state:faild", "unknown_value", "failed"),
        ("replicas>many", "bad_value", ""),
        ("since:yesterday", "bad_value", ""),
        ("until:2026-13-40", "bad_value", ""),
        ("owner>me", "bad_value", ""),
        ("tag:", "unknown_filter", "tag"),
    ],
)
def test_wrong_term_is_a_problem_and_the_others_hold(text: str, code: str, suggestion: str) -> None:
    if text == "tag:":
        assert [each.value for each in parse(text).terms] == ["tag:"]  # nothing to look for: a word
        return
    query = parse(f"{text} loss")
    assert [(each.code, each.suggestion, each.text) for each in query.problems] == [(code, suggestion, text)]
    assert query.terms == (Term("", "loss"),)


def test_toggled_term_is_added_and_taken_out() -> None:
    query = parse("loss state:failed")
    failed, running = Term("state", "failed"), Term("state", "running")
    assert str(query.toggle(failed)) == "loss"
    assert str(query.toggle(running)) == "loss state:failed state:running"
    assert str(query.set_only("owner", "me").set_only("owner", "")) == "loss state:failed"
