"""The ids of a job file become places, addresses and logins when it is accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs import submission
from jobs.assets import changes, personal_secrets, resolution
from jobs.dialects.base import Note, Problem, Refused
from jobs.dialects.document import Document
from jobs.messages import note_message, problem_message
from jobs.models import Asset, AssetUse, Dataset, Guarded, Job, JobFile, Vpc
from jobs.scheduling import reconcile
from jobs.spec import JobSpec, RegistryAuth, SecretRef
from quotas.models import Role, Workspace
from tests.factories import make_membership, make_quota, make_workspace
from tests.jobs.assets.conftest import make_code, make_dataset, make_image
from tests.jobs.conftest import Place, attempt_of

pytestmark = pytest.mark.django_db

SMALL = {"CPU": "1", "Memory": "1Gi"}


def dlc(*, image: str = "img", role: dict[str, Any] | None = None, **keys: Any) -> str:
    """A job file of PAI-DLC's."""
    worker = {
        "Type": "Worker",
        "Image": image,
        "PodCount": 1,
        "ResourceConfig": {"CPU": "1", "Memory": "1Gi"},
    }
    job = {
        "DisplayName": "a",
        "JobType": "PyTorchJob",
        "UserCommand": "x",
        "JobSpecs": [worker | (role or {})],
    }
    return json.dumps({**job, "WorkspaceId": "1", **keys})


def accepted(place: Place, text: str) -> Job:
    return submission.submit(place.owner, Document(text, "dlc")).job


def kept(job: Job) -> JobSpec:
    return JobFile.objects.get(job=job).spec


def refused(place: Place, text: str) -> list[Problem]:
    with pytest.raises(Refused) as caught:
        accepted(place, text)
    assert not Job.objects.exists()
    return list(caught.value.problems)


def notes(place: Place, text: str) -> list[Note]:
    found = submission.submit(place.owner, Document(text, "dlc")).notes
    return [note for note in found if note.code.startswith(("asset", "dataset", "not_of"))]


def with_password(asset: Guarded, password: str = "canary-kept") -> Guarded:
    asset.encrypt(password)
    asset.save()
    return asset


# --- datasets --------------------------------------------------------------------------------------------


def test_dataset_is_mounted_from_its_address_at_its_path(place: Place) -> None:
    row = make_dataset(
        place.workspace, "/data/one", mount_path="/mnt/one", options={"a": "1"}, read_only=False
    )
    text = dlc(DataSources=[{"DataSourceId": row.key, "Options": '{"b": "2"}'}])
    job = accepted(place, text)
    (mount,) = kept(job).mounts
    assert (mount.id, mount.uri, mount.path, mount.read_only) == (row.key, "/data/one", "/mnt/one", False)
    assert mount.options == {"a": "1", "b": "2"}
    assert JobFile.objects.get(job=job).text == text
    use = AssetUse.objects.get()
    assert (use.job, use.kind, use.key, use.version, use.secret) == (job, "datasets", row.key, 1, "")


def test_dataset_mount_path_comes_from_job_file_and_access_only_narrows(place: Place) -> None:
    row = make_dataset(place.workspace, read_only=True)
    both = make_dataset(place.workspace, read_only=False)
    sources = [
        {"DataSourceId": row.key, "MountPath": "/mnt/x", "MountAccess": "RW"},
        {"DataSourceId": both.key, "MountPath": "/mnt/y", "MountAccess": "RO"},
    ]
    first, second = kept(accepted(place, dlc(DataSources=sources))).mounts
    assert (first.path, first.read_only, second.read_only) == ("/mnt/x", True, True)


@pytest.mark.parametrize("way", ["mark", "key"])
@pytest.mark.parametrize(("said", "uri"), [("v1", "/data/one"), ("1", "/data/one"), ("v2", "/data/two")])
def test_dataset_version_is_chosen_by_id_suffix_or_dialect_key(
    place: Place, way: str, said: str, uri: str
) -> None:
    row = make_dataset(place.workspace, "/data/one")
    changes.choose_version(changes.add_version(row, "/data/two", by=None))
    source = {"DataSourceId": f"{row.key}@{said}"}
    if way == "key":
        source = {"DataSourceId": row.key, "DataSourceVersion": said}
    (mount,) = kept(accepted(place, dlc(DataSources=[source]))).mounts
    assert (mount.id, mount.uri) == (row.key, uri)


