"""The pages of kept templates: what each kind of person sees and may do, and what a link prefills."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.urls import reverse

from jobs.models import Draft, Job, JobFile, PersonalSecret, Template, TemplateUse
from jobs.states import State
from jobs.submission import templates
from tests.factories import TEMPLATE_FILE, attempt_of, make_job, make_spec, make_template
from tests.jobs.web.conftest import People, browser, fragment, seen

pytestmark = pytest.mark.django_db

LR = {"name": "lr", "kind": "number", "fills": ["env.LR"], "default": "0.1", "label": "Learning rate"}
NAME = {"name": "name", "kind": "name", "fills": ["name"], "default": "train", "required": True}
LOCKS = {"/roles/0/image": "locked"}


@pytest.fixture
def mine(people: People) -> Template:
    return make_template(people.owner, parameters=[NAME, LR], constraints=LOCKS)


@pytest.fixture
def shared(people: People) -> Template:
    return make_template(people.manager, people.quota.workspace, "House style", parameters=[NAME, LR])


def kept(**changed: Any) -> dict[str, Any]:
    """What a browser sends to keep a template."""
    first = {"do": "keep", "name": "Training", "icon": "bolt", "text": TEMPLATE_FILE, "as_default": "on"}
    return {**first, **changed}


PAGES = ("template", "template_file", "template_edit")


@pytest.mark.parametrize(
    ("who", "own", "of_workspace", "changes"),
    [
        ("owner", 200, 200, 403),
        ("member", 404, 200, 403),
        ("manager", 404, 200, 200),
        ("stranger", 404, 404, 404),
        ("admin", 404, 200, 200),
    ],
)
def test_template_pages_return_expected_status_for_each_role(
    people: People, mine: Template, shared: Template, who: str, own: int, of_workspace: int, changes: int
) -> None:
    client = browser(getattr(people, who))
    for name in PAGES:
        assert client.get(reverse(name, args=[mine.public_id])).status_code == own, name
    for name in PAGES[:2]:
        assert client.get(reverse(name, args=[shared.public_id])).status_code == of_workspace, name
    assert client.get(reverse("template_edit", args=[shared.public_id])).status_code == changes
    listed = seen(client.get(reverse("templates")))
    assert (mine.public_id in listed, shared.public_id in listed) == (own == 200, of_workspace == 200)
    offered = seen(client.get(reverse("start")))
    assert (mine.public_id in offered, shared.public_id in offered) == (own == 200, of_workspace == 200)
    assert client.get(f"/start/{shared.public_id}").status_code == of_workspace


@pytest.mark.parametrize("asked", ["default", "retire", "back", "propose", "adopt", "decline"])
@pytest.mark.parametrize("who", ["owner", "member", "stranger"])
def test_template_change_by_unauthorized_user_is_refused(
    people: People, shared: Template, who: str, asked: str
) -> None:
    sent = {"do": asked, "number": 1, "workspace": people.quota.workspace.slug}
    client = browser(getattr(people, who))
    assert client.post(reverse("template_change", args=[shared.public_id]), sent).status_code in {403, 404}
    shared.refresh_from_db()
    assert (shared.retired_at, shared.proposed_to) == (None, None)
    edited = client.post(reverse("template_edit", args=[shared.public_id]), kept())
    assert edited.status_code in {403, 404}
    assert shared.versions.count() == 1


def test_template_from_job_has_prompt_and_lock(people: People) -> None:
    job = make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota, text=TEMPLATE_FILE, dialect="dlc")
    client = browser(people.owner)
    page = client.get(reverse("template_new"), {"job": job.public_id})
    assert 'name="rule:/env/LR"' in page.content.decode()
    rules = {
        "rule:/env/LR": "asked",
        "label:/env/LR": "Learning rate",
        "options:/env/LR": "0.1, 0.01",
        "rule:/roles/0/image": "locked",
        "rule:/roles/0/resources/cpu_milli": "asked",
        "options:/roles/0/resources/cpu_milli": "1-8",
    }
    answer = client.post(reverse("template_new"), kept(**rules, constraints='{"$.UserCommand": "required"}'))
    row = Template.objects.get(owner=people.owner)
    assert answer["Location"] == f"/templates/{row.public_id}"
    chosen = templates.find(people.owner, row.public_id)
    assert chosen is not None
    asked = {each.name: each for each in chosen.template.parameters}
    assert set(asked) == {"name", "lr", "cpus"}
    assert (asked["lr"].choices, asked["lr"].label) == (("0.1", "0.01"), "Learning rate")
    assert (asked["cpus"].default, asked["cpus"].most, asked["cpus"].times) == (2, 8, 1000)
    assert chosen.template.constraints == {"/roles/0/image": "locked", "$.UserCommand": "required"}
    assert "$.JobSpecs[0].Image" in seen(client.get(answer["Location"]))
    # What was said comes back when the next version is made, and stays when nothing is touched.
    edited = client.get(reverse("template_edit", args=[row.public_id])).content.decode()
    assert 'value="Learning rate"' in edited
    assert "$.UserCommand" in edited
    client.post(
        reverse("template_edit", args=[row.public_id]),
        kept(constraints='{"$.UserCommand": "required"}', notes="as it was"),
    )
    again = templates.find(people.owner, row.public_id)
    assert again is not None
    assert (again.template.version, again.template.parameters) == (2, chosen.template.parameters)
    assert again.template.constraints == chosen.template.constraints


def test_template_from_form_text_omits_its_secrets(people: People) -> None:
    text = TEMPLATE_FILE.replace('"LR"', '"API_PASSWORD": "canary-4711", "LR"')
    page = browser(people.owner).post(reverse("template_new"), {"text": text, "dialect": ""})
    assert page.status_code == 200
    assert "canary-4711" not in page.content.decode()
    assert "$SECRET:API_PASSWORD" in seen(page)
    draft = Draft.objects.create(owner=people.owner, text=TEMPLATE_FILE)
    page = browser(people.owner).get(reverse("template_new"), {"draft": draft.pk})
    assert "python train.py" in seen(page)
    page = browser(people.member).get(reverse("template_new"), {"draft": draft.pk})
    assert "python train.py" not in seen(page)


def test_template_retains_sweep_parameters(people: People) -> None:
    client = browser(people.owner)
    sent = {"text": TEMPLATE_FILE, "dialect": "", "sweep_parameters": "env.LR = 1, 2"}
    assert "env.LR = 1, 2" in client.post(reverse("template_new"), sent).content.decode()
    assert "is not a parameter with values" in seen(client.post(reverse("template_new"), kept(sweep="half")))
    to = client.post(reverse("template_new"), kept(sweep="env.LR = 1, 2"))["Location"]
    found = templates.find(people.owner, to.rpartition("/")[2])
    assert found is not None
    assert found.template.sweep == "env.LR = 1, 2"
    edited = client.get(reverse("template_edit", args=[found.template.id]))
    assert "env.LR = 1, 2" in edited.content.decode()
    begun = client.get("/jobs/new", {"template": found.template.id})
    assert begun.context["sweep"].is_meant


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"text": "{"}, "problem"),
        ({"name": ""}, "id_name_error"),
        ({"constraints": "{"}, "id_constraints_error"),
        ({"constraints": '{"$.UserCommand": "maybe"}'}, "id_constraints_error"),
        ({"constraints": '{"$.Nope": "locked"}'}, "$.Nope"),
        ({"questions": '[{"name": "x"}]'}, "can't be kept so"),
        ({"questions": "{}"}, "id_questions_error"),
        ({"workspace": "vision"}, "id_workspace_error"),
    ],
)
def test_template_form_with_invalid_input_shows_error_and_retains_input(
    people: People, changed: dict[str, str], told: str
) -> None:
    answer = browser(people.owner).post(reverse("template_new"), kept(description="my words", **changed))
    assert answer.status_code == 422
    assert told in seen(answer)
    assert "my words" in seen(answer)
    assert not Template.objects.exists()


def test_template_version_is_compared_with_the_previous_one(people: People, mine: Template) -> None:
    client = browser(people.owner)
    text = TEMPLATE_FILE.replace("--lr $LR", "--lr $LR --epochs 3")
    client.post(reverse("template_edit", args=[mine.public_id]), kept(text=text, notes="three epochs"))
    page = seen(client.get(reverse("template", args=[mine.public_id])))
    assert "three epochs" in page
    assert "From version 1 to 2" in page
    assert "Start command: --epochs 3" in page
    client.post(reverse("template_change", args=[mine.public_id]), {"do": "default", "number": "1"})
    mine.refresh_from_db()
    assert (mine.default_number, mine.latest_number) == (1, 2)
    assert "--epochs" not in seen(client.get(reverse("template_file", args=[mine.public_id])))
    assert "--epochs" in seen(client.get(reverse("template_file", args=[mine.public_id]), {"version": "2"}))


def test_retired_template_starts_no_jobs_and_can_be_restored(people: People, mine: Template) -> None:
    client = browser(people.owner)
    there = reverse("template_change", args=[mine.public_id])
    client.post(there, {"do": "retire"})
    assert mine.public_id not in seen(client.get(reverse("start")))
    assert client.get(f"/start/{mine.public_id}")["Location"] == f"/templates/{mine.public_id}"
    assert "Retired" in seen(client.get(reverse("templates")))
    client.post(there, {"do": "back"})
    assert client.get(f"/start/{mine.public_id}").status_code == 200


def test_template_proposal_is_shown_to_workspace_manager(people: People, mine: Template) -> None:
    there = reverse("template_change", args=[mine.public_id])
    browser(people.owner).post(there, {"do": "propose", "workspace": "elsewhere"})
    assert browser(people.manager).get(reverse("template", args=[mine.public_id])).status_code == 404
    browser(people.owner).post(there, {"do": "propose", "workspace": "vision"})
    assert "Take over for Vision" in seen(
        browser(people.manager).get(reverse("template", args=[mine.public_id]))
    )
    assert browser(people.member).get(reverse("template", args=[mine.public_id])).status_code == 404
    browser(people.manager).post(there, {"do": "adopt"})
    made = Template.objects.get(workspace=people.quota.workspace)
    assert browser(people.member).get(f"/start/{made.public_id}").status_code == 200


def test_template_list_supports_search_and_preview(people: People, mine: Template) -> None:
    client = browser(people.owner)
    found = client.get(reverse("start"), {"q": "jupyterlab"}, headers=fragment("start-list"))
    assert "/start/jupyterlab" in seen(found)
    assert mine.public_id not in seen(found)
    assert "<h1" not in found.content.decode()
    assert mine.public_id in seen(client.get(reverse("start"), {"q": "raini"}))
    assert "No matching templates" in seen(client.get(reverse("start"), {"q": "zebra"}))
    assert "DisplayName" in client.get(reverse("template_file", args=["shell"])).content.decode()
    assert client.get(reverse("template_file", args=["nonsense"])).status_code == 404


def test_template_page_shows_its_jobs_to_workspace_members(people: People, shared: Template) -> None:
    job = make_job(owner=people.owner, quota=people.quota, name="from-house")
    TemplateUse.objects.create(job=job, version=shared.versions.get(), number=1)
    for who, told in (("member", True), ("manager", True), ("admin", True)):
        page = seen(browser(getattr(people, who)).get(reverse("template", args=[shared.public_id])))
        assert ("from-house" in page) is told
        assert ("alice, version 1" in page) is told
    page = seen(browser(people.owner).get(f"/jobs/{job.public_id}/"))
    assert "House style" in page


# --- from the questions, and from a link -------------------------------------------------------------------


def test_template_answers_create_job_with_recorded_origin(people: People, mine: Template) -> None:
    client = browser(people.owner)
    assert "Learning rate" in seen(client.get(f"/start/{mine.public_id}"))
    sent = {"do": "start", "key": "k1", "name": "mine", "lr": "1e-3"}
    answer = client.post(f"/start/{mine.public_id}?version=1", sent)
    job = Job.objects.get()
    assert answer["Location"] == f"/jobs/{job.public_id}/"
    assert JobFile.objects.get(job=job).spec.env == {"LR": "1e-3"}
    assert TemplateUse.objects.get(job=job).version == mine.versions.get()
    assert client.post(f"/start/{mine.public_id}", {**sent, "key": "k2", "lr": "much"}).status_code == 422


def test_template_opened_in_the_form_shows_its_locks(people: People, mine: Template) -> None:
    client = browser(people.owner)
    answer = client.post(f"/start/{mine.public_id}", {"do": "edit", "key": "k1", "name": "mine", "lr": "2"})
    draft = Draft.objects.get()
    assert draft.template == f"{mine.public_id}@1"
    page = client.get(answer["Location"])
    assert f'name="template" value="{mine.public_id}@1"' in page.content.decode()
    assert "Locked by the template: Image." in seen(page)
    assert "Locked by the template “Training” v1." in seen(page)
    field = re.search(r'<[a-z]+[^>]*name="roles-0-image"[^>]*>', page.content.decode())
    assert field is not None
    assert " disabled" in field[0]
    assert not re.search(r'name="form-go-on"\s+value="roles-0-image"', page.content.decode())
    sent = {"text": draft.text.replace("torch:1", "evil:1"), "key": "k2", "template": draft.template}
    refused = client.post(reverse("job_new"), sent)
    assert refused.status_code == 422
    assert "Image is locked by template “Training” v1" in seen(refused)
    checked = client.post(reverse("job_check"), sent).json()
    assert [each["code"] for each in checked["problems"]] == ["locked_by_template"]
    assert client.post(reverse("job_new"), {**sent, "text": draft.text}).status_code == 302
    like = client.get(reverse("job_new"), {"like": Job.objects.get().public_id})
    assert f'name="template" value="{mine.public_id}@1"' in like.content.decode()


def test_template_link_prefills_form_without_submitting(people: People, mine: Template) -> None:
    client = browser(people.owner)
    for address in ("/jobs/new", f"/start/{mine.public_id}"):
        asked = {"template": mine.public_id, "version": "1", "lr": "0.5", "name": "linked", "nonsense": "1"}
        page = client.get(address, asked)
        assert '"LR": "0.5"' in seen(page)
        assert '"DisplayName": "linked"' in seen(page)
        assert "no prompt named nonsense" in seen(page)
    page = client.get("/jobs/new", {"template": mine.public_id, "lr": "$(reboot)", "name": "a b"})
    assert '"LR": "0.1"' in seen(page)
    assert "defaults are used instead" in seen(page)
    assert client.get("/jobs/new", {"template": mine.public_id, "version": "7"}).status_code == 404
    assert client.get("/jobs/new", {"template": "shell", "gpus": "2"}).status_code == 200
    assert browser(people.member).get("/jobs/new", {"template": mine.public_id}).status_code == 404
    assert not Job.objects.exists()
    assert not Draft.objects.exists()


def test_secret_prompt_accepts_only_names_of_own_secrets(people: People) -> None:
    asked = {"name": "token", "kind": "secret", "fills": ["secret_env.HF_TOKEN"], "required": True}
    text = json.dumps({**json.loads(TEMPLATE_FILE), "Envs": {"HF_TOKEN": "$SECRET:HF_TOKEN"}})
    row = make_template(people.owner, text=text, parameters=[NAME, asked])
    secret = PersonalSecret(owner=people.owner, name="MY_TOKEN")
    secret.encrypt("canary-1234")
    secret.save()
    client = browser(people.owner)
    assert "MY_TOKEN" in seen(client.get(f"/start/{row.public_id}"))
    sent = {"do": "start", "key": "k1", "name": "mine", "token": "MY_TOKEN"}
    assert client.post(f"/start/{row.public_id}", {**sent, "token": "THEIRS"}).status_code == 422
    assert client.post(f"/start/{row.public_id}", sent).status_code == 302
    assert "$SECRET:MY_TOKEN" in JobFile.objects.get().text


# --- one more hour -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "status", "added"),
    [("owner", 302, 3600), ("manager", 302, 0), ("member", 403, 0), ("stranger", 404, 0)],
)
def test_job_extension_by_one_hour_is_limited_to_the_owner(
    people: People, who: str, status: int, added: int
) -> None:
    spec = make_spec(time_limit_s=7200)
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec)
    TemplateUse.objects.create(job=job, shipped="shell")
    client = browser(getattr(people, who))
    page = client.get(f"/jobs/{job.public_id}/").content.decode()
    assert (reverse("job_extend", args=[job.public_id]) in page) is (who == "owner")
    assert client.post(reverse("job_extend", args=[job.public_id])).status_code == status
    assert attempt_of(job).extended_s == added
    if added:
        assert "Extended by 1 hour" in seen(client.get(f"/jobs/{job.public_id}/"))
