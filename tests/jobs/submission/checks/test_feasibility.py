"""What a cluster will never run is told before a job is submitted, with what can be done about it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs import submission, trees
from jobs.assets import resolution
from jobs.client import job_building
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.ours.keys import NAME
from jobs.facilities import READ_ONLY, WRITABLE, Facilities, SharedFolder
from jobs.jobtemplates import SHIPPED
from jobs.messages import problem_message
from jobs.messages.actions import action_label
from jobs.models import AssetUse, Job, RamRole
from jobs.submission.checks import feasibility
from jobs.submission.forms import fill_template, first_answers
from jobs.submission.sweeps import arrays
from quotas.models import Cluster, Node, Quota, Workspace
from tests import seeds
from tests.factories import make_cluster, make_site_storage, make_workspace
from tests.jobs.conftest import Place

SUGGESTED = ["ecs.g7.large", "ecs.g6.large", "ecs.g7.xlarge"]

NOTHING = Facilities(images=False, plain=False, modules=False, folders=(), code=())


def told(place: Place, facilities: Facilities | None) -> None:
    """The cluster's backend has told this."""
    place.cluster.facilities = facilities and facilities.to_json()
    place.cluster.save()
    place.quota.refresh_from_db()


def v1(**changes: Any) -> str:
    """An OpenPAI job of one role."""
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 1024, "command": "true"}
    role |= changes.pop("role", {})
    return json.dumps({"jobName": "job", "image": "", "taskRoles": [role], **changes}, indent=2)


def dlc(**changes: Any) -> str:
    """A DLC job of one role."""
    config = {"CPU": "1", "Memory": "1Gi"}
    role = {"Type": "Worker", "PodCount": 1, "ResourceConfig": config, **changes.pop("role", {})}
    file: dict[str, Any] = {
        "DisplayName": "job",
        "JobType": "PyTorchJob",
        "JobSpecs": [role],
        "UserCommand": "true",
    }
    file["JobMaxRunningTimeMinutes"] = 60
    return json.dumps({**file, **changes}, indent=2)


def sbatch(body: str, *options: str) -> str:
    """A script."""
    return "\n".join(["#!/bin/bash", "#SBATCH --mem=1G", *(f"#SBATCH {each}" for each in options), body, ""])


def refused(place: Place, text: str) -> list[Problem]:
    """Why the console does not take the file; it takes nothing of it."""
    with pytest.raises(Refused) as error:
        submission.submit(place.owner, Document(text))
    assert not Job.objects.exists()
    return list(error.value.problems)


def kinds(problem: Problem) -> list[str]:
    """What can be done about it."""
    return [action.kind for action in problem.actions]


def after(text: str, problem: Problem, kind: str) -> str:
    """The file with that done."""
    action = next(each for each in problem.actions if each.kind == kind)
    return feasibility.apply_action(Document(text), action.kind, action.value).text


def test_image_without_container_engine_is_refused_and_can_be_dropped(place: Place) -> None:
    told(place, NOTHING)
    text = v1(image="pytorch/pytorch:2")
    (found,) = refused(place, text)
    assert (found.code, found.pointer, found.line) == ("image_not_run", "/roles/0/image", 3)
    assert kinds(found) == ["without_image"]
    job = submission.submit(place.owner, Document(after(text, found, "without_image"))).job
    assert job.file.spec.roles[0].image == ""


def test_image_with_placeholder_of_the_manual_is_refused_where_images_run(place: Place) -> None:
    told(place, replace(NOTHING, images=True))
    (found,) = refused(place, v1(image="registry.<region-id>.example.org/torch:2"))
    assert (found.code, found.params["placeholder"]) == ("image_unfilled", "<region-id>")
    told(place, replace(NOTHING, plain=True))
    submission.submit(place.owner, Document(v1(image="registry.<region-id>.example.org/torch:2")))


@pytest.mark.parametrize(
    ("image", "container", "code", "member"),
    [
        ("i", {"Name": "x", "Image": "i"}, "container_without_command", "command"),
        ("", {"Name": "x", "Image": "i", "Command": ["true"]}, "container_image_alone", "image"),
    ],
)
def test_container_that_can_not_run_here_is_refused(
    place: Place, image: str, container: dict[str, Any], code: str, member: str
) -> None:
    told(place, Facilities(images=False, plain=True, one_machine=True))
    text = dlc(role={"Image": image, "ExtraPodSpec": {"SideCarContainers": [container]}})
    assert [(found.code, found.pointer) for found in refused(place, text)] == [
        (code, f"/roles/0/sidecars/0/{member}")
    ]


