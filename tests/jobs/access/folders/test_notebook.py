"""Notebooks are read, whatever a file holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.access.folders.notebook import Notebook, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
CELLS = st.lists(
    st.dictionaries(
        st.sampled_from(["cell_type", "source", "outputs", "execution_count", "text", "data", "traceback"]),
        JSON | st.sampled_from(["code", "markdown"]) | st.lists(st.dictionaries(st.text(max_size=5), JSON)),
    )
    | JSON,
    max_size=4,
)


@given(CELLS)
def test_any_cells_are_read(cells: object) -> None:
    assert isinstance(parse(json.dumps({"cells": cells}).encode()), Notebook)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"cells": {}}', b"[" * 100_000, b"\xff"])
def test_what_holds_no_cells_is_no_notebook(data: bytes) -> None:
    assert parse(data) is None
