"""Examples of the OpenAPI document have the fields of their shapes, and requests among them are accepted."""

from __future__ import annotations

import pytest

from jobs.api.native.examples import EXAMPLES
from jobs.api.native.shapes import ApiShape


@pytest.mark.parametrize("shape", EXAMPLES, ids=lambda shape: shape.__name__)
def test_example_fits_its_shape(shape: type[ApiShape]) -> None:
    found = shape(data=EXAMPLES[shape])
    assert found.is_valid(), found.errors
    assert set(EXAMPLES[shape]) <= shape.field_names()
