"""Lines of a log: every byte in one line, long ones in pieces of whole characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.log_forwarding import lines
from jobs.log_forwarding.lines import Rest, split


@given(st.binary(max_size=80) | st.text("aé\n€", max_size=40).map(str.encode), st.sampled_from(Rest))
def test_split_covers_data_without_gaps(data: bytes, rest: Rest) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "LONGEST_LINE", 8)
        found = list(split(data, 100, rest))
    at = 100
    for line in found:
        assert line.offset == at
        assert 0 < line.end - line.offset <= 9
        assert line.is_partial == (not data[: line.end - 100].endswith(b"\n")) or rest is Rest.ENDS
        at = line.end
    left = data[at - 100 :]
    assert not left or (rest is Rest.WAITS and b"\n" not in left and len(left) <= 8)
    texts = "".join(line.text + ("" if line.is_partial else "\n") for line in found)
    try:
        whole = data[: at - 100].decode()
    except UnicodeDecodeError:
        return
    assert texts.removesuffix("\n") == whole.removesuffix("\n")
