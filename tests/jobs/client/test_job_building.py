"""Job files from what is said on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import dialects
from jobs.client import job_building
from jobs.client.failure import CommandFailure
from jobs.client.job_building import BaseFile, JobOptions
from jobs.dialects.document import Document
from jobs.jobtemplates import SHIPPED
from jobs.spec import CodeSource, JobSpec, RoleSpec
from jobs.trees import address, find_trees

UPLOAD = address("a" * 64)


def read(base: BaseFile) -> JobSpec:
    return base.document.parsed.spec


def test_new_job_file_contains_command_line_options(tmp_path: Path) -> None:
    wanted = JobOptions(
        ["python", "train.py", "--name", "a b"],
        gpus=2,
        gpu_type="A100",
        cpus=2.5,
        memory="8G",
        image="python:3.12",
        env={"A": "1"},
    )
    folder = tmp_path / "my project!"
    spec = read(job_building.create_file(wanted, UPLOAD, folder))
    [role] = spec.roles
    assert (spec.name, role.command, role.image) == (
        "my-project",
        "python train.py --name 'a b'",
        "python:3.12",
    )
    resources = role.resources
    assert (resources.cpu_milli, resources.memory_mib, resources.gpus) == (2500, 8192, 2)
    assert (resources.gpu_type, spec.env) == ("A100", {"A": "1"})
    assert [tree for _where, tree in find_trees(spec)] == ["a" * 64]


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_changed_job_file_gets_new_command_and_code_and_keeps_rest(dialect: str) -> None:
    spec = JobSpec(
        name="job",
        roles=(RoleSpec(name="worker", command="python old.py", image="python:3.12"),),
        code=CodeSource(uri="https://example.org/a/b.git"),
    )
    text = dialects.get(dialect).render(spec, {}).text
    file = job_building.change_file(
        BaseFile(Document(text, dialect)), JobOptions(["python", "new.py"]), UPLOAD
    )
    found = read(file)
    assert [tree for _where, tree in find_trees(found)] == ["a" * 64]
    assert (found.name, found.roles[0].image) == ("job", "python:3.12")
    assert "new.py" in found.roles[0].command


def test_changed_job_file_without_upload_keeps_its_code() -> None:
    text = (
        dialects.get("dlc")
        .render(
            JobSpec(name="job", roles=(RoleSpec(name="worker", command="x"),), code=CodeSource(id="code-1")),
            {},
        )
        .text
    )
    file = job_building.change_file(BaseFile(Document(text, "dlc")), JobOptions(gpus=1), "")
    assert (read(file).code, read(file).roles[0].resources.gpus) == (CodeSource(id="code-1"), 1)


@pytest.mark.parametrize("template", SHIPPED)
def test_shipped_template_accepts_uploaded_code(template: str) -> None:
    base = BaseFile(SHIPPED[template].document)
    assert [
        tree for _where, tree in find_trees(read(job_building.change_file(base, JobOptions(), UPLOAD)))
    ] == ["a" * 64]


@pytest.mark.parametrize("dialect", ["dlc", "openpai-v1", "sbatch", "kubeflow"])
def test_changed_job_file_contains_job_dependency(dialect: str, tmp_path: Path) -> None:
    spec = JobSpec(name="job", roles=(RoleSpec(name="worker", command="x", image="i"),))
    base = BaseFile(dialects.get(dialect).render(spec, {}).document)
    wanted = JobOptions(["true"], after=["abc123def456"])
    for file in (job_building.change_file(base, wanted, UPLOAD), job_building.change_file(base, wanted, "")):
        assert [each.job for each in read(file).after] == ["abc123def456"]
    assert [each.job for each in read(job_building.create_file(wanted, UPLOAD, tmp_path)).after] == [
        "abc123def456"
    ]


def test_invalid_job_options_are_rejected(tmp_path: Path) -> None:
    for wanted in (JobOptions(), JobOptions(["x"], memory="much")):
        with pytest.raises(CommandFailure) as trouble:
            job_building.create_file(wanted, UPLOAD, tmp_path)
        assert trouble.value.status == 2
    assert job_building.variables(["A=1", "B=", "C=x=y"]) == {"A": "1", "B": "", "C": "x=y"}
    for said in ("A", "1=2", "=x"):
        with pytest.raises(CommandFailure):
            job_building.variables([said])
