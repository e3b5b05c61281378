"""Egress policies: one spelling for each rule, and a clear problem for each line that is none."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from quotas import egress
from quotas.egress import EgressKind


def problems(*lines: str) -> list[str]:
    with pytest.raises(ValidationError) as error:
        egress.parse_rules(lines)
    return [str(message) for message in error.value.messages]


def test_rules_are_written_in_one_spelling_and_once() -> None:
    lines = ["192.0.2.0/24:443", " 192.0.2.7 ", "10.1.0.0/16:8000-8999", "192.0.2.7/32", "10.1.0.0/16:22-22"]
    assert egress.parse_rules(lines) == [
        "192.0.2.0/24:443",
        "192.0.2.7/32",
        "10.1.0.0/16:8000-8999",
        "10.1.0.0/16:22",
    ]
    assert egress.parse_rules(["0.0.0.0/0:443"]) == ["0.0.0.0/0:443"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("db.example.org:5432", "Names are not supported"),
        ("internet", "Names are not supported"),
        ("::1", "IPv6 is not supported"),
        ("[2001:db8::1]:443", "IPv6 is not supported"),
        ("2001:db8::/32", "IPv6 is not supported"),
        ("169.254.169.254:80", "Loopback, link-local"),
        ("169.254.0.0/16", "Loopback, link-local"),
        ("127.0.0.1:8223", "Loopback, link-local"),
        ("224.0.0.251:5353", "Loopback, link-local"),
        ("192.0.2.7/24", "Did you mean 192.0.2.0/24?"),
        ("192.0.2.0/33", "Enter an IPv4 range"),
        ("192.0.2.256", "Enter an IPv4 range"),
        ("192.0.2.0/24:0", "Ports are 1 to 65535"),
        ("192.0.2.0/24:65536", "Ports are 1 to 65535"),
        ("192.0.2.0/24:90-80", "Ports are 1 to 65535"),
        ("192.0.2.0/24:http", "Enter an IPv4 range"),
        ("192.0.2.0/24:1 accept", "Enter an IPv4 range"),
        ("", "Enter an IPv4 range"),
    ],
)
def test_invalid_rule_is_refused_with_its_text_and_reason(line: str, problem: str) -> None:
    (told,) = problems("192.0.2.0/24:443", line)
    assert told.startswith(f"{line}: ")
    assert problem in told


def test_more_than_the_allowed_number_of_rules_is_refused() -> None:
    rules = [f"192.0.2.{number}" for number in range(egress.MOST_RULES)]
    assert len(egress.parse_rules(rules)) == egress.MOST_RULES
    assert problems(*rules, "198.51.100.1") == ["At most 64 rules."]


@pytest.mark.parametrize("policy", ["internet", ["internet", "192.0.2.0/24"], ["192.0.2.7"], [7], None])
def test_invalid_policy_is_no_value_of_the_model(policy: object) -> None:
    with pytest.raises(ValidationError):
        egress.validate(policy)


@pytest.mark.parametrize(
    ("policy", "kind", "line"),
    [
        ([], EgressKind.NONE, "No network"),
        (["internet"], EgressKind.INTERNET, "Internet"),
        (["192.0.2.0/24:443", "10.0.0.0/8"], EgressKind.LISTED, "192.0.2.0/24:443, 10.0.0.0/8"),
    ],
)
def test_policy_has_a_kind_and_one_line(policy: list[str], kind: EgressKind, line: str) -> None:
    egress.validate(policy)
    assert (egress.kind_of(policy), egress.describe(policy)) == (kind, line)
