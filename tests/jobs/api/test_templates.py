"""GET templates, POST templates/ID/file, and what is submitted with `template`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.models import Job, Sweep, TemplateUse
from jobs.submission import templates
from tests.factories import TEMPLATE_FILE, make_template
from tests.jobs.api.conftest import Api, People, api, body_of, problem

LR = {"name": "lr", "kind": "number", "fills": ["env.LR"], "default": "0.1", "label": "Learning rate"}
NAME = {"name": "name", "kind": "name", "fills": ["name"], "default": "train", "required": True}
LOCKS = {"/roles/0/image": "locked"}


def made(people: People, who: str = "owner", **columns: Any) -> str:
    owner = getattr(people, who)
    return make_template(owner, parameters=[NAME, LR], constraints=LOCKS, **columns).public_id


def filled(people: People, public_id: str, who: str = "owner", **body: Any) -> Any:
    return api(getattr(people, who)).post(f"templates/{public_id}/file", body)


def test_template_list_contains_only_visible_templates(people: People) -> None:
    mine = made(people)
    shared = made(people, "manager", workspace=people.quota.workspace)
    seen = {
        who: {each["id"] for each in body_of(api(getattr(people, who)).get("templates"))["templates"]}
        for who in ("owner", "member", "stranger", "admin")
    }
    assert all({"helloworld", "sweep"} <= ids for ids in seen.values())
    assert {who for who, ids in seen.items() if mine in ids} == {"owner"}
    assert {"owner", "member"} <= {who for who, ids in seen.items() if shared in ids}
    assert shared not in seen["stranger"]
    told = body_of(api(people.owner).get("templates"))["templates"]
    (own,) = (each for each in told if each["id"] == mine)
    assert (own["owner"], own["workspace"], own["version"]) == (people.owner.username, None, 1)
    assert [each["label"] for each in own["parameters"]] == ["Name", "Learning rate"]


def test_template_answers_fill_the_file_and_keep_the_rest(people: People) -> None:
    told = body_of(filled(people, made(people), answers={"lr": "0.5"}))
    assert told["template"].endswith("@1")
    file = json.loads(told["text"])
    assert (file["Envs"]["LR"], file["DisplayName"]) == ("0.5", "train")
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("answers", "pointer"), [({"lr": "much"}, "/lr"), ({"nothing": 1}, "/nothing"), ({"name": ""}, "/name")]
)
def test_template_with_an_invalid_answer_reports_its_place(
    people: People, answers: dict[str, Any], pointer: str
) -> None:
    answer = filled(people, made(people), answers=answers)
    assert (answer.status_code, problem(answer)["problems"][0]["pointer"]) == (400, pointer)


def test_template_hidden_or_retired_cannot_be_filled(people: People) -> None:
    mine = made(people)
    assert problem(Api().post(f"templates/{mine}/file", {}))["status"] == 401
    for who in ("member", "stranger", "admin"):
        assert problem(filled(people, mine, who))["status"] == 404
    assert problem(filled(people, mine, version=7))["status"] == 404
    found = templates.find(people.owner, mine)
    assert found is not None
    assert found.row is not None
    templates.retire(people.owner, found.row.template)
    assert problem(filled(people, mine))["status"] == 403


def test_template_locks_apply_to_submissions(people: People) -> None:
    told = body_of(filled(people, made(people)))
    sent = {"file": told["text"], "template": told["template"]}
    other = told["text"].replace(json.loads(TEMPLATE_FILE)["JobSpecs"][0]["Image"], "another/image")
    assert other != told["text"]
    for path, more in (("jobs", {}), ("sweeps", {"grid": {"env.LR": ["1", "2"]}})):
        answer = api(people.owner).post(path, {**sent, **more, "file": other})
        assert problem(answer)["problems"][0]["code"] == "locked_by_template"
        assert api(people.owner).post(path, {**sent, **more}).status_code == 201
        answer = api(people.stranger).post(path, {**sent, **more})
        assert problem(answer)["problems"][0]["code"] == "no_such_template"
    assert (Job.objects.count(), Sweep.objects.count(), TemplateUse.objects.count()) == (3, 1, 3)
