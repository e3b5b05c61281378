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


def test_form_change_edits_only_its_place_in_text(people: People) -> None:
    answer = change(browser(people.owner), roles_0_cpu="8")
    assert answer["text"] == DLC.replace('"CPU": "4"', '"CPU": "8"')
    assert (answer["dialect"], answer["problems"]) == ("dlc", [])
    assert 'name="roles-0-cpu" value="8"' in form_of(answer)


def test_form_change_without_changes_keeps_text(people: People) -> None:
    assert change(browser(people.owner))["text"] == DLC


def test_form_change_keeps_newer_text_of_untouched_fields(people: People) -> None:
    shown = {"name": "before", "description": ""}
    answer = change(browser(people.owner), form_shown=json.dumps(shown), name="before", description="typed")
    assert '"DisplayName": "train"' in answer["text"]
    assert '"Description": "typed"' in answer["text"]


def test_form_change_with_invalid_values_shows_errors_and_keeps_input(people: People) -> None:
    answer = change(browser(people.owner), roles_0_cpu="many", priority="12", name="next")
    form = form_of(answer)
    assert answer["text"] == DLC.replace('"train"', '"next"')
    assert "“many” is not a number." in form
    assert 'name="roles-0-cpu" value="many"' in form
    assert "Must be at most 9." in form
    assert 'name="priority" value="12"' in form
    assert 'aria-invalid="true"' in form


def test_form_change_leaves_unreadable_text_untouched(people: People) -> None:
    answer = change(browser(people.owner), "{ half", name="other")
    assert answer["text"] == "{ half"
    assert "data-read-only" in answer["form"]
    assert 'name="name" value="other"' in form_of(answer)


SBATCH = "#!/bin/bash\n#SBATCH --job-name=scripted\n#SBATCH --nodes=1\npython train.py\n"


def test_form_field_unsupported_by_dialect_is_disabled_with_reason(people: People) -> None:
    form = form_of(change(browser(people.owner), SBATCH))
    assert "Slurm sbatch script doesn't support installing Python packages before start." in form
    assert 'name="form-go-on" value="libraries-folder"' in form
    assert "Convert to PAI-DLC" in form


def test_form_conversion_to_dlc_carries_everything_over(people: People) -> None:
    answer = change(browser(people.owner), SBATCH, form_go_on="libraries-folder")
    assert (answer["dialect"], answer["pinned"]) == ("dlc", "")
    assert json.loads(answer["text"])["DisplayName"] == "scripted"
    assert "data-read-only" not in answer["form"]


def test_form_change_making_job_invalid_is_refused_at_its_field(people: People) -> None:
    answer = change(browser(people.owner), HELLO, roles_0_command="")
    assert answer["text"] == HELLO
    assert "field-error" in answer["form"]


def test_form_value_unsupported_by_dialect_shows_error(people: People) -> None:
    answer = change(browser(people.owner), SBATCH, priority="3")
    assert answer["text"] == SBATCH
    assert "Not supported by this job file format." in form_of(answer)


def test_form_rows_are_added_and_removed(people: People) -> None:
    client = browser(people.owner)
    answer = change(client, env_0_name="A", env_0_value="1", env_1_name="B", env_1_value="2")
    assert '"Envs"' in answer["text"]
    shown = json.dumps({"env-0-name": "A", "env-0-value": "1", "env-1-name": "B", "env-1-value": "2"})
    fields = {"env_0_name": "A", "env_0_value": "1", "env_1_name": "B", "env_1_value": "2"}
    gone = change(client, answer["text"], form_shown=shown, form_remove="env-0", **fields)
    assert '"B": "2"' in gone["text"]
    assert '"A": "1"' not in gone["text"]


def test_form_role_is_added(people: People) -> None:
    answer = change(browser(people.owner), form_add="roles")
    assert answer["text"].count('"Type"') == 2
    assert 'name="roles-1-command"' in answer["form"]