def test_image_with_plain_processes_allowed_is_accepted_with_note(place: Place) -> None:
    told(place, Facilities(images=False, plain=True))
    submitted = submission.submit(place.owner, Document(v1(image="pytorch/pytorch:2")))
    assert "image_not_used" in {note.code for note in submitted.notes}


@pytest.mark.parametrize(
    ("network", "image_network", "problems", "notes"),
    [
        ("own", "own", [], []),
        ("host", "host", [], ["egress_ignored"]),
        ("", "", ["egress_not_enforced"], []),
        ("own", "", ["egress_not_enforced"], []),
    ],
)
def test_job_of_restricted_workspace_is_refused_where_egress_is_not_enforced(
    place: Place, network: str, image_network: str, problems: list[str], notes: list[str]
) -> None:
    told(place, Facilities(images=True, plain=False, network=network, image_network=image_network))
    quota, spec = place.quota, Document(v1(image="pytorch/pytorch:2")).parsed.spec
    assert not feasibility.notes(place.owner, quota, spec, "openpai-v1")
    quota.workspace.egress = []
    parsed = Document(v1(image="pytorch/pytorch:2")).parsed
    assert [each.code for each in feasibility.problems(place.owner, quota, parsed)] == problems
    assert [each.code for each in feasibility.notes(place.owner, quota, spec, "openpai-v1")] == notes
    line = "No network" if image_network == "own" else ""
    assert feasibility.describe_network(quota, spec) == line


ARN = "acs:ram::1:role/trainer"
OWN = Facilities(images=False, plain=False, network="own", image_network="own")


def make_role(workspace: Workspace, name: str = "trainer", **columns: Any) -> RamRole:
    """A role with an access key."""
    row = RamRole(workspace=workspace, name=name, arn=ARN, access_key_id="LTAI", **columns)
    row.encrypt("secret")
    row.save()
    return row


def with_role(*roles: str) -> str:
    """A DLC job with PAI's default role, or the one of this ARN."""
    items = [{"Key": "0", "Type": "Role", "Roles": [{"RoleArn": arn, "RoleType": "user"}]} for arn in roles]
    return dlc(CredentialConfig={"EnableCredentialInject": True, "CredentialConfigItems": items})


def test_role_of_the_workspace_is_used_and_others_are_refused_with_its_names(place: Place) -> None:
    told(place, OWN)
    theirs = make_role(make_workspace("other"), "theirs")
    RamRole.objects.create(name="public", arn=ARN)
    for text, code, words in (
        (with_role(ARN), "role_unknown", f"Jobs in Vision can't use role {ARN}. No roles available"),
        (with_role(), "role_no_default", "Vision has no default role. No roles available"),
    ):
        (found,) = refused(place, text)
        assert (found.code, found.pointer, found.line) == (code, "/instance_role", 17)
        assert words in problem_message(found)
        assert kinds(found) == ["role"]
    row = make_role(place.workspace, retired_at=timezone.now())
    assert refused(place, with_role(ARN))[0].code == "role_unknown"
    RamRole.objects.filter(pk=row.pk).update(retired_at=None)
    (found,) = refused(place, with_role())
    assert problem_message(found) == f"Vision has no default role. Available: trainer ({ARN})."
    assert list(map(action_label, found.actions)) == ["Use role trainer", "Run without a role"]
    job = submission.submit(place.owner, Document(after(with_role(), found, "role"))).job
    assert job.file.spec.instance_role == ARN
    assert [use.key for use in job.asset_uses.all()] == [row.key]
    RamRole.objects.filter(pk=row.pk).update(is_default=True)
    assert submission.submit(place.owner, Document(with_role())).job.asset_uses.get().key == row.key
    assert theirs.key not in set(AssetUse.objects.values_list("key", flat=True))


def test_role_is_refused_where_jobs_have_no_network_of_their_own(place: Place) -> None:
    make_role(place.workspace)
    told(place, replace(OWN, network="host", image_network="host"))
    (found,) = refused(place, with_role(ARN))
    assert (found.code, found.pointer) == ("role_without_network", "/instance_role")
    assert submission.submit(place.owner, Document(after(with_role(ARN), found, "role"))).job.pk


