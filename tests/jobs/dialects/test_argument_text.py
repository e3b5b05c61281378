"""Arguments in one string: each is changed by itself, and nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects import fault_arguments
from jobs.dialects.argument_text import parse_arguments, set_argument
from jobs.dialects.fault_arguments import Vendor
from jobs.form.subfields import FAULT_TOLERANCE, SANITY_CHECK
from jobs.spec import FaultTolerance, Framework, JobSpec, RoleSpec

NAMES = st.sampled_from([argument.name for argument in (*FAULT_TOLERANCE, *SANITY_CHECK)] + ["enable-future"])
PLAIN = st.text(st.sampled_from("abcXYZ019._/:;,"), min_size=1, max_size=8)
VALUES = PLAIN | st.just("two words")
TEXTS = st.lists(
    st.one_of(
        st.builds("--{}={}".format, NAMES, PLAIN),
        st.builds("--{} {}".format, NAMES, PLAIN),
        st.builds('--{}="{}"'.format, NAMES, st.just("a b")),
        st.builds("--{}".format, NAMES),
        st.just("stray"),
    ),
    max_size=6,
).map("  ".join)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("--a=1 --b 2 --c", {"a": "1", "b": "2", "c": "True"}),
        ("--a --b=x=y", {"a": "True", "b": "x=y"}),
        ("--a '1 2' --b=\"3 4\"", {"a": "1 2", "b": "3 4"}),
        ("--a=1 --a=2", {"a": "2"}),
        ("", {}),
        ("nothing here", {}),
    ],
)
def test_parse_arguments_reads_every_notation(text: str, found: dict[str, str]) -> None:
    assert parse_arguments(text) == found


@pytest.mark.parametrize(
    ("text", "name", "value", "after"),
    [
        ("", "a", "1", "--a=1"),
        ("--x", "a", "1", "--x --a=1"),
        ("--a 1 --x", "a", "2", "--a=2 --x"),
        ("--x  --a=1   --y", "a", "", "--x   --y"),
        ("--a=1 --y", "a", "", "--y"),
        ("--a=1", "a", "", ""),
        ("--a=1 --a=2", "a", "3", "--a=3"),
        ("--x", "a", "", "--x"),
        ("--a True", "a", "True", "--a True"),
    ],
)
def test_set_argument_changes_value_in_place(text: str, name: str, value: str, after: str) -> None:
    assert set_argument(text, name, value) == after


@given(TEXTS, NAMES, VALUES)
def test_set_argument_keeps_all_other_arguments(text: str, name: str, value: str) -> None:
    before, after = dict(parse_arguments(text)), dict(parse_arguments(set_argument(text, name, value)))
    assert after.pop(name) == value
    before.pop(name, None)
    assert after == before


@given(TEXTS, NAMES)
def test_set_argument_removal_is_complete_and_idempotent(text: str, name: str) -> None:
    once = set_argument(text, name, "")
    assert name not in parse_arguments(once)
    assert set_argument(once, name, "") == once
    kept = {other: value for other, value in parse_arguments(text).items() if other != name}
    assert parse_arguments(once) == kept


def test_export_keeps_the_arguments_that_the_other_vendor_does_not_own() -> None:
    dlc, aihc = "--enable-job-restart=True", "--enable-replace=true --custom-log-patterns='a b'"
    both = f"{aihc} --own=1 {dlc} --custom-log-patterns=c"
    assert fault_arguments.remove_arguments(Vendor.AIHC, both) == f"--own=1 {dlc}"
    assert fault_arguments.remove_arguments(Vendor.DLC, both) == f"{aihc} --own=1 --custom-log-patterns=c"
    assert fault_arguments.remove_arguments(Vendor.DLC, f"{dlc} --own=1") == "", "all of it is DLC's"
    assert fault_arguments.remove_arguments(Vendor.DLC, "--own=1") == "--own=1"


def test_job_with_arguments_of_both_vendors_keeps_each_vendors_in_its_format() -> None:
    both = "--enable-job-restart=True --enable-replace=true"
    role = RoleSpec(name="worker", command="true", image="any")
    tolerance = FaultTolerance(enabled=True, arguments=both)
    spec = JobSpec(name="job", framework=Framework.PYTORCH, roles=(role,), fault_tolerance=tolerance)
    texts = {name: dialects.get(name).render(spec, {}).document.text for name in ("dlc", "aihc")}
    assert json.loads(texts["dlc"])["Settings"]["ErrorMonitoringArgs"] == "--enable-job-restart=True"
    assert json.loads(texts["aihc"])["faultToleranceArgs"] == "--enable-replace=true"
