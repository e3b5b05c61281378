"""A field of the form is changed: the answer is the file with the change in it, and the form anew."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.test import Client

from jobs.models import Draft, Job, PersonalSecret
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser
from tests.jobs.web.test_new import HELLO

DLC = """{
  // the first one of the week
  "DisplayName": "train",
  "JobType": "PyTorchJob",
  "Mine": {"kept": true},
  "JobSpecs": [
    {"Type": "Worker", "Image": "registry.example.com/team/train:1", "PodCount": 1,
     "ResourceConfig": {"CPU": "4", "Memory": "16Gi"}}
  ],
  "UserCommand": "python train.py",
  "JobMaxRunningTimeMinutes": 60
}
"""
LOCKED = DLC.replace(
    '"PodCount"',
    '"ImageConfig": {"DockerRegistry": "r.example.com", "Username": "me", "Password": "canary-51f0"},'
    '\n     "PodCount"',
)


def change(client: Client, text: str = DLC, **fields: str) -> Any:
    """What the answer is; the fields' names have `_` for `-`."""
    values = {name.replace("_", "-"): value for name, value in fields.items()}
    shown = values.pop("form-shown", None)
    sent = {"text": text, "form-shown": "{}" if shown is None else shown, **values}
    return json.loads(client.post("/jobs/form/change", sent).content)


def form_of(answer: Any) -> str:
    return " ".join(unescape(answer["form"]).split())


def test_a_changed_field_is_a_change_of_the_text_and_everything_else_stays(people: People) -> None:
    answer = change(browser(people.owner), roles_0_cpu="8")
    assert answer["text"] == DLC.replace('"CPU": "4"', '"CPU": "8"')
    assert (answer["dialect"], answer["problems"]) == ("dlc", [])
    assert 'name="roles-0-cpu" value="8"' in form_of(answer)


def test_nothing_changed_is_the_text_as_it_was(people: People) -> None:
    assert change(browser(people.owner))["text"] == DLC


def test_what_was_only_shown_does_not_undo_what_was_written_meanwhile(people: People) -> None:
    shown = {"name": "before", "description": ""}
    answer = change(browser(people.owner), form_shown=json.dumps(shown), name="before", description="typed")
    assert '"DisplayName": "train"' in answer["text"]
    assert '"Description": "typed"' in answer["text"]


def test_all_that_is_wrong_is_told_beside_its_field_and_what_was_typed_stays(people: People) -> None:
    answer = change(browser(people.owner), roles_0_cpu="many", priority="12", name="next")
    form = form_of(answer)
    assert answer["text"] == DLC.replace('"train"', '"next"')
    assert "“many” is not a number." in form
    assert 'name="roles-0-cpu" value="many"' in form
    assert "Must be at most 9." in form
    assert 'name="priority" value="12"' in form
    assert 'aria-invalid="true"' in form


def test_text_that_can_not_be_read_is_never_touched(people: People) -> None:
    answer = change(browser(people.owner), "{ half", name="other")
    assert answer["text"] == "{ half"
    assert "data-read-only" in answer["form"]
    assert 'name="name" value="other"' in form_of(answer)


SBATCH = "#!/bin/bash\n#SBATCH --job-name=scripted\n#SBATCH --nodes=1\npython train.py\n"


def test_a_field_that_the_dialect_has_no_words_for_is_off_and_says_why(people: People) -> None:
    form = form_of(change(browser(people.owner), SBATCH))
    assert "Slurm sbatch script doesn't support installing Python packages before start." in form
    assert 'name="form-go-on" value="libraries-folder"' in form
    assert "Convert to PAI-DLC" in form


def test_going_on_as_dlc_carries_everything_over(people: People) -> None:
    answer = change(browser(people.owner), SBATCH, form_go_on="libraries-folder")
    assert (answer["dialect"], answer["pinned"]) == ("dlc", "")
    assert json.loads(answer["text"])["DisplayName"] == "scripted"
    assert "data-read-only" not in answer["form"]


def test_what_would_be_no_job_any_more_is_refused_beside_the_field(people: People) -> None:
    answer = change(browser(people.owner), HELLO, roles_0_command="")
    assert answer["text"] == HELLO
    assert "field-error" in answer["form"]


def test_a_value_that_the_dialect_does_not_say_is_told(people: People) -> None:
    answer = change(browser(people.owner), SBATCH, priority="3")
    assert answer["text"] == SBATCH
    assert "Not supported by this job file format." in form_of(answer)


