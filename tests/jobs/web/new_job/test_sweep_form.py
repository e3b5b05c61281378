"""The New job page's part for sweeps: what is typed, what becomes of it, and that nothing typed is lost."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError

from jobs import submission
from jobs.jobtemplates import SHIPPED
from jobs.models import Draft, Job, Sweep, TemplateUse
from jobs.states import State
from jobs.submission.sweeps.parameter_text import InvalidParameters, parse_parameters
from tests.factories import TEMPLATE_FILE, make_job, make_template
from tests.jobs.web.conftest import People, browser, seen

LINES = "env.LR = 0.1, 0.01\n"


def post(people: People, who: str = "owner", **said: Any) -> Any:
    first = {"text": TEMPLATE_FILE, "key": "k1", "do": "submit", "sweep_parameters": LINES}
    return browser(getattr(people, who) if who else None).post("/jobs/new", {**first, **said})


def submit_label(page: Any) -> str:
    label = seen(page).partition('<span id="submit-label">')[2]
    return label.partition("</span>")[0].strip()


def test_sweep_form_without_parameters_submits_one_job(people: People) -> None:
    assert post(people, sweep_parameters="# lr = 0.1, 0.01\n \n", sweep_at_once="0").status_code == 302
    assert (Job.objects.count(), Sweep.objects.count()) == (1, 0)


@pytest.mark.parametrize(
    ("parameters", "label"),
    [
        ("", "Submit"),
        ("a = 1, 2\nb = 1, 2, 3", "Submit 6 jobs"),
        ("a = 1", "Submit 1 job"),
        ("a =", "Submit"),
    ],
)
def test_submit_button_counts_the_jobs_of_the_sweep(people: People, parameters: str, label: str) -> None:
    page = post(people, do="check", sweep_parameters=parameters)
    assert submit_label(page) == label
    assert seen(page).count('value="submit"') == 1
    assert 'value="sweep"' not in seen(page)


def test_sweep_submission_removes_its_draft(people: People) -> None:
    client = browser(people.owner)
    sent = {"text": TEMPLATE_FILE, "key": "k1", "sweep_parameters": LINES, "do": "submit"}
    client.post("/drafts/save", sent)
    # The page does not know yet that its first save has made a draft.
    assert client.post("/jobs/new", sent).status_code == 302
    assert not Draft.objects.exists()


def test_sweep_is_submitted_with_its_values(people: People) -> None:
    response = post(people, sweep_at_once="1")
    sweep = Sweep.objects.get()
    assert response["Location"] == f"/sweeps/{sweep.public_id}"
    assert (sweep.owner, sweep.at_once, sweep.names) == (people.owner, 1, ["env.LR"])
    assert [run.values for run in sweep.runs.all()] == [{"env.LR": 0.1}, {"env.LR": 0.01}]
    assert post(people, sweep_at_once="1")["Location"] == response["Location"], "a double click"
    assert Job.objects.count() == 2


def test_resubmitted_page_with_other_values_is_refused(people: People) -> None:
    post(people)
    response = post(people, sweep_parameters="env.LR = 5")
    assert response.status_code == 409
    assert "Already submitted as a sweep." in seen(response)
    assert "env.LR = 5" in seen(response)
    assert response.context["form"]["key"].value() != "k1"
    assert Sweep.objects.count() == 1


def test_sweep_form_with_busy_database_retains_input(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_arguments: object, **_options: object) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(submission, "store", locked)
        response = post(people)
    assert response.status_code == 503
    assert LINES.strip() in seen(response)
    assert post(people).status_code == 302, "nothing was half done"
    assert (Sweep.objects.count(), Job.objects.count()) == (1, 2)


def test_sweep_jobs_use_the_chosen_quota(people: People) -> None:
    quota = people.quota
    post(people, place=f"{quota.workspace.slug}/{quota.cluster.slug}/{quota.slug}")
    assert {run.job.quota for run in Sweep.objects.get().runs.all()} == {quota}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"sweep_parameters": "env.LR"}, "Line 1 is not a parameter with values"),
        ({"sweep_parameters": "a = 1\na = 2"}, "Line 2 repeats a."),
        ({"sweep_parameters": "env.LR = uniform(0, 1)"}, "A range needs a number of trials."),
        ({"sweep_parameters": "env.LR = log_uniform(0, 1)\ntrials: 3"}, "env.LR has no valid range"),
        ({"sweep_parameters": "env.LR = uniform(a, 1)\ntrials: 3"}, "Line 1 has no valid range."),
        ({"sweep_parameters": "env.LR = 1\nobjective: loss"}, "objective has no valid value."),
        ({"sweep_parameters": "env.LR = 1\nearly_stop: 5"}, "Early stop needs an objective."),
        ({"sweep_parameters": "[1]"}, "Must be a JSON list of objects or a JSON object of lists"),
        ({"sweep_parameters": "nowhere = 1, 2"}, "Unknown field nowhere"),
        ({"sweep_parameters": "priority = 99"}, "priority can't be “99”."),
        ({"sweep_at_once": "0"}, "greater than or equal to 1"),
    ],
)
def test_sweep_form_with_invalid_input_shows_error_and_retains_input(
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


def test_job_file_error_is_shown_beside_the_file_not_the_sweep(people: People) -> None:
    response = post(people, text="{")
    assert response.status_code == 422
    assert response.context["findings"].problems
    assert not response.context["sweep"].problems
    assert response.context["sweep"].is_open


def test_sweep_form_on_check_retains_input_without_validating_it(people: People) -> None:
    response = post(people, do="check", sweep_parameters="half = ")
    assert response.status_code == 200
    assert "half = " in response.content.decode()
    assert "is not a parameter" not in seen(response)
    assert not browser(people.owner).get("/jobs/new").context["sweep"].is_open


def test_sweep_submission_to_inaccessible_quota_is_refused(people: People) -> None:
    quota = people.quota
    place = f"{quota.workspace.slug}/{quota.cluster.slug}/{quota.slug}"
    assert post(people, "stranger", place=place).status_code == 422
    assert post(people, "")["Location"].startswith("/sign-in")
    assert Sweep.objects.count() == 0


@pytest.mark.parametrize("who", ["member", "manager", "admin"])
def test_sweep_is_owned_by_its_submitter(people: People, who: str) -> None:
    assert post(people, who).status_code == 302
    assert Sweep.objects.get().owner == getattr(people, who)


LOCKS = {"/roles/0/image": "locked", "/env/LR": "locked"}


def test_sweep_submission_enforces_locks_of_its_template(people: People) -> None:
    ref = f"{make_template(people.owner, constraints=LOCKS).public_id}@1"
    response = post(people, template=ref)
    assert response.status_code == 422
    page = seen(response).partition('id="sweep"')[2].partition("</details>")[0]
    assert "is locked by template" in page
    assert Sweep.objects.count() == 0
    image = TEMPLATE_FILE.replace('"Image": "', '"Image": "other/')
    assert image != TEMPLATE_FILE
    assert post(people, template=ref, text=image, sweep_parameters="priority = 1, 2").status_code == 422
    assert Sweep.objects.count() == 0
    assert post(people, template=ref, sweep_parameters="priority = 1, 2").status_code == 302
    uses = TemplateUse.objects.all()
    assert {(use.job.sweep_run.number, use.number) for use in uses} == {(1, 1), (2, 1)}
    assert post(people, sweep_parameters="priority = 1, 2").status_code == 409, "without its template"


def test_sweep_submission_rejects_template_hidden_from_the_user(people: People) -> None:
    ref = f"{make_template(people.member).public_id}@1"
    assert post(people, template=ref).status_code == 422
    assert Sweep.objects.count() == 0


def test_sweep_of_earlier_job_retains_link_to_its_origin(people: People) -> None:
    first = make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota)
    hidden = make_job(State.SUCCEEDED, owner=people.stranger)
    assert post(people, origin=first.public_id).status_code == 302
    assert {run.job.origin for run in Sweep.objects.get().runs.all()} == {first}
    assert post(people, key="k2", origin=hidden.public_id).status_code == 302
    assert {run.job.origin for run in Sweep.objects.first().runs.all()} == {None}  # type: ignore[union-attr]


def test_sweep_template_opens_new_job_form_with_sweep_parameters(people: People) -> None:
    client = browser(people.owner)
    asked = client.get("/start/sweep")
    assert 'value="edit" data-primary' in " ".join(asked.content.decode().split())
    answers = {**asked.context["form"].initial, "key": "s1", "do": "edit", "command": "echo $SEED"}
    page = client.get(client.post("/start/sweep", answers)["Location"])
    part = page.context["sweep"]
    assert part.is_open
    assert part.form["sweep_parameters"].value() == SHIPPED["sweep"].sweep
    assert submit_label(page) == "Submit 4 jobs"
    linked = client.get("/jobs/new?template=sweep")
    assert linked.context["sweep"].form["sweep_parameters"].value() == SHIPPED["sweep"].sweep
    sent = {"text": page.context["text"], "key": "s2", "do": "submit", "template": "sweep@1"}
    sent |= {"sweep_parameters": SHIPPED["sweep"].sweep, "sweep_at_once": "2"}
    assert client.post("/jobs/new", sent).status_code == 302
    assert Sweep.objects.get().runs.count() == 4
    assert TemplateUse.objects.filter(shipped="sweep").count() == 4


def test_draft_with_sweep_retains_its_parameters(people: People) -> None:
    client = browser(people.owner)
    sent = {"text": TEMPLATE_FILE, "key": "one", "sweep_parameters": "half = ", "sweep_at_once": "x2"}
    client.post("/drafts/save", sent)
    draft = Draft.objects.get()
    assert (draft.sweep, draft.at_once) == ("half = ", "x2")
    page = client.get(f"/jobs/new?draft={draft.pk}")
    assert page.context["sweep"].form["sweep_parameters"].value() == "half = "
    assert page.context["sweep"].form["sweep_at_once"].value() == "x2"
    # Another window that comes with what it knew keeps its own beside it.
    client.post("/drafts/save", {**sent, "draft": draft.pk, "draft_version": 1, "sweep_parameters": LINES})
    other = {**sent, "key": "two", "draft": draft.pk, "draft_version": 1, "sweep_parameters": "a = 3"}
    client.post("/drafts/save", other)
    beside = draft.versions.get(beside=True)
    assert (beside.sweep, beside.at_once) == ("a = 3", "x2")
    shown = client.get(f"/jobs/new?draft={draft.pk}&version={beside.pk}")
    assert shown.context["sweep"].form["sweep_parameters"].value() == "a = 3"
    earlier = draft.versions.get(beside=False)
    assert earlier.sweep == "half = "


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
def test_parameter_parser_reads_grid_and_listed_values(text: str, grid: Any, listed: Any) -> None:
    typed = parse_parameters(text)
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
def test_parameter_parser_rejects_invalid_text(text: str) -> None:
    with pytest.raises(InvalidParameters):
        parse_parameters(text)


SEARCH = """env.LR = log_uniform(1e-5, 0.1)
env.DEPTH = int(2, 4)
env.KIND = a, b
trials: 5
seed: 3
objective: min val/loss
early_stop: 100 4
"""


def test_random_search_with_an_objective_is_submitted_the_same_for_the_same_seed(people: People) -> None:
    assert submit_label(post(people, do="check", sweep_parameters=SEARCH)) == "Submit 5 jobs"
    post(people, sweep_parameters=SEARCH)
    post(people, sweep_parameters=SEARCH, key="k2")
    post(people, sweep_parameters=SEARCH.replace("seed: 3", "seed: 4"), key="k3")
    third, second, first = Sweep.objects.all()
    assert (first.objective, first.goal, first.stop_after, first.stop_jobs) == ("val/loss", "min", 100, 4)
    drawn = [[run.values for run in each.runs.all()] for each in (first, second, third)]
    assert drawn[0] == drawn[1] != drawn[2]
    for values in drawn[0]:
        assert 1e-5 <= values["env.LR"] <= 0.1
        assert values["env.DEPTH"] in (2, 3, 4)
        assert values["env.KIND"] in ("a", "b")