def test_gpus_missing_in_cluster_are_refused_and_can_be_dropped(place: Place) -> None:
    text = v1(role={"gpuNumber": 1}, gpuType="TITANX")
    (found,) = refused(place, text)
    assert (found.code, found.pointer, kinds(found)) == (
        "no_gpus",
        "/roles/0/resources/gpus",
        ["without_gpu"],
    )
    job = submission.submit(place.owner, Document(after(text, found, "without_gpu"))).job
    assert (job.gpus, job.gpu_type) == (0, "")


def test_gpu_type_missing_on_nodes_offers_available_types(place: Place) -> None:
    Node.objects.filter(pk=place.node.pk).update(gpus={"A100": 2, "V100-SXM2": 1})
    text = v1(role={"gpuNumber": 1}, gpuType="V100")
    (found,) = refused(place, text)
    assert (found.code, found.params["types"]) == ("no_gpu_of_type", "V100-SXM2, A100")
    assert [action.value for action in found.actions] == ["V100-SXM2", "A100", ""]
    assert (
        submission.submit(place.owner, Document(after(text, found, "gpu_type"))).job.gpu_type == "V100-SXM2"
    )


@pytest.mark.parametrize("state", ["cordoned", "draining", "down"])
def test_gpus_of_unavailable_node_are_accepted_to_wait(place: Place, state: str) -> None:
    Node.objects.filter(pk=place.node.pk).update(gpus={"A100": 2}, state=state)
    assert submission.submit(place.owner, Document(v1(role={"gpuNumber": 1}, gpuType="A100"))).job.gpus == 1


def test_gpus_of_cluster_without_known_nodes_are_accepted_to_wait(place: Place) -> None:
    Node.objects.all().delete()
    assert submission.submit(place.owner, Document(v1(role={"gpuNumber": 1}))).job.gpus == 1


def test_data_that_nothing_maps_is_refused_and_can_be_dropped_or_renamed(place: Place) -> None:
    told(place, NOTHING)
    make_site_storage("nas://fs-1.cn-hangzhou", bucket="s3://sets")
    make_site_storage("nas://fs-2.cn-hangzhou", "/data/theirs", workspaces=[make_workspace()])
    text = dlc(DataSources=[{"Uri": "nas://fs-1.cn-hangzho/x/", "MountPath": "/mnt/data"}])
    (found,) = refused(place, text)
    assert (found.code, found.pointer) == ("data_not_mapped", "/mounts/0/uri")
    assert kinds(found) == ["mount_address", "without_mount"]
    assert found.params["near"] == "nas://fs-1.cn-hangzhou"
    assert found.line is not None
    assert submission.submit(place.owner, Document(after(text, found, "mount_address"))).job.pk
    assert not submission.submit(
        place.owner, Document(after(text, found, "without_mount"))
    ).job.file.spec.mounts


@pytest.mark.parametrize("is_mapped", [True, False])
def test_data_mapped_or_admitted_by_settings_is_accepted(place: Place, is_mapped: bool) -> None:
    store = "oss://bucket.oss-cn-hangzhou.aliyuncs.com"
    told(place, Facilities(images=False, plain=False, data=() if is_mapped else (store,)))
    if is_mapped:
        make_site_storage(f"{store}/x/", bucket="s3://sets")
    source = {"Uri": f"{store}/x/y/", "MountPath": "/mnt/data"}
    assert submission.submit(place.owner, Document(dlc(DataSources=[source]))).job.pk


def test_bucket_is_refused_for_writing_where_it_is_only_read(place: Place) -> None:
    told(place, Facilities(images=False, plain=False, buckets=READ_ONLY))
    make_site_storage("d-1", bucket="s3://sets")
    text = dlc(DataSources=[{"DataSourceId": "d-1", "MountPath": "/mnt/data"}])
    (found,) = refused(place, text)
    assert (found.code, kinds(found)) == ("storage_not_writable", ["mount_read_only", "without_mount"])
    assert submission.submit(place.owner, Document(after(text, found, "mount_read_only"))).job.pk