def test_dataset_version_unknown_is_a_problem_at_its_place(place: Place) -> None:
    row = make_dataset(place.workspace)
    (problem,) = refused(place, dlc(DataSources=[{"DataSourceId": f"{row.key}@v7"}]))
    assert (problem.code, problem.pointer, problem.line) == ("no_dataset_version", "/mounts/0/id", 1)
    assert problem_message(problem) == "Dataset imagenet has no version v7."


def test_dataset_for_all_is_mounted_read_only(place: Place) -> None:
    row = make_dataset(read_only=False)
    (mount,) = kept(accepted(place, dlc(DataSources=[{"DataSourceId": row.key}]))).mounts
    assert mount.read_only


def test_upload_is_no_unknown_asset(place: Place) -> None:
    source = {"CodeSourceId": f"upload://{'0' * 64}", "MountPath": "/root/code"}
    parsed = Document(dlc(CodeSource=source), "dlc").parsed
    assert not resolution.resolve_spec(place.owner, parsed, place.workspace).notes


def test_asset_id_unknown_is_noted_and_left_to_the_cluster(place: Place) -> None:
    text = dlc(DataSources=[{"DataSourceId": "d-vendor"}], CodeSource={"CodeSourceId": "code-vendor"})
    assert [(note.code, note.pointer) for note in notes(place, text)] == [
        ("asset_unknown", "/mounts/0/id"),
        ("asset_unknown", "/code/id"),
    ]
    assert kept(Job.objects.get()).mounts[0].uri == ""


@pytest.mark.parametrize("kind", ["dataset", "code", "image", "vpc"])
def test_asset_of_another_workspace_is_refused_at_its_place(place: Place, kind: str) -> None:
    other = make_workspace("other")
    text, pointer = _naming(kind, other)
    (problem,) = refused(place, text)
    assert (problem.code, problem.pointer) == ("asset_not_yours", pointer)
    assert "not available in workspace" in problem_message(problem)


def _naming(kind: str, workspace: Workspace) -> tuple[str, str]:
    if kind == "dataset":
        return dlc(DataSources=[{"DataSourceId": make_dataset(workspace).key}]), "/mounts/0/id"
    if kind == "code":
        return dlc(CodeSource={"CodeSourceId": make_code(workspace).key}), "/code/id"
    if kind == "image":
        return dlc(image=make_image(workspace).key), "/roles/0/image"
    Vpc.objects.create(workspace=workspace, name="net", vpc_id="vpc-1")
    return dlc(UserVpc={"VpcId": "vpc-1"}), "/network/vpc"


def test_asset_of_target_workspace_is_used_by_member_of_two(place: Place) -> None:
    other = make_workspace("other")
    make_membership(place.owner, other, Role.ADMIN)
    make_quota(other, place.cluster, "theirs")
    row = make_dataset(other)
    text = dlc(DataSources=[{"DataSourceId": row.key}])
    with pytest.raises(Refused):
        submission.submit(place.owner, Document(text, "dlc"), place=submission.JobTarget(workspace="vision"))
    job = submission.submit(
        place.owner, Document(text, "dlc"), place=submission.JobTarget(workspace="other")
    ).job
    assert kept(job).mounts[0].uri == "/data/sets"


def test_asset_retired_is_refused(place: Place) -> None:
    row = make_dataset(place.workspace)
    changes.retire(row)
    (problem,) = refused(place, dlc(DataSources=[{"DataSourceId": row.key}]))
    assert problem.code == "asset_retired"


