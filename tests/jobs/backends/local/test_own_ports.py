"""Ports of jobs whose replicas have a network of their own, and of jobs in the host's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.backends.local import own_ports
from jobs.backends.local.port_allocator import NoPortFree
from jobs.spec import Framework, JobSpec, Port
from tests.jobs.backends.benches import role

SPAN = (20000, 29999)
IMPLICIT = (Port(label="http"), Port(label="ssh"))


def requesting(framework: Framework | None = Framework.PYTORCH, **options: str) -> JobSpec:
    return JobSpec(name="j", roles=(role(),), framework=framework, framework_options=options)


def test_own_ports_are_fixed_ones_as_requested_and_others_from_start_of_range() -> None:
    asked = role(replicas=3, ports=(Port(label="web", count=2), Port(label="board", begin_at=20001)))
    found = own_ports.assign(asked, IMPLICIT, SPAN, [20002])
    assert found == {"web": (20000, 20003), "board": (20001,), "http": (20004,), "ssh": (20005,)}


def test_own_ports_beyond_all_that_exist_raise() -> None:
    with pytest.raises(NoPortFree):
        own_ports.assign(role(ports=(Port(label="web", count=65_000),)), IMPLICIT, SPAN, [])


@given(st.lists(st.tuples(st.integers(0, 65535), st.integers(1, 50)), max_size=8))
def test_own_ports_of_any_labels_are_distinct_and_in_range(wanted: list[tuple[int, int]]) -> None:
    ports = [Port(label=str(n), begin_at=begin, count=count) for n, (begin, count) in enumerate(wanted)]
    found = own_ports.assign(role(ports=tuple(ports)), IMPLICIT, SPAN, [])
    listed = [port for ports in found.values() for port in ports]
    assert len(listed) == len(set(listed))
    assert all(0 < port < 1 << 16 for port in listed)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"customPortNumPerWorker": "3"}, "20001;20002;20003"),
        ({"customPortList": "10000; 10001-10003"}, "10000;10001;10002;10003"),
        ({"customPortList": "none"}, None),
        ({"customPortNumPerWorker": "70000"}, None),
        ({}, None),
    ],
)
def test_custom_ports_are_those_that_dlc_options_request(options: Any, expected: str | None) -> None:
    found = own_ports.custom_ports(requesting(**options), SPAN, [20000])
    assert found.get(own_ports.CUSTOM_PORTS) == expected


def test_custom_ports_fit_into_variable_and_need_pytorch() -> None:
    spec = requesting(customPortNumPerWorker="65536")
    found = own_ports.custom_ports(spec, SPAN, [])[own_ports.CUSTOM_PORTS]
    assert len(found.split(";")) > 16_000
    assert len(found) <= 96 * 1024
    many = requesting(customPortList=";".join(["1-65535"] * 1000))
    assert len(own_ports.custom_ports(many, SPAN, [])[own_ports.CUSTOM_PORTS]) <= 96 * 1024
    assert not own_ports.custom_ports(requesting(None, customPortNumPerWorker="3"), SPAN, [])