def test_output_to_read_only_mapping_is_refused(place: Place) -> None:
    told(place, NOTHING)
    make_site_storage("pfs://pfs-1", bucket="s3://sets", read_only=True)
    assert [each.code for each in refused(place, v1(outputDir="pfs://pfs-1/out"))] == ["storage_read_only"]


def test_dataset_unknown_is_refused_and_configured_one_has_no_note(place: Place) -> None:
    told(place, NOTHING)
    text = dlc(DataSources=[{"DataSourceId": "d-1", "MountPath": "/mnt/data"}])
    (found,) = refused(place, text)
    assert (found.code, found.pointer) == ("dataset_not_known", "/mounts/0/id")
    make_site_storage("d-1", bucket="s3://sets")
    assert not submission.submit(place.owner, Document(text)).notes


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("pfs://pfs-1/data", "storage_not_admitted"),
        ("pfs://pfs-1/ours/x", "folder_not_admitted"),
        ("pfs://pfs-1/ours/open/x", ""),
        ("pfs://pfs-10/data", "data_not_mapped"),
    ],
)
def test_mapped_storage_is_refused_by_workspace_and_folder_of_longest_address(
    place: Place, uri: str, code: str
) -> None:
    make_site_storage("pfs://pfs-1", "/data", workspaces=[make_workspace()])
    make_site_storage("pfs://pfs-1/ours", "/data/ours", workspaces=[place.quota.workspace])
    make_site_storage("pfs://pfs-1/ours/open", "/x", clusters={place.quota.cluster: "/data/open"})
    make_site_storage("pfs://pfs-10", "/data/open", clusters={make_cluster(): ""})
    told(place, Facilities(images=False, plain=False, folders=(SharedFolder("/data/open"),)))
    text = dlc(DataSources=[{"Uri": uri, "MountPath": "/mnt/data"}])
    if code:
        assert [each.code for each in refused(place, text)] == [code]
    else:
        assert submission.submit(place.owner, Document(text)).job.pk


def test_page_sample_is_refused_until_its_address_is_mapped(place: Place) -> None:
    sample = (seeds.FOLDER / "aihc-pytorchjob.json").read_text(encoding="utf-8")
    told(place, Facilities(images=False, plain=True))
    (found,) = refused(place, sample)
    assert (found.code, found.params["place"]) == ("data_not_mapped", "pfs://pfs-pxE6jz")
    make_site_storage("pfs://pfs-pxE6jz", "/data/cluster")
    assert submission.submit(place.owner, Document(sample)).job.pk


def test_facilities_are_stored_and_those_of_earlier_versions_are_read() -> None:
    assert Facilities.from_json({"images": False, "plain": True, "datasets": ["d-1"]}).buckets == WRITABLE
    known = Facilities(images=False, plain=True, buckets=READ_ONLY, folders=(SharedFolder("/data"),))
    assert Facilities.from_json(json.loads(json.dumps(known.to_json()))) == known


@pytest.mark.parametrize(
    ("folder", "taken"),
    [
        (SharedFolder("/data/sets"), True),
        (SharedFolder("/data/sets", ("vision",)), True),
        (SharedFolder("/data/sets", ("speech",)), False),
        (SharedFolder("/data/{user}"), False),
        (SharedFolder("/data"), True),
        (SharedFolder("/data/sets/a/b"), False),
    ],
)
def test_folder_is_accepted_only_when_admitted_by_settings(
    place: Place, folder: SharedFolder, taken: bool
) -> None:
    told(place, Facilities(images=False, plain=False, folders=(folder,)))
    text = v1(dataDir="file:///data/sets/a")
    if taken:
        assert submission.submit(place.owner, Document(text)).job.pk
    else:
        assert [each.code for each in refused(place, text)] == ["folder_not_admitted"]


@pytest.mark.parametrize(
    ("uri", "setting"),
    [
        ("hdfs://host:9000/code", "hdfs"),
        ("https://git.example.org/a.git", "code_from"),
        ("oss://bucket/code", "data_from"),
        ("ftp://host/code", None),
    ],
)
def test_code_dir_not_fetched_is_refused_and_can_be_dropped(
    place: Place, uri: str, setting: str | None
) -> None:
    told(place, Facilities(images=False, plain=False, code=("https://git.example.com",)))
    text = v1(codeDir=uri)
    (found,) = refused(place, text)
    assert (found.code, found.pointer, kinds(found)) == (
        "code_not_fetched",
        "/mounts/1/uri",
        ["without_code"],
    )
    assert found.params.get("setting") == setting
    assert submission.submit(place.owner, Document(after(text, found, "without_code"))).job.pk


