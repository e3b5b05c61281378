"""Templates that people keep: who may, what a version is, and jobs that are held to one."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from jobs import submission
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job, JobFile, Template, TemplateUse
from jobs.submission import templates
from jobs.submission.access import Forbidden
from jobs.submission.templates import About, Content
from quotas.models import AuditEntry, Quota, Role, User
from tests.factories import TEMPLATE_FILE, make_cluster, make_quota, make_template, make_user, make_workspace

pytestmark = pytest.mark.django_db

LOCKS = {"/roles/0/image": "locked", "$.Envs.LR": "required"}


@pytest.fixture
def owner() -> User:
    return make_user("alice")


@pytest.fixture
def quota(owner: User) -> Quota:
    members = {owner: Role.DEVELOPER, make_user("bob"): Role.DEVELOPER, make_user("carol"): Role.OPERATOR}
    return make_quota(make_workspace("vision", members=members), make_cluster("local"), "default")


def person(name: str) -> User:
    return User.objects.get(username=name)


def changed(**keys: object) -> str:
    return json.dumps({**json.loads(TEMPLATE_FILE), **keys})


def ref(template: Template, number: int = 1) -> str:
    return f"{template.public_id}@{number}"


def test_personal_template_is_visible_only_to_owner(owner: User, quota: Quota) -> None:
    mine = make_template(owner)
    assert templates.find(owner, mine.public_id)
    for each in (person("bob"), person("carol"), make_user("root", admin=True), make_user("mallory")):
        assert templates.find(each, mine.public_id) is None
        assert not Template.objects.visible_to(each).exists()


def test_workspace_template_can_be_changed_only_by_managers(owner: User, quota: Quota) -> None:
    shared = make_template(person("carol"), quota.workspace)
    assert templates.find(owner, shared.public_id)
    assert templates.find(make_user("mallory"), shared.public_id) is None
    with pytest.raises(Forbidden):
        templates.change(owner, shared, About("Mine now"), None)
    with pytest.raises(Forbidden):
        make_template(owner, quota.workspace)
    templates.change(make_user("root", admin=True), shared, About("Better"), None)
    assert Template.objects.get().name == "Better"


def test_template_change_creates_version_and_keeps_earlier_ones(owner: User) -> None:
    mine = make_template(owner)
    templates.change(
        owner, mine, About("B"), Content(Document(changed(UserCommand="true"), "dlc")), as_default=False
    )
    now = Template.objects.get()
    assert (now.name, now.latest_number, now.default_number) == ("B", 2, 1)
    assert [row.number for row in now.versions.order_by("number")] == [1, 2]
    assert now.versions.get(number=1).content == TEMPLATE_FILE
    assert templates.make_default(owner, now, 2)
    assert not templates.make_default(owner, now, 3)
    found = templates.find(owner, mine.public_id)
    assert found is not None
    assert found.ref == ref(mine, 2)
    assert AuditEntry.objects.filter(object_repr="B").exists()


@pytest.mark.parametrize(
    "asked", ["", "@", "x@", "shell@9", "t-x@1", "shell@0", "../x", "Shell", "shell@1@1"]
)
def test_template_lookup_with_invalid_id_finds_nothing(owner: User, asked: str) -> None:
    assert templates.find(owner, asked) is None


def test_template_stores_no_secret_values(owner: User) -> None:
    text = changed(Envs={"API_PASSWORD": "hunter2-canary"})
    mine = make_template(owner, text=text)
    assert "hunter2-canary" not in mine.versions.get().content
    assert "$SECRET:API_PASSWORD" in mine.versions.get().content


@pytest.mark.parametrize(
    "content",
    [Content(Document("{", "dlc")), Content(Document(TEMPLATE_FILE, "dlc"), constraints={"/nope": "locked"})],
)
def test_template_with_invalid_content_is_not_created(owner: User, content: Content) -> None:
    with pytest.raises((Refused, ValidationError)):
        templates.create(owner, About("X"), content)
    assert not Template.objects.exists()


def test_template_and_version_counts_are_limited(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST", 1)
    mine = make_template(owner)
    with pytest.raises(templates.TooMany):
        make_template(owner)
    monkeypatch.setattr(templates, "MOST_VERSIONS", 1)
    with pytest.raises(templates.TooMany):
        templates.change(owner, mine, About("X"), Content(Document(TEMPLATE_FILE, "dlc")))


def test_template_proposed_by_member_is_adopted_by_workspace_manager(owner: User, quota: Quota) -> None:
    mine, carol = make_template(owner, constraints=LOCKS), person("carol")
    with pytest.raises(Forbidden):
        templates.adopt(carol, mine)
    with pytest.raises(Forbidden):
        templates.propose(owner, mine, make_workspace("elsewhere"))
    templates.propose(owner, mine, quota.workspace)
    assert mine in Template.objects.visible_to(carol)
    assert mine not in Template.objects.visible_to(person("bob"))
    assert mine not in Template.objects.offered_to(carol)
    with pytest.raises(Forbidden):
        templates.adopt(person("bob"), mine)
    made = templates.adopt(carol, mine)
    assert (made.workspace, made.versions.get().constraints) == (quota.workspace, LOCKS)
    mine.refresh_from_db()
    assert (mine.proposed_to, mine.workspace) == (None, None)


# --- jobs that come from one -----------------------------------------------------------------------------


def test_job_from_template_records_its_version(owner: User, quota: Quota) -> None:
    mine = make_template(owner, constraints=LOCKS)
    job = submission.submit(owner, Document(changed(DisplayName="other")), template=ref(mine)).job
    use = TemplateUse.objects.get(job=job)
    assert (use.version, use.number, use.shipped) == (mine.versions.get(), 1, "")
    job = submission.submit(owner, Document(TEMPLATE_FILE), template="shell").job
    use = TemplateUse.objects.get(job=job)
    assert (use.version, use.number, use.shipped) == (None, 1, "shell")
    job = submission.submit(owner, Document(TEMPLATE_FILE)).job
    assert not TemplateUse.objects.filter(job=job).exists()


def test_template_lock_violation_is_reported_at_its_field(owner: User, quota: Quota) -> None:
    mine = make_template(owner, name="Careful", constraints=LOCKS)
    roles = json.loads(TEMPLATE_FILE)["JobSpecs"]
    text = TEMPLATE_FILE.replace("torch:1", "evil:1").replace('"LR": "0.1"', '"LR": ""')
    assert roles[0]["Image"] == "torch:1"
    with pytest.raises(Refused) as refused:
        submission.submit(owner, Document(text), template=ref(mine))
    locked, required = sorted(refused.value.problems, key=lambda each: each.code)
    assert (locked.code, locked.pointer, locked.line) == ("locked_by_template", "/roles/0/image", 5)
    assert (required.code, required.pointer) == ("required_by_template", "/env/LR")
    assert dict(locked.params) == {"template": "Careful", "version": 1, "field": "/roles/0/image"}
    assert not Job.objects.exists()


def test_template_lock_applies_in_other_dialects(owner: User, quota: Quota) -> None:
    from jobs import dialects  # noqa: PLC0415

    mine = make_template(owner, constraints={"/roles/0/image": "locked"})
    for dialect in ("openpai-v1", "openpai-v2"):
        text = dialects.convert(Document(TEMPLATE_FILE.replace("torch:1", "evil:1"), "dlc"), dialect).document
        with pytest.raises(Refused) as refused:
            submission.submit(owner, text, template=ref(mine))
        assert [each.code for each in refused.value.problems] == ["locked_by_template"]


def test_template_of_other_user_is_not_found(owner: User, quota: Quota) -> None:
    theirs = make_template(person("bob"))
    with pytest.raises(Refused) as refused:
        submission.submit(owner, Document(TEMPLATE_FILE), template=ref(theirs))
    assert [each.code for each in refused.value.problems] == ["no_such_template"]


def test_template_use_passes_to_own_rerun_but_not_to_others_copy(owner: User, quota: Quota) -> None:
    mine = make_template(owner, constraints=LOCKS)
    job = submission.submit(owner, Document(TEMPLATE_FILE), template=ref(mine)).job
    again = submission.retry(owner, job, second_copy=True).job
    assert TemplateUse.objects.get(job=again).version == mine.versions.get()
    by_carol = submission.retry(person("carol"), job, second_copy=True).job
    assert not TemplateUse.objects.filter(job=by_carol).exists()
    shared = make_template(person("carol"), quota.workspace)
    job = submission.submit(owner, Document(TEMPLATE_FILE), template=ref(shared)).job
    by_carol = submission.retry(person("carol"), job, second_copy=True).job
    assert TemplateUse.objects.get(job=by_carol).version == shared.versions.get()


def test_template_lock_prevents_change_of_waiting_job(owner: User, quota: Quota) -> None:
    mine = make_template(owner, constraints={"/roles/0/resources": "locked"})
    job = submission.submit(owner, Document(TEMPLATE_FILE), template=ref(mine)).job
    spec = JobFile.objects.get(job=job).spec
    role = spec.roles[0]
    smaller = role.model_copy(update={"resources": role.resources.model_copy(update={"cpu_milli": 1000})})
    with pytest.raises(Refused):
        submission.replace_queued(owner, job, spec.model_copy(update={"roles": (smaller,)}))
    job.refresh_from_db()
    assert job.state == "QUEUED"
