"""New job with an sbatch script that is an array: what the page says of it, and that it becomes a sweep."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from jobs.models import Draft, Job, Sweep, TemplateUse
from tests.factories import make_template
from tests.jobs.web.conftest import People, browser, seen

TEXT = "#!/bin/bash\n#SBATCH -J sim -c1 --mem=1G -t 60\n#SBATCH --array=0-5%2\n\necho $SLURM_ARRAY_TASK_ID\n"


def post(people: People, who: str = "owner", **said: Any) -> Any:
    sent = {"text": TEXT, "key": "k1", "do": "submit", **said}
    return browser(getattr(people, who) if who else None).post("/jobs/new", sent)


@pytest.mark.parametrize("do", ["submit", "sweep"])
def test_array_submission_creates_sweep_and_redirects_to_its_page(people: People, do: str) -> None:
    response = post(people, do=do)
    sweep = Sweep.objects.get()
    assert response["Location"] == f"/sweeps/{sweep.public_id}"
    assert (sweep.owner, sweep.at_once, sweep.runs.count()) == (people.owner, 2, 6)
    assert post(people, do=do)["Location"] == response["Location"], "a double click"
    page = seen(browser(people.owner).get(response["Location"]))
    assert "SLURM_ARRAY_JOB_ID" in page


def test_array_upload_creates_sweep(people: People) -> None:
    upload = SimpleUploadedFile("sim.sh", TEXT.encode())
    assert post(people, text="", upload=upload)["Location"].startswith("/sweeps/")


def test_array_check_shows_job_count_before_submission(people: People) -> None:
    page = seen(post(people, do="check"))
    assert "--array=0-5%2 makes this a sweep. Jobs: 6, at most 2 at a time." in page
    assert "Submit 6 jobs" in page
    panel = seen(browser(people.owner).post(reverse("job_form_panel"), {"text": TEXT}))
    assert "Sweep of 6 jobs, max 2 at once." in panel
    assert "for 2 jobs" in panel
    assert not Sweep.objects.exists()


def test_plain_script_keeps_plain_submit_button(people: People) -> None:
    plain = TEXT.replace("#SBATCH --array=0-5%2\n", "")
    page = seen(post(people, do="check", text=plain))
    assert "Submit 1 job" not in page
    assert "Sweep of" not in seen(browser(people.owner).post(reverse("job_form_panel"), {"text": plain}))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"text": TEXT.replace("0-5%2", "5-0")}, "is in descending order"),
        ({"text": TEXT.replace("0-5%2", "0-500")}, "has more than 200 indexes"),
        ({"sweep_parameters": "env.LR = 1, 2"}, "Use parameters or an array, not both"),
    ],
)
def test_array_problem_is_shown_and_input_is_retained(
    people: People, said: dict[str, str], told: str
) -> None:
    response = post(people, **said)
    assert response.status_code == 422
    page = seen(response)
    assert told in page
    assert "echo $SLURM_ARRAY_TASK_ID" in page
    assert said.get("sweep_parameters", "") in page
    assert (Sweep.objects.count(), Job.objects.count(), Draft.objects.count()) == (0, 0, 1)


def test_array_limit_in_form_overrides_script(people: People) -> None:
    assert post(people, sweep_at_once="4").status_code == 302
    assert Sweep.objects.get().at_once == 4


def test_array_resubmission_with_changed_script_is_refused(people: People) -> None:
    post(people)
    response = post(people, text=TEXT.replace("0-5", "0-4"))
    assert response.status_code == 409
    assert Sweep.objects.count() == 1


@pytest.mark.parametrize("who", ["member", "manager", "admin"])
def test_array_submission_is_owned_by_its_submitter(people: People, who: str) -> None:
    assert post(people, who).status_code == 302
    assert Sweep.objects.get().owner == getattr(people, who)


def test_array_submission_to_foreign_place_is_refused(people: People) -> None:
    quota = people.quota
    place = f"{quota.workspace.slug}/{quota.cluster.slug}/{quota.slug}"
    assert post(people, "stranger", place=place).status_code == 422
    assert post(people, "")["Location"].startswith("/sign-in")
    assert not Sweep.objects.exists()


def test_sweep_file_is_limited_to_readers(people: People) -> None:
    post(people)
    address = f"/sweeps/{Sweep.objects.get().public_id}/file"
    response = browser(people.owner).get(address)
    assert response.content.decode() == TEXT
    assert response["Content-Disposition"] == 'attachment; filename="sim.sbatch"'
    told = {
        who: browser(getattr(people, who)).get(address).status_code for who in ("member", "stranger", "admin")
    }
    assert told == {"member": 403, "stranger": 404, "admin": 200}
    Sweep.objects.update(file="")
    assert browser(people.owner).get(address).status_code == 404, "a sweep of parameters has no such file"


def test_template_with_array_starts_sweep(people: People) -> None:
    template = make_template(people.owner, text=TEXT, dialect="sbatch")
    client = browser(people.owner)
    address = f"/start/{template.public_id}"
    answers = {**client.get(address).context["form"].initial, "key": "t1", "do": "start"}
    assert client.post(address, answers)["Location"] == f"/sweeps/{Sweep.objects.get().public_id}"
    assert TemplateUse.objects.count() == 6
