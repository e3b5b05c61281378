"""Names of replicas, the files that say them, and plans with a network."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.node.network import names
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import NetworkPlan, Plan, address_of
from tests.jobs.node.wrapper.test_environment import a_plan, a_role, a_slot, env_of

NETWORK = NetworkPlan("10.66.0.0/16", "", ("internet",))


def test_names_are_page_name_and_short_name_of_every_replica() -> None:
    made = a_plan(a_role("Master", a_slot(1)), a_role("worker", a_slot(1), a_slot(1)), network=NETWORK)
    assert [names.host_name(made, place) for place in made.replicas()] == [
        "abc-master-0",
        "abc-worker-0",
        "abc-worker-1",
    ]
    assert names.find_addresses(made)["abc-worker-1"] == names.find_addresses(made)["worker-1"] == "10.66.0.4"
    assert "10.66.0.3\tabc-worker-0 worker-0\n" in names.hosts_text(made)
    assert not names.find_addresses(replace(made, network=None))


@given(st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=4, unique=True))
def test_names_of_any_roles_are_host_names_and_lead_to_every_role(roles: list[str]) -> None:
    made = a_plan(*(a_role(name, a_slot(1), a_slot(1)) for name in roles), network=NETWORK)
    found = names.find_addresses(made)
    assert all(re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", name, re.ASCII) for name in found)
    for place in made.replicas():
        assert len(names.host_name(made, place)) <= names.MOST_BYTES
    if all(len(name) < 20 for name in roles):
        assert set(found.values()) == {made.address(place.position) for place in made.replicas()}


def test_environment_has_own_addresses_in_own_network() -> None:
    made = a_plan(a_role("ps", a_slot(1)), a_role("worker", a_slot(5), a_slot(5)), network=NETWORK)
    env = env_of(made, 2)
    assert env["PAI_HOST_IP_worker_1"] == env["PAI_CONTAINER_HOST_IP"] == "10.66.0.4"
    assert env["PAI_TASK_ROLE_worker_HOST_LIST"] == "10.66.0.3:5,10.66.0.4:5"
    assert env["MASTER_ADDR"] == "10.66.0.2"
    assert json.loads(env["TF_CONFIG"])["cluster"]["worker"] == ["10.66.0.3:5", "10.66.0.4:5"]
    assert HOST_IP not in " ".join(env.values())


HOST_IP = a_plan().house.host_ip
ADDRESSES = st.integers(8, 24).map(lambda bits: f"10.0.0.0/{bits}")
RULES = st.lists(st.sampled_from(["internet", "192.0.2.0/24:443", "10.0.0.1/32:53"]), max_size=3).map(tuple)


@given(network=st.none() | st.builds(NetworkPlan, ADDRESSES, st.sampled_from(["", "10.67.0.4"]), RULES))
def test_plan_with_any_network_is_read_as_written(network: NetworkPlan | None) -> None:
    made = a_plan(a_role("ps", a_slot(1)), network=network)
    dumped = json.loads(json.dumps(made.dump()))
    assert Plan.load(dumped) == made
    assert (dumped["format"] == layout.FORMAT_WITH_NETWORK) == ("network" in dumped) == (network is not None)


@given(st.integers(0, 65_532))
def test_addresses_of_replicas_are_distinct_and_in_range(position: int) -> None:
    found = address_of(NETWORK, position)
    assert found.startswith("10.66.")
    assert found not in {"10.66.0.0", "10.66.0.1", "10.66.255.255"}
    with pytest.raises(IndexError):
        address_of(NETWORK, 65_533)