def test_form_pasted_env_file_becomes_rows_without_expansion(people: People) -> None:
    pasted = "# mine\r\nexport A='1 2'\r\nHOME_OF=$HOME/${USER}\r\nEMPTY=\r\n"
    answer = change(browser(people.owner), env_paste=pasted)
    form = form_of(answer)
    for name, value in {"A": "1 2", "HOME_OF": "$HOME/${USER}", "EMPTY": ""}.items():
        assert f'"{name}": "{value}"' in answer["text"]
        assert f'value="{name}"' in form


def test_form_typed_password_becomes_secret_and_is_never_shown(people: People) -> None:
    client = browser(people.owner)
    answer = change(client, registry_username="me", registry_password="canary-77aa")
    secret = PersonalSecret.objects.get(owner=people.owner)
    assert (secret.name, secret.reveal()) == ("REGISTRY_PASSWORD", "canary-77aa")
    assert "$SECRET:REGISTRY_PASSWORD" in answer["text"]
    assert "canary-77aa" not in json.dumps(answer)
    again = change(client, answer["text"], registry_secret="REGISTRY_PASSWORD", registry_password="canary-2")
    assert again["text"] == answer["text"]
    assert PersonalSecret.objects.get(owner=people.owner).reveal() == "canary-2"


def test_form_password_in_file_stays_there_and_is_not_shown(people: People) -> None:
    answer = change(browser(people.owner), LOCKED, registry_username="you")
    assert answer["text"] == LOCKED.replace('"me"', '"you"')
    assert "canary-51f0" not in answer["form"]


def test_form_offers_only_own_secrets(people: People) -> None:
    for user, name in ((people.owner, "MINE"), (people.member, "THEIRS"), (people.stranger, "FAR")):
        secret = PersonalSecret(owner=user, name=name)
        secret.encrypt("x")
        secret.save()
    form = form_of(change(browser(people.owner)))
    assert '<option value="MINE"' in form
    assert "THEIRS" not in form
    assert "FAR" not in form


def test_form_name_already_used_shows_free_name(people: People) -> None:
    make_job(owner=people.owner, quota=people.quota, name="train")
    form = form_of(change(browser(people.owner)))
    assert "You already have a job with this name; train-2 is available." in form
    assert "You already have a job with this name" not in form_of(change(browser(people.member)))


def test_form_chosen_dialect_stays_pinned(people: People) -> None:
    answer = change(browser(people.owner), dialect="dlc", name="other")
    assert answer["pinned"] == "dlc"


def test_form_change_with_unknown_dialect_is_bad_request(people: People) -> None:
    sent = {"text": DLC, "form-shown": "{}", "dialect": "nonsense"}
    assert browser(people.owner).post("/jobs/form/change", sent).status_code == 400


@pytest.mark.parametrize("shown", ["", "[]", "{", '{"name": 1}', '"x"'])
def test_form_change_with_arbitrary_shown_state_still_answers(people: People, shown: str) -> None:
    assert change(browser(people.owner), form_shown=shown, name="other")["dialect"] == "dlc"


def test_form_change_stores_nothing(people: People) -> None:
    change(browser(people.owner), name="other")
    assert not Job.objects.exists()
    assert not Draft.objects.exists()


@pytest.mark.parametrize("who", ["owner", "member", "stranger", "admin"])
def test_form_change_is_open_to_every_signed_in_user(people: People, who: str) -> None:
    assert change(browser(getattr(people, who)), name="other")["text"] == DLC.replace('"train"', '"other"')


def test_form_change_without_sign_in_is_refused(db: None) -> None:
    sent = {"text": DLC, "form-shown": "{}"}
    headers = {"Accept": "application/json"}
    assert browser().post("/jobs/form/change", sent, headers=headers).status_code == 401
    assert browser().post("/jobs/form/change", sent).status_code == 302


def test_form_change_without_csrf_token_is_refused(people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.owner)
    assert client.post("/jobs/form/change", {"text": DLC}).status_code == 403
