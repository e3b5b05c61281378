"""Constraints: what they name, whom they hold, and how the vendor spells them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects.document import Document
from jobs.jobtemplates.constraints import Constraint, as_json_path, find_broken, rules_of, steps_of, unknown
from jobs.jobtemplates.template import JobTemplate
from tests.factories import TEMPLATE_FILE

LOCKED, REQUIRED, FREE = Constraint.LOCKED, Constraint.REQUIRED, Constraint.OVERRIDABLE


def changed(**keys: Any) -> str:
    """The template's file with other values."""
    return json.dumps({**json.loads(TEMPLATE_FILE), **keys})


def wrong(
    constraints: dict[str, Constraint], text: str, dialect: str = "dlc", of: str = TEMPLATE_FILE
) -> list[str]:
    theirs = dialects.get("dlc").parse(Document(of))
    mine = dialects.get(dialect).parse(Document(text))
    return [each.pointer for each in find_broken(constraints, "dlc", theirs, mine, dialect)]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("$.JobSpecs[0].Image", ["/roles/0/image"]),
        ("$['JobSpecs'][0]['Image']", ["/roles/0/image"]),
        ("$.JobSpecs[*].Image", ["/roles/*/image"]),
        ("$..Image", [f"/roles/*/{name}image" for name in ("", "init_containers/*/", "sidecars/*/")]),
        ("$.UserCommand", ["/roles/*/command"]),
        ("$.Envs.LR", ["/env/LR"]),
        ("$.CodeSource", ["/code/id", "/code/branch", "/code/commit", "/code/path"]),
        ("$.UserVpc.ExtendedCidrs", ["/network/cidrs"]),
        ("$.JobSpecs[1].PodCount", ["/roles/1/replicas"]),
    ],
)
def test_constraint_json_path_maps_to_job_field(path: str, fields: list[str]) -> None:
    found = ["/" + "/".join(steps) for steps, _rule in rules_of({path: LOCKED}, "dlc").fields]
    assert found == fields
    assert unknown({path: LOCKED}, Document(TEMPLATE_FILE, "dlc")) == []


@pytest.mark.parametrize(
    "path",
    [
        "$",
        "",
        "JobSpecs",
        "$.Nope",
        "$.JobSpecs[",
        "/nope",
        "/roles/x/image",
        "/env/A/b",
        "$..a..b..c..d",
        "$.JobSpecs.x",
    ],
)
def test_constraint_naming_no_field_is_reported(path: str) -> None:
    assert unknown({path: LOCKED}, Document(TEMPLATE_FILE, "dlc")) == [path]


def test_constraint_locks_unused_key_known_to_dialect() -> None:
    rules = {"$.Settings.Caller": LOCKED}
    assert unknown(rules, Document(TEMPLATE_FILE, "dlc")) == []
    of = changed(Settings={"Caller": "me"})
    assert wrong(rules, of, of=of) == []
    assert wrong(rules, changed(Settings={"Caller": "you"}), of=of) == ["/Settings/Caller"]
    assert wrong(rules, TEMPLATE_FILE, of=of) == ["/Settings/Caller"]
    assert wrong(rules, of) == ["/Settings/Caller"]


@pytest.mark.parametrize("path", ["/env/LR", "$.Envs.LR", "$.Envs", "/env"])
def test_locked_field_rejects_changes(path: str) -> None:
    assert wrong({path: LOCKED}, TEMPLATE_FILE) == []
    assert wrong({path: LOCKED}, changed(Envs={"LR": "0.2"})) in (["/env/LR"], ["/env"])
    assert wrong({path: LOCKED}, changed(Envs={})) in (["/env/LR"], ["/env"])
    assert wrong({path: FREE}, changed(Envs={"LR": "0.2"})) == []


def test_lock_holds_in_every_dialect() -> None:
    for dialect in dialects.NAMES:
        same = dialects.convert(Document(TEMPLATE_FILE, "dlc"), dialect).document.text
        other = dialects.convert(Document(changed(UserCommand="rm -rf /"), "dlc"), dialect).document.text
        assert wrong({"/roles/0/command": LOCKED}, same, dialect) == [], dialect
        assert wrong({"/roles/0/command": LOCKED}, other, dialect) == ["/roles/0/command"], dialect


def test_lock_on_all_roles_covers_added_role() -> None:
    roles = json.loads(TEMPLATE_FILE)["JobSpecs"]
    more = changed(JobSpecs=[*roles, {**roles[0], "Type": "Master", "Image": "other"}])
    assert "/roles/1/image" in wrong({"/roles/*/image": LOCKED}, more)


@pytest.mark.parametrize("value", ["", None])
def test_required_field_rejects_empty_value(value: str | None) -> None:
    of = changed(Description="")
    assert wrong({"/description": REQUIRED}, changed(Description=value), of=of) == ["/description"]
    assert wrong({"/description": REQUIRED}, changed(Description="why"), of=of) == []


def test_strictest_of_several_constraints_wins() -> None:
    rules = rules_of({"/env": LOCKED, "/env/LR": FREE, "/roles/*/image": REQUIRED}, "dlc")
    assert rules.of("/env/LR") is LOCKED
    assert rules.of("/roles/3/image") is REQUIRED
    assert rules.of("/roles/3/command") is FREE


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("/roles/0/image", "$.JobSpecs[0].Image"),
        ("/roles/*/resources/gpus", "$.JobSpecs[*].ResourceConfig.GPU"),
        ("/env/LR", "$.Envs.LR"),
        ("/time_limit_s", "$.JobMaxRunningTimeMinutes"),
        ("/roles/0/env/A", ""),
        ("$.Envs", "$.Envs"),
    ],
)
def test_constraint_path_uses_vendor_spelling(pointer: str, path: str) -> None:
    assert as_json_path(pointer, "dlc") == path


def test_constraint_path_with_many_steps_is_parsed() -> None:
    assert steps_of("$" + ".a" * 100) == ("a",) * 100
    assert unknown({"$" + "..a" * 100: LOCKED}, Document(TEMPLATE_FILE, "dlc"))


@pytest.mark.parametrize(
    "more",
    [
        {"constraints": {"/nope": "locked"}},
        {"constraints": {"/name": "locked"}},
        {"constraints": {"/env/LR": "maybe"}},
        {
            "constraints": {"$.Envs": "locked"},
            "parameters": [{"name": "lr", "kind": "text", "fills": ["env.LR"], "default": "1"}],
        },
        {"parameters": [{"name": "key", "kind": "text", "fills": ["env.LR"]}]},
        {"parameters": [{"name": "lr", "kind": "choice", "fills": ["env.LR"]}]},
        {"parameters": [{"name": "lr", "kind": "text", "fills": ["secret_env.LR"]}]},
        {"parameters": [{"name": "lr", "kind": "text", "fills": ["time_limit_s"]}]},
        {"parameters": [{"name": "lr", "kind": "integer", "fills": ["env.LR"], "default": 1}]},
    ],
)
def test_template_with_unusable_definition_is_rejected(more: dict[str, Any]) -> None:
    good = {"id": "x", "title": "X", "dialect": "dlc", "text": TEMPLATE_FILE}
    JobTemplate.model_validate(good, strict=False)
    with pytest.raises(ValueError, match=r"constraints|parameters|field|locked|name|choose|variable|number"):
        JobTemplate.model_validate({**good, **more}, strict=False)