def test_cpfs_dataset_notes_its_vpc(place: Place) -> None:
    vpc = Vpc.objects.create(workspace=place.workspace, name="net", vpc_id="vpc-1", switches=["vsw-1"])
    row = make_dataset(place.workspace, "cpfs://cpfs-1/", source="cpfs", vpc=vpc)
    sources = [{"DataSourceId": row.key}]
    (note,) = notes(place, dlc(DataSources=sources))
    assert note_message(note) == (
        "Dataset imagenet is in VPC vpc-1. A job that mounts it must be in the same VPC."
    )
    assert notes(place, dlc(DataSources=sources, UserVpc={"VpcId": "vpc-1"})) == []
    (note,) = notes(
        place, dlc(UserVpc={"VpcId": "vpc-1", "SwitchId": "vsw-2", "ExtendedCIDRs": ["10.0.0.0/8"]})
    )
    assert note.code == "not_of_vpc"


# --- logins ----------------------------------------------------------------------------------------------


def secret_of(job: Job) -> str:
    return AssetUse.objects.exclude(secret="").get(job=job).secret


def test_asset_password_reaches_the_engine_and_no_visible_page(place: Place, engine: Any) -> None:
    row = make_dataset(
        place.workspace, "s3://sets/imagenet/", source="s3", username="AKIA", endpoint="https://s3.x"
    )
    with_password(row)
    text = dlc(DataSources=[{"DataSourceId": row.key}])
    job = accepted(place, text)
    (mount,) = kept(job).mounts
    secret = secret_of(job)
    assert mount.uri == f"s3://AKIA:$SECRET:{secret}@sets/imagenet/"
    assert mount.options == {"endpoint": "https://s3.x"}
    sent = reconcile._submission(attempt_of(job))
    assert sent.secrets == {secret: "canary-kept"}
    stored = JobFile.objects.get(job=job)
    assert "canary" not in f"{stored.text}{stored.spec_json}{stored.notes}{stored.extras}"


def test_asset_password_cannot_be_put_into_a_variable(place: Place) -> None:
    """Not by its name, not by a secret of the same name, and not by a job made from one that has it."""
    row = make_dataset(place.workspace, "s3://sets/", source="s3", username="AKIA")
    with_password(row)
    job = accepted(place, dlc(DataSources=[{"DataSourceId": row.key}]))
    text = dlc(Envs={"TOKEN": f"$SECRET:{secret_of(job)}"})
    with pytest.raises(Refused) as caught:
        submission.submit(place.owner, Document(text, "dlc"), origin=job)
    assert [problem.code for problem in caught.value.problems] == ["no_own_secret"]
    again = accepted(place, dlc(DataSources=[{"DataSourceId": row.key}]))
    assert secret_of(again) != secret_of(job)


def test_job_mount_options_do_not_redirect_the_login(place: Place) -> None:
    row = make_dataset(place.workspace, "s3://sets/", source="s3", endpoint="https://s3.ours")
    source = {"DataSourceId": row.key, "Options": '{"endpoint": "https://evil.example"}'}
    assert kept(accepted(place, dlc(DataSources=[source]))).mounts[0].options["endpoint"] == "https://s3.ours"
    usual = make_dataset(place.workspace, "s3://sets/", source="s3")
    source = {"DataSourceId": usual.key, "Options": '{"endpoint": "https://evil.example"}'}
    assert "endpoint" not in kept(accepted(place, dlc(DataSources=[source]))).mounts[0].options


def test_personal_secret_of_a_code_source_is_used_and_noted(place: Place) -> None:
    row = make_code(place.workspace, own_secret="GIT_TOKEN", username="me")
    text = dlc(CodeSource={"CodeSourceId": row.key})
    (problem,) = refused(place, text)
    assert (problem.code, problem.params) == ("no_own_secret", {"name": "GIT_TOKEN"})
    personal_secrets.keep(place.owner, "GIT_TOKEN", "canary-own")
    (note,) = notes(place, text)
    assert note_message(note) == (
        "trainer is fetched with your secret GIT_TOKEN, which is sent to git.example.org."
    )
    job = Job.objects.get()
    code = kept(job).code
    assert code is not None
    assert code.uri == "https://me:$SECRET:GIT_TOKEN@git.example.org/ml/trainer.git"
    assert reconcile._submission(attempt_of(job)).secrets == {"GIT_TOKEN": "canary-own"}


