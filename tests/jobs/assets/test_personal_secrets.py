"""A person's own secrets: named in any dialect, found by their owner alone, handed over when the job is."""

from __future__ import annotations

import json

import pytest

from jobs import dialects
from jobs.assets import personal_secrets
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job, JobFile, JobSecret, PersonalSecret
from jobs.scheduling import reconcile
from jobs.spec import CodeSource, JobSpec, Mount, RegistryAuth, RoleSpec, SecretRef
from jobs.submission import submit
from quotas.models import AuditEntry, Membership, Role, User
from tests.factories import make_cluster, make_quota, make_user, make_workspace

VALUE = "hf_canary-81c2"
NAMED = "$SECRET:HF_TOKEN"

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    alice = make_user("alice")
    workspace = make_workspace("vision", members={alice: Role.DEVELOPER})
    make_quota(workspace, make_cluster("local"), "default")
    return alice


def file(**env: str) -> str:
    """A DLC request whose replicas have these variables."""
    spec = {"Type": "Worker", "PodCount": 1, "Image": "i", "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}
    request = {"DisplayName": "j", "JobType": "PyTorchJob", "UserCommand": "true", "JobSpecs": [spec]}
    return json.dumps({**request, "Envs": env})


def test_personal_secret_is_encrypted_and_replaced_by_name(owner: User) -> None:
    assert personal_secrets.keep(owner, "HF_TOKEN", VALUE)
    assert not personal_secrets.keep(owner, "HF_TOKEN", VALUE + "2")
    row = PersonalSecret.objects.get(owner=owner)
    assert VALUE not in row.ciphertext
    assert row.reveal() == VALUE + "2"


def test_personal_secrets_over_the_limit_are_refused(owner: User) -> None:
    PersonalSecret.objects.bulk_create(
        PersonalSecret(owner=owner, name=f"S{number}", ciphertext="x")
        for number in range(personal_secrets.MOST)
    )
    with pytest.raises(personal_secrets.TooMany):
        personal_secrets.keep(owner, "ONE_MORE", VALUE)
    assert not personal_secrets.keep(owner, "S1", VALUE)


def test_personal_secret_audit_entry_contains_no_value(owner: User) -> None:
    personal_secrets.keep(owner, "HF_TOKEN", VALUE)
    [entry] = AuditEntry.objects.filter(object_repr="HF_TOKEN")
    assert VALUE not in json.dumps(entry.changes)
    assert PersonalSecret.objects.get().ciphertext not in json.dumps(entry.changes)


def test_personal_secret_named_in_a_job_is_passed_as_a_secret(owner: User) -> None:
    personal_secrets.keep(owner, "HF_TOKEN", VALUE)
    job = submit(owner, Document(file(HUB=NAMED, PLAIN="x"))).job
    kept = JobFile.objects.get(job=job)
    assert VALUE not in kept.text + kept.spec.model_dump_json()
    assert not JobSecret.objects.exists()
    submission = reconcile._submission(job.attempts.get())
    assert submission.spec.env == {"PLAIN": "x"}
    assert submission.secrets[submission.spec.secret_env["HUB"].name] == VALUE
    assert VALUE not in repr(submission)


def test_personal_secret_value_is_read_at_hand_over(owner: User) -> None:
    personal_secrets.keep(owner, "HF_TOKEN", "old")
    job = submit(owner, Document(file(HF_TOKEN=NAMED))).job
    personal_secrets.keep(owner, "HF_TOKEN", "new")
    assert reconcile._submission(job.attempts.get()).secrets == {"HF_TOKEN": "new"}
    personal_secrets.remove(owner, PersonalSecret.objects.get().pk)
    submission = reconcile._submission(job.attempts.get())
    assert submission.secrets == {}
    assert "HF_TOKEN" in submission.spec.secret_env, "so that the engine refuses it for want of a value"


def test_personal_secret_yields_to_a_value_in_the_file(owner: User) -> None:
    personal_secrets.keep(owner, "HF_TOKEN", "saved")
    job = submit(owner, Document(file(HF_TOKEN="in the file"))).job
    assert reconcile._submission(job.attempts.get()).secrets == {"HF_TOKEN": "in the file"}


def test_personal_secret_not_saved_is_a_problem_at_its_place(owner: User) -> None:
    personal_secrets.keep(make_user("bob"), "HF_TOKEN", VALUE)
    with pytest.raises(Refused) as refused:
        submit(owner, Document(file(HF_TOKEN=NAMED)))
    [problem] = refused.value.problems
    assert (problem.code, problem.pointer, problem.line) == ("no_own_secret", "/env/HF_TOKEN", 1)
    assert not Job.objects.exists()


def test_job_copy_by_the_owner_keeps_its_secrets(owner: User) -> None:
    first = submit(owner, Document(file(HF_TOKEN=VALUE))).job
    text = JobFile.objects.get(job=first).text
    assert VALUE not in text
    again = submit(owner, Document(text.replace('"true"', '"false"')), origin=first).job
    assert reconcile._submission(again.attempts.get()).secrets == {"HF_TOKEN": VALUE}


def test_job_copy_by_another_user_requires_secrets_anew(owner: User) -> None:
    first = submit(owner, Document(file(HF_TOKEN=VALUE))).job
    other = make_user("bob")
    Membership.objects.create(user=other, workspace=first.workspace, role=Role.ADMIN)
    text = JobFile.objects.get(job=first).text
    with pytest.raises(Refused) as refused:
        submit(other, Document(text), origin=first)
    assert [each.code for each in refused.value.problems] == ["no_own_secret"]
    personal_secrets.keep(other, "HF_TOKEN", "bob's own")
    copy = submit(other, Document(text), origin=first).job
    assert reconcile._submission(copy.attempts.get()).secrets == {"HF_TOKEN": "bob's own"}


def test_personal_secret_may_be_named_by_registry_mount_and_code(owner: User) -> None:
    spec = JobSpec(
        name="j",
        roles=(RoleSpec(name="main", command="true"),),
        registry_auth=RegistryAuth(username="me", password=SecretRef(name="REGISTRY")),
        mounts=(Mount(uri="nfs://me:$SECRET:NAS@host/x", path="/x"),),
        code=CodeSource(uri="https://me:$SECRET:GIT@host/repository"),
    )
    names = {"REGISTRY": "/registry_auth/password", "NAS": "/mounts/0/uri", "GIT": "/code/uri"}
    assert {name: where for where, name in personal_secrets.find_names(spec)} == names
    for name in names:
        personal_secrets.keep(owner, name, f"value of {name}")
    assert personal_secrets.values_of(owner, spec) == {name: f"value of {name}" for name in names}


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_personal_secret_name_survives_in_every_dialect(dialect: str) -> None:
    parsed = dialects.parse(file(HUB=NAMED))[1]
    written = dialects.get(dialect).render(parsed.spec, {}).text
    spec = dialects.get(dialect).parse(Document(written)).spec
    assert list(personal_secrets.find_names(spec)) == [("/env/HUB", "HF_TOKEN")]
