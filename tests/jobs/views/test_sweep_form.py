"""The New job page's part for sweeps: what is typed, what becomes of it, and that nothing typed is lost."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms
from django.db import OperationalError

from jobs import services
from jobs.models import Draft, Job, Sweep
from jobs.views.sweep_form import read
from tests.factories import TEMPLATE_FILE
from tests.jobs.views.conftest import People, browser, seen

LINES = "env.LR = 0.1, 0.01\n"


def post(people: People, who: str = "owner", **said: Any) -> Any:
    first = {"text": TEMPLATE_FILE, "key": "k1", "do": "sweep", "sweep_parameters": LINES}
    return browser(getattr(people, who) if who else None).post("/jobs/new", {**first, **said})


def test_a_sweep_is_submitted_with_its_values(people: People) -> None:
    response = post(people, sweep_at_once="1")
    sweep = Sweep.objects.get()
    assert response["Location"] == f"/sweeps/{sweep.public_id}"
    assert (sweep.owner, sweep.at_once, sweep.names) == (people.owner, 1, ["env.LR"])
    assert [run.values for run in sweep.runs.all()] == [{"env.LR": 0.1}, {"env.LR": 0.01}]
    assert post(people, sweep_at_once="1")["Location"] == response["Location"], "a double click"
    assert Job.objects.count() == 2


def test_the_same_page_with_other_values_is_not_sent_twice(people: People) -> None:
    post(people)
    response = post(people, sweep_parameters="env.LR = 5")
    assert response.status_code == 409
    assert "You already submitted this page as a sweep." in seen(response)
    assert "env.LR = 5" in seen(response)
    assert response.context["form"]["key"].value() != "k1"
    assert Sweep.objects.count() == 1


def test_what_was_typed_stays_while_the_database_is_busy(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_arguments: object, **_options: object) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(services, "store", locked)
        response = post(people)
    assert response.status_code == 503
    assert LINES.strip() in seen(response)
    assert post(people).status_code == 302, "nothing was half done"
    assert (Sweep.objects.count(), Job.objects.count()) == (1, 2)


def test_the_place_is_the_chosen_one(people: People) -> None:
    quota = people.quota
    post(people, place=f"{quota.workspace.slug}/{quota.cluster.slug}/{quota.slug}")
    assert {run.job.quota for run in Sweep.objects.get().runs.all()} == {quota}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"sweep_parameters": "env.LR"}, "Line 1 is no parameter with values"),
        ({"sweep_parameters": "a = 1\na = 2"}, "Line 2 says a again"),
        ({"sweep_parameters": ""}, "This field is required."),
        ({"sweep_parameters": "[1]"}, "neither a JSON list of objects"),
        ({"sweep_parameters": "nowhere = 1, 2"}, "The job has no field nowhere"),
        ({"sweep_parameters": "priority = 99"}, "priority can't be “99”."),
        ({"sweep_at_once": "0"}, "greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_told_at_the_part_and_what_was_typed_stays(
    people: People, said: dict[str, str], told: str
) -> None:
    response = post(people, **said)
    assert response.status_code == 422
    page = seen(response)
    part = page.partition('id="sweep"')[2].partition("</details>")[0]
    assert told in part
    assert " ".join(said.get("sweep_parameters", LINES).split()) in " ".join(part.split())
    assert "python train.py" in page
    assert (Sweep.objects.count(), Job.objects.count(), Draft.objects.count()) == (0, 0, 1)


def test_what_is_wrong_with_the_file_is_told_beside_it(people: People) -> None:
    response = post(people, text="{")
    assert response.status_code == 422
    assert response.context["findings"].problems
    assert not response.context["sweep"].problems
    assert response.context["sweep"].is_open


def test_other_buttons_keep_what_was_typed_and_do_not_judge_it(people: People) -> None:
    response = post(people, do="check", sweep_parameters="half = ")
    assert response.status_code == 200
    assert "half = " in response.content.decode()
    assert "is no parameter" not in seen(response)
    assert not browser(people.owner).get("/jobs/new").context["sweep"].is_open


def test_a_stranger_sends_nothing_to_a_place_that_is_not_theirs(people: People) -> None:
    quota = people.quota
    place = f"{quota.workspace.slug}/{quota.cluster.slug}/{quota.slug}"
    assert post(people, "stranger", place=place).status_code == 422
    assert post(people, "")["Location"].startswith("/sign-in")
    assert Sweep.objects.count() == 0


@pytest.mark.parametrize("who", ["member", "manager", "admin"])
def test_each_who_may_submit_owns_their_own(people: People, who: str) -> None:
    assert post(people, who).status_code == 302
    assert Sweep.objects.get().owner == getattr(people, who)


@pytest.mark.parametrize(
    ("text", "grid", "listed"),
    [
        ("# a comment\n\nlr=0.1,1e-5 , 0.10\r\n", {"lr": [0.1, "1e-5", "0.10"]}, ()),
        ('x = "a, b", c, true, NaN, [1', {"x": ["a, b", "c", True, "NaN", "[1"]}, ()),
        ("cmd = a=b", {"cmd": ["a=b"]}, ()),
        ('{"a": [1, "2"]}', {"a": [1, "2"]}, ()),
        ('[{"a": 1}, {"a": 2}]', {}, [{"a": 1}, {"a": 2}]),
    ],
)
def test_what_is_typed_is_read(text: str, grid: Any, listed: Any) -> None:
    typed = read(text)
    assert (typed.grid, typed.listed) == (grid, listed)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{1}",
        '{"a": 1}',
        '[{"a": NaN}]',
        '[{"a": "\\ud800"}]',
        '[{"a": "\\u0000"}]',
        "[" * 9000,
        "= 1",
        "a =",
    ],
)
def test_what_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(forms.ValidationError):
        read(text)