def test_asset_password_is_always_the_current_one(place: Place) -> None:
    row = with_password(make_code(place.workspace))
    job = accepted(place, dlc(CodeSource={"CodeSourceId": row.key}))
    with_password(row, "canary-new")
    assert resolution.secrets_of(job) == {secret_of(job): "canary-new"}
    row.delete()
    assert resolution.secrets_of(job) == {}


# --- code ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "branch", "commit"),
    [
        ({}, "main", "0123456789"),
        ({"Branch": "dev"}, "dev", ""),
        ({"Commit": "abcdef0"}, "main", "abcdef0"),
    ],
)
def test_code_source_uses_revision_of_the_job_or_its_own(
    place: Place, said: dict[str, str], branch: str, commit: str
) -> None:
    row = make_code(place.workspace, branch="main", commit="0123456789")
    code = kept(accepted(place, dlc(CodeSource={"CodeSourceId": row.key, **said}))).code
    assert code is not None
    assert (code.uri, code.branch, code.commit) == ("https://git.example.org/ml/trainer.git", branch, commit)
    assert code.path == "/root/code"


def test_code_source_with_submodules_has_them_fetched(place: Place) -> None:
    row = make_code(place.workspace, submodules=True)
    code = kept(accepted(place, dlc(CodeSource={"CodeSourceId": row.key}))).code
    assert code is not None
    assert code.submodules


# --- images ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["key", "name", "address"])
def test_image_is_found_by_id_name_or_address(place: Place, by: str) -> None:
    row = with_password(make_image(place.workspace, username="bot"))
    job = accepted(place, dlc(image=getattr(row, by)))
    spec = kept(job)
    assert spec.roles[0].image == "registry.example.org/ml/torch:2.4"
    password = SecretRef(name=secret_of(job))
    assert spec.registry_auth == RegistryAuth(
        registry="registry.example.org", username="bot", password=password
    )


def test_image_not_registered_stays_unchanged(place: Place) -> None:
    make_image(make_workspace("other"), name="ubuntu")
    assert kept(accepted(place, dlc(image="ubuntu"))).roles[0].image == "ubuntu"
    assert not AssetUse.objects.exists()


def test_image_of_the_workspace_precedes_one_for_all(place: Place) -> None:
    make_image(name="torch", address="public/torch:1")
    make_image(place.workspace, name="torch", address="ours/torch:1")
    assert kept(accepted(place, dlc(image="torch"))).roles[0].image == "ours/torch:1"


def test_registry_login_in_the_job_file_takes_precedence(place: Place) -> None:
    row = with_password(make_image(place.workspace, username="bot"))
    config = {"ImageConfig": {"DockerRegistry": "mine", "Username": "me", "Password": "canary"}}
    spec = kept(accepted(place, dlc(image=row.key, role=config)))
    assert spec.registry_auth is not None
    assert spec.registry_auth.username == "me"
    assert AssetUse.objects.get().secret == ""


def test_images_with_logins_of_two_registries_are_refused(place: Place) -> None:
    first = with_password(make_image(place.workspace))
    second = with_password(make_image(place.workspace, name="b", address="other.example.org/b"))
    roles = [
        {"Type": kind, "Image": row.key, "PodCount": 1, "ResourceConfig": SMALL}
        for kind, row in (("Master", first), ("Worker", second))
    ]
    (problem,) = refused(place, dlc(JobSpecs=roles))
    assert (problem.code, problem.pointer) == ("two_image_logins", "/roles/1/image")


def test_asset_use_is_counted_per_job(place: Place) -> None:
    row: Asset = make_dataset(place.workspace)
    assert isinstance(row, Dataset)
    accepted(place, dlc(DataSources=[{"DataSourceId": row.key}]))
    accepted(place, dlc(DataSources=[{"DataSourceId": row.key, "MountPath": "/mnt/z"}]))
    assert changes.count_jobs(row) == 2
    assert changes.take_away(row) is False
