"""Packet filter rules: what gets into their text, and what the kernel makes of it."""

from __future__ import annotations

import os
import re
import subprocess
from ipaddress import IPv4Address, IPv4Network

import pytest
from django.core.exceptions import ValidationError
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.node import kernel
from jobs.node.network import netlink, router
from jobs.node.network.rules import EgressRule, host_rules, router_rules
from quotas import egress as egress_policies

NETWORKS = st.ip_addresses(v=4).flatmap(
    lambda address: st.integers(0, 32).map(lambda bits: IPv4Network((address, bits), strict=False))
)
PORTS = st.integers(1, 65535)
RULES = st.one_of(
    st.just("internet"),
    NETWORKS.map(str),
    st.builds(lambda network, port: f"{network}:{port}", NETWORKS, PORTS),
    st.builds(
        lambda network, ports: f"{network}:{min(ports)}-{max(ports)}", NETWORKS, st.tuples(PORTS, PORTS)
    ),
)
METADATA = (IPv4Address("169.254.169.254"), IPv4Address("100.100.100.200"))
LINE = re.compile(r'[a-z0-9 ._,/{}"*;!=-]*')


@given(st.lists(RULES), st.lists(st.ip_addresses(v=4)))
def test_router_rules_of_any_policy_have_only_known_characters_and_refuse_the_host_first(
    egress: list[str], refused: list[IPv4Address]
) -> None:
    lines = [line.strip() for line in router_rules("10.66.0.0/16", egress, refused).splitlines()]
    assert all(LINE.fullmatch(line) for line in lines)
    ways = [number for number, line in enumerate(lines) if 'oifname "up"' in line and "accept" in line]
    assert len(ways) == len(egress)
    never = next(number for number, line in enumerate(lines) if "169.254.0.0/16" in line)
    assert all(never < way for way in ways)
    listed = lines[never].partition("{")[2].partition("}")[0].split(",")
    networks = [IPv4Network(each.strip()) for each in listed]
    for address in (*refused, IPv4Address("127.0.0.1"), *METADATA):
        assert any(address in network for network in networks)


@given(st.one_of(st.text(), st.text("0123456789./:- \n;{}a", max_size=24)))
def test_egress_rule_of_any_text_has_only_known_characters_or_is_refused(text: str) -> None:
    try:
        rule = EgressRule.parse(text)
    except ValueError:
        return
    assert LINE.fullmatch(rule.as_match())


@given(RULES.filter(lambda rule: rule != "internet"))
@example("192.0.2.7")
def test_router_reads_every_rule_that_a_workspace_may_have(text: str) -> None:
    try:
        rules = egress_policies.parse_rules([text])
    except ValidationError:
        return
    assert [str(EgressRule.parse(rule).network) for rule in rules] == [rules[0].partition(":")[0]]


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.0/8 accept",
        "10.0.0.0/8\naccept",
        "10.0.0.0/8:0",
        "10.0.0.0/8:70000",
        "10.0.0.0/8:9-1",
        "10.0.0.1/8",
        "example.org:443",
        "::1",
        "10.0.0.0/8:٣",
    ],
)
def test_egress_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        EgressRule.parse(text)


def test_kernel_takes_rules_and_replaces_them() -> None:
    """With many overlapping networks, in a network namespace of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    egress = ["internet", "192.0.2.0/24", "192.0.2.0/25:443", "0.0.0.0/0:1-65535"]
    refused = [IPv4Address("10.66.1.1"), IPv4Address("192.0.2.1"), IPv4Address("255.255.255.255")]
    texts = [router_rules("10.66.0.0/16", egress, refused), host_rules(), host_rules()]
    pid = os.fork()
    if pid == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWNET)
            for text in texts:
                router.apply(text)
            shown = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True)
            assert shown.stdout.count("table inet job_console") == 1
            with netlink.Netlink() as made:
                assert made.list_addresses() == []
                made.remove_link("none")
        except BaseException:  # noqa: BLE001 nothing may return into pytest
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
