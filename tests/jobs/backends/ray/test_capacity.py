"""What is free of a Ray cluster, and what a replica requires of a node."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from jobs.backends import registry
from jobs.backends.base import NotSubmitted
from jobs.backends.ray import capacity
from jobs.backends.ray.capacity import NodeCapacity
from jobs.backends.ray.client import RayNode
from jobs.backends.ray.config import RayConfig
from jobs.spec import NodeChoice, ResourceRequest
from jobs.states import ReasonCode

ASK = ResourceRequest("worker", 1, 500, 64, 0, "")
GROUP = "Group7A9Af102425C06Ee303E47E3F27C02000000"


def make_node(name: str, gpu_type: str = "", resource: str = "", **labels: str) -> NodeCapacity:
    resources = {"CPU": 8.0, "memory": float(1 << 30), "GPU": 4.0}
    node = RayNode(
        f"id-{name}", name, "10.0.0.1", True, resources, {"ray.io/node-id": f"id-{name}", **labels}
    )
    return NodeCapacity(node, gpu_type, resource, dict(resources))


def test_requirements_select_nodes_by_names_and_labels() -> None:
    nodes = [make_node("a", zone="east"), make_node("b", zone="west"), make_node("c", zone="west")]

    def chosen(**choice: object) -> list[str]:
        wanted = capacity.require(ASK, NodeChoice.model_validate(choice), nodes)
        return [each.node.name for each in nodes if each.holds(wanted)]

    assert chosen() == ["a", "b", "c"]
    assert chosen(only=("a", "b"), never=("a",)) == ["b"]
    assert chosen(never=("b",)) == ["a", "c"]
    assert chosen(labels={"zone": "west"}, never=("c",)) == ["b"]
    assert chosen(only=("elsewhere",)) == []


def test_gpu_type_is_required_as_the_nodes_tell_it() -> None:
    nodes = [
        make_node("a", "A100", "", **{capacity.TYPE_LABEL: "A100"}),
        make_node("b", "TITAN", "titan"),
        make_node("c", "V100", "accelerator_type:V100"),
    ]

    def wanted(gpu_type: str) -> capacity.Requirements:
        return capacity.require(ResourceRequest("worker", 1, 500, 64, 2, gpu_type), NodeChoice(), nodes)

    amounts = {"CPU": 0.5, "memory": 64 << 20, "GPU": 2}
    assert wanted("") == (amounts, {})
    assert wanted("a100") == (amounts, {capacity.TYPE_LABEL: "A100"})
    assert wanted("titan") == ({**amounts, "titan": 2}, {})
    assert wanted("V100") == ({**amounts, "accelerator_type:V100": capacity.TYPE_SHARE}, {})
    with pytest.raises(NotSubmitted) as absent:
        wanted("H100")
    assert absent.value.reason.code is ReasonCode.NO_SUCH_GPU


def test_replicas_that_do_not_fit_together_are_not_placed() -> None:
    ask = ResourceRequest("worker", 3, 4000, 64, 0, "")
    nodes = [make_node("a")]
    with pytest.raises(NotSubmitted) as lacking:
        capacity.place_replicas([(ask, capacity.require(ask, NodeChoice(), nodes))], nodes)
    assert lacking.value.reason.params == {"resource": "cpu_milli", "wanted": 4000, "free": 0}


def test_use_outside_of_placement_groups_is_told_from_their_shares() -> None:
    usage = {
        "CPU": [3.1, 8.0],
        f"CPU{GROUP}": [0.0, 1.1],
        "CPUGroup0" + GROUP.removeprefix("Group"): [0.0, 1.1],
        "GPU": [2.0, 4.0],
        f"GPU{GROUP}": [2.0, 2.0],
    }
    found = capacity._used_by_others(usage)
    assert found["CPU"] == pytest.approx(2.0)
    assert found["GPU"] == 0


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"url": "head:8265"}, ("url", "no_url")),
        ({"console_url": ""}, ("console_url", "no_console")),
        ({"token": "two words"}, ("token", "no_token")),
    ],
)
def test_settings_that_reach_no_cluster_are_refused(
    tmp_path: Path, settings: dict[str, str], problem: tuple[str, str]
) -> None:
    given = {"url": "http://head:8265", "console_url": "https://console.example.org", **settings}
    with pytest.raises(ValidationError) as refused:
        RayConfig.from_settings(tmp_path, given)
    registration = registry.find("ray")
    found = registration.problems(refused.value)
    assert [(each.name, each.code) for each in found] == [problem]
    assert registration.sentence(found[0])


def test_console_address_of_this_machine_alone_is_not_used(tmp_path: Path) -> None:
    given = {"url": "http://head:8265", "usual_console_url": "https://console.example.org"}
    config = RayConfig.from_settings(tmp_path, given)
    assert config.console_url == "https://console.example.org"
    assert "secret" not in repr(RayConfig.from_settings(tmp_path, {**given, "token": "secret"}))
    with pytest.raises(ValidationError):
        RayConfig.from_settings(tmp_path, {**given, "usual_console_url": "http://127.0.0.1:8000"})