def test_rows_are_added_and_removed(people: People) -> None:
    client = browser(people.owner)
    answer = change(client, env_0_name="A", env_0_value="1", env_1_name="B", env_1_value="2")
    assert '"Envs"' in answer["text"]
    shown = json.dumps({"env-0-name": "A", "env-0-value": "1", "env-1-name": "B", "env-1-value": "2"})
    fields = {"env_0_name": "A", "env_0_value": "1", "env_1_name": "B", "env_1_value": "2"}
    gone = change(client, answer["text"], form_shown=shown, form_remove="env-0", **fields)
    assert '"B": "2"' in gone["text"]
    assert '"A": "1"' not in gone["text"]


def test_a_role_is_added(people: People) -> None:
    answer = change(browser(people.owner), form_add="roles")
    assert answer["text"].count('"Type"') == 2
    assert 'name="roles-1-command"' in answer["form"]


def test_a_pasted_env_file_becomes_rows_and_nothing_in_it_is_expanded(people: People) -> None:
    pasted = "# mine\r\nexport A='1 2'\r\nHOME_OF=$HOME/${USER}\r\nEMPTY=\r\n"
    answer = change(browser(people.owner), env_paste=pasted)
    form = form_of(answer)
    for name, value in {"A": "1 2", "HOME_OF": "$HOME/${USER}", "EMPTY": ""}.items():
        assert f'"{name}": "{value}"' in answer["text"]
        assert f'value="{name}"' in form


def test_a_typed_password_goes_to_the_secrets_and_is_never_shown(people: People) -> None:
    client = browser(people.owner)
    answer = change(client, registry_username="me", registry_password="canary-77aa")
    secret = PersonalSecret.objects.get(owner=people.owner)
    assert (secret.name, secret.reveal()) == ("REGISTRY_PASSWORD", "canary-77aa")
    assert "$SECRET:REGISTRY_PASSWORD" in answer["text"]
    assert "canary-77aa" not in json.dumps(answer)
    again = change(client, answer["text"], registry_secret="REGISTRY_PASSWORD", registry_password="canary-2")
    assert again["text"] == answer["text"]
    assert PersonalSecret.objects.get(owner=people.owner).reveal() == "canary-2"


def test_a_password_in_the_file_stays_there_and_is_not_in_the_form(people: People) -> None:
    answer = change(browser(people.owner), LOCKED, registry_username="you")
    assert answer["text"] == LOCKED.replace('"me"', '"you"')
    assert "canary-51f0" not in answer["form"]


def test_only_the_persons_own_secrets_are_offered(people: People) -> None:
    for user, name in ((people.owner, "MINE"), (people.member, "THEIRS"), (people.stranger, "FAR")):
        secret = PersonalSecret(owner=user, name=name)
        secret.encrypt("x")
        secret.save()
    form = form_of(change(browser(people.owner)))
    assert '<option value="MINE"' in form
    assert "THEIRS" not in form
    assert "FAR" not in form


def test_a_name_that_is_taken_is_told_with_a_free_one(people: People) -> None:
    make_job(owner=people.owner, quota=people.quota, name="train")
    form = form_of(change(browser(people.owner)))
    assert "You already have a job with this name; train-2 is available." in form
    assert "You already have a job with this name" not in form_of(change(browser(people.member)))


def test_a_chosen_dialect_stays_chosen(people: People) -> None:
    answer = change(browser(people.owner), dialect="dlc", name="other")
    assert answer["pinned"] == "dlc"


def test_an_unknown_dialect_is_a_bad_request(people: People) -> None:
    sent = {"text": DLC, "form-shown": "{}", "dialect": "nonsense"}
    assert browser(people.owner).post("/jobs/form/change", sent).status_code == 400


@pytest.mark.parametrize("shown", ["", "[]", "{", '{"name": 1}', '"x"'])
def test_whatever_the_form_claims_to_have_shown_is_an_answer(people: People, shown: str) -> None:
    assert change(browser(people.owner), form_shown=shown, name="other")["dialect"] == "dlc"


def test_nothing_is_stored(people: People) -> None:
    change(browser(people.owner), name="other")
    assert not Job.objects.exists()
    assert not Draft.objects.exists()


@pytest.mark.parametrize("who", ["owner", "member", "stranger", "admin"])
def test_everybody_who_is_signed_in_may_fill_in_a_form_of_their_own(people: People, who: str) -> None:
    assert change(browser(getattr(people, who)), name="other")["text"] == DLC.replace('"train"', '"other"')


def test_nobody_else_may(db: None) -> None:
    sent = {"text": DLC, "form-shown": "{}"}
    headers = {"Accept": "application/json"}
    assert browser().post("/jobs/form/change", sent, headers=headers).status_code == 401
    assert browser().post("/jobs/form/change", sent).status_code == 302


def test_a_foreign_site_can_not(people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.owner)
    assert client.post("/jobs/form/change", {"text": DLC}).status_code == 403