@pytest.mark.parametrize(
    "uri", ["hdfs://host:9000/code", "https://git.example.com/a.git", "s3://sets/code", "git@host:x/y"]
)
def test_code_dir_that_settings_admit_is_accepted(place: Place, uri: str) -> None:
    code, hdfs = ("https://git.example.com", "ssh://host"), ("hdfs://host:9000",)
    told(place, Facilities(images=False, plain=False, code=code, data=("s3://*",), hdfs=hdfs))
    assert submission.submit(place.owner, Document(v1(codeDir=uri))).job.pk


def test_data_dir_on_foreign_storage_is_accepted(place: Place) -> None:
    told(place, NOTHING)
    text = v1(dataDir="hdfs://host:9000/data", outputDir="hdfs://host:9000/o")
    submitted = submission.submit(place.owner, Document(text))
    passed = [note.pointer for note in submitted.notes if note.code == "location_passed"]
    assert passed == ["/mounts/0/uri", "/mounts/1/uri"]
    told(place, Facilities(images=False, plain=False, data=("hdfs://host:9000",)))
    submitted = submission.submit(place.owner, Document(text.replace('"train"', '"train2"')))
    assert not [note for note in submitted.notes if note.code == "location_passed"]


def test_library_file_that_needs_a_program_is_noted(place: Place) -> None:
    told(place, NOTHING)
    text = dlc(ThirdpartyLibDir="/root/code/environment.yml")
    (found,) = (
        note
        for note in submission.submit(place.owner, Document(text)).notes
        if note.code == "libraries_need_program"
    )
    assert (found.pointer, found.params["programs"]) == (
        "/requirements/directory",
        "conda, mamba, micromamba",
    )


def test_code_source_unknown_or_not_admitted_is_refused(place: Place) -> None:
    told(place, Facilities(images=False, plain=False, code=("https://github.com",), code_ids=("code-2",)))
    by_id = dlc(CodeSource={"CodeSourceId": "code-1", "MountPath": "/root/code"})
    (found,) = refused(place, by_id)
    assert (found.code, found.pointer) == ("code_not_known", "/code/id")
    assert (
        submission.submit(place.owner, Document(after(by_id, found, "without_code"))).job.file.spec.code
        is None
    )
    assert submission.submit(place.owner, Document(by_id.replace("code-1", "code-2"))).job.pk


def test_code_in_a_mapped_bucket_is_accepted(place: Place) -> None:
    told(place, Facilities(images=False, plain=False))
    make_site_storage("oss://sets", bucket="s3://sets")
    text = dlc(**{NAME: {"code": {"uri": "oss://sets/tool.zip"}}})
    (found,) = refused(place, text.replace("sets", "others"))
    assert (found.code, found.pointer) == ("code_not_fetched", "/code/uri")
    assert submission.submit(place.owner, Document(text)).job.pk


def test_srun_without_slurm_is_refused_on_its_line_and_removed(place: Place) -> None:
    told(place, NOTHING)
    text = sbatch("cd /tmp\nsrun -n 1 python3 train.py")
    (found,) = refused(place, text)
    assert (found.code, found.params["program"], found.line) == ("no_slurm", "srun", 4)
    assert submission.submit(place.owner, Document(after(text, found, "without_srun"))).job.pk


def test_script_for_several_nodes_without_slurm_is_refused(place: Place) -> None:
    told(place, NOTHING)
    (found,) = refused(place, sbatch("srun hostname", "--nodes=2", "--ntasks=2"))
    assert found.code == "one_node_without_slurm"


def test_modules_without_module_system_are_refused_and_removed(place: Place) -> None:
    told(place, NOTHING)
    text = sbatch("module load cuda/12.4\npython3 train.py")
    (found,) = refused(place, text)
    assert (found.code, found.line, kinds(found)) == ("no_modules", 3, ["without_modules"])
    assert submission.submit(place.owner, Document(after(text, found, "without_modules"))).job.pk


