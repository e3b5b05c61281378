"""What the form makes of the rules: what is hidden, off, bounded and offered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.form import rules
from jobs.form.target import JobTarget
from jobs.messages.rules import rule_message
from jobs.spec import Bid, Framework, JobSpec, NodeChoice
from tests.jobs.dialects.dlc_strategies import dlc_specs
from tests.jobs.form.cases.base import LINGJUN, PUBLIC, QUOTA, SPOT, job, options, role


def state(field: str, spec: JobSpec, target: JobTarget) -> rules.FieldState:
    return rules.fields(rules.rulings(spec, target))[field]


def test_field_without_effect_is_hidden_unless_set() -> None:
    assert state("roles[].bid", job(), QUOTA).hidden
    said_all_the_same = state("roles[].bid", job(role(bid=Bid(discount_percent=40))), QUOTA)
    assert not said_all_the_same.hidden
    assert [each.code for each in said_all_the_same.rulings] == ["bid_for_spot"]


def test_disabled_field_gives_reason_and_bounds() -> None:
    found = state("priority", job(), PUBLIC)
    assert (found.off, found.hidden, found.why and found.why.code) == (True, False, "priority_for_quota")
    assert (found.least, found.most) == (1, 9)


def test_lingjun_offers_fewer_frameworks() -> None:
    everywhere = state("framework", job(), QUOTA).options
    on_lingjun = state("framework", job(), LINGJUN).options
    assert everywhere is not None
    assert on_lingjun is not None
    assert set(everywhere) - set(on_lingjun) == {Framework.XGBOOST, Framework.ONEFLOW}


def test_ports_by_number_are_disabled_on_lingjun_and_beside_port_list() -> None:
    for spec, target in ((options(), LINGJUN), (options(customPortList="1"), QUOTA)):
        assert state("framework_options.customPortNumPerWorker", spec, target).off
    assert not state("framework_options.customPortNumPerWorker", options(), QUOTA).off


def test_gpu_field_limit_comes_from_quota() -> None:
    found = state("roles[].resources.gpus", job(), replace(PUBLIC, most_gpus=4))
    assert found.most == 4


@given(dlc_specs(), st.sampled_from([QUOTA, PUBLIC, SPOT, LINGJUN]))
def test_field_set_by_job_is_never_hidden_disabled_or_changed(spec: JobSpec, target: JobTarget) -> None:
    before = spec.model_dump_json()
    found = rules.rulings(spec, target)
    for ruling in found:
        assert rule_message(ruling.code, ruling.statement.params)
        assert all(0 <= at < max(len(spec.roles), len(spec.mounts)) for at in ruling.statement.at)
    for path, field_state in rules.fields(found).items():
        if (field_state.off or field_state.hidden) and path not in {"kind", "mounts[].read_only"}:
            assert not any(says(spec, path)), path
    assert spec.model_dump_json() == before


def says(value: Any, path: str) -> list[bool]:
    """Whether something stands at a path, for each element that it leads to."""
    name, _dot, rest = path.partition(".")
    if name == "framework_options" and rest:
        return [rest in value.framework_options]
    found = getattr(value, name.removesuffix("[]"))
    each = list(found) if name.endswith("[]") else [found]
    if rest:
        return [one for element in each if element is not None for one in says(element, rest)]
    if isinstance(found, NodeChoice):
        return [bool(found.only or found.never)]
    return [bool(element) for element in each]