def test_srun_and_modules_on_slurm_are_accepted_without_note(place: Place) -> None:
    told(place, Facilities(images=False, plain=False, slurm=True))
    text = sbatch("module load cuda/12.4\nsrun python3 train.py", "--job-name=train", "--cpus-per-task=1")
    codes = {note.code for note in submission.submit(place.owner, Document(text)).notes}
    assert "needs_slurm" not in codes


def test_slurm_command_inside_image_is_accepted(place: Place) -> None:
    told(place, Facilities(images=True, plain=False, modules=False))
    assert submission.submit(
        place.owner, Document(v1(image="hpc/slurm", role={"command": "srun true"}))
    ).job.pk


def test_size_unknown_is_refused_and_default_can_be_used(place: Place) -> None:
    text = dlc(role={"EcsSpec": "ecs.g9.huge", "ResourceConfig": None})
    (found,) = refused(place, text)
    assert (found.code, found.pointer) == ("size_not_known", "/roles/0/resources/instance_type")
    assert [each.value for each in found.actions if each.kind == "instance_type"] == [*SUGGESTED, ""]
    assert submission.submit(place.owner, Document(after(text, found, "instance_type"))).job.pk


def test_size_unknown_does_not_replace_given_amounts(place: Place) -> None:
    amounts = {"CPU": "3", "Memory": "5Gi"}
    job = submission.submit(
        place.owner, Document(dlc(role={"EcsSpec": "ecs.g9.huge", "ResourceConfig": amounts}))
    ).job
    resources = job.file.spec.roles[0].resources
    assert (resources.cpu_milli, resources.memory_mib) == (3000, 5120)


def test_other_cluster_with_everything_is_offered(place: Place) -> None:
    told(place, NOTHING)
    for slug, facilities in (("none", NOTHING), ("gpus", Facilities(images=True, plain=False))):
        kept = facilities.to_json()
        cluster = Cluster.objects.create(slug=slug, name=slug.upper(), backend="memory", facilities=kept)
        Node.objects.create(cluster=cluster, name=slug, cpu_milli=8000, memory_mib=8192)
        Quota.objects.create(workspace=place.workspace, cluster=cluster, slug="q", name="Q")
    (found,) = refused(place, v1(image="a/b"))
    assert [(each.kind, each.value) for each in found.actions] == [
        ("without_image", ""),
        ("quota", "vision/gpus/q"),
    ]


def test_cluster_without_reported_facilities_accepts_image_and_data(place: Place) -> None:
    text = dlc(role={"Image": "a/b"}, DataSources=[{"Uri": "pfs://x/y", "MountPath": "/mnt/data"}])
    assert submission.submit(place.owner, Document(text)).job.pk


@pytest.mark.parametrize("kind", ["nothing", "without_mount", "without_srun"])
def test_action_not_applicable_raises_error(kind: str) -> None:
    with pytest.raises(feasibility.CannotActError):
        feasibility.apply_action(Document(v1(), "openpai-v1"), kind, "7")


HERE = Facilities(images=False, plain=True, modules=False, folders=(), code=(), one_machine=True)
"""A CPU-only machine as the first start has it, without a container engine."""


@pytest.mark.parametrize("name", SHIPPED)
def test_built_in_template_runs_without_gpus_and_has_no_notes(place: Place, name: str) -> None:
    told(place, HERE)
    template = SHIPPED[name]
    answers = first_answers(template, submission.quotas_open_to(place.owner))
    document = fill_template(place.owner, template, answers)
    array = document.parsed.array
    if array is not None:
        document = arrays.first(document, array)
    submitted = submission.submit(place.owner, document, keep_original=True)
    assert submitted.notes == ()
    assert (submitted.job.gpus, submitted.job.file.spec.roles[0].image) == (0, "")


def test_cli_plain_command_has_no_notes(place: Place, tmp_path: Path) -> None:
    told(place, HERE)
    wanted = job_building.JobOptions(argv=("python3", "-c", "print(1)"))
    file = job_building.create_file(wanted, trees.address("a" * 64), tmp_path)
    parsed = file.document.parsed
    resolved = resolution.resolve_spec(place.owner, parsed, place.workspace)
    assert feasibility.select_notes(place.quota, (*parsed.notes, *resolved.notes)) == ()
    assert feasibility.problems(place.owner, place.quota, replace(parsed, spec=resolved.spec)) == ()
