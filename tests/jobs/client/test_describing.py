"""Job files from what is said on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import dialects
from jobs.client import describing
from jobs.client.describing import Base, Wanted
from jobs.client.trouble import Trouble
from jobs.dialects.document import Document
from jobs.jobtemplates import SHIPPED
from jobs.spec import CodeSource, JobSpec, TaskRole
from jobs.trees import address, places

UPLOAD = address("a" * 64)


def read(base: Base) -> JobSpec:
    return base.document.parsed.spec


def test_a_new_job_says_what_was_said(tmp_path: Path) -> None:
    wanted = Wanted(
        ["python", "train.py", "--name", "a b"],
        gpus=2,
        gpu_type="A100",
        cpus=2.5,
        memory="8G",
        image="python:3.12",
        env={"A": "1"},
    )
    folder = tmp_path / "my project!"
    spec = read(describing.new(wanted, UPLOAD, folder))
    [role] = spec.roles
    assert (spec.name, role.command, role.image) == (
        "my-project",
        "python train.py --name 'a b'",
        "python:3.12",
    )
    resources = role.resources
    assert (resources.cpu_milli, resources.memory_mib, resources.gpus) == (2500, 8192, 2)
    assert (resources.gpu_type, spec.env) == ("A100", {"A": "1"})
    assert [tree for _where, tree in places(spec)] == ["a" * 64]


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_whatever_a_job_was_written_in_its_code_is_replaced_and_the_rest_stays(dialect: str) -> None:
    spec = JobSpec(
        name="job",
        roles=(TaskRole(name="worker", command="python old.py", image="python:3.12"),),
        code=CodeSource(uri="https://example.org/a/b.git"),
    )
    text = dialects.get(dialect).render(spec, {}).text
    file = describing.changed(Base(Document(text, dialect)), Wanted(["python", "new.py"]), UPLOAD)
    found = read(file)
    assert [tree for _where, tree in places(found)] == ["a" * 64]
    assert (found.name, found.roles[0].image) == ("job", "python:3.12")
    assert "new.py" in found.roles[0].command


def test_without_files_a_pattern_keeps_its_code() -> None:
    text = (
        dialects.get("dlc")
        .render(
            JobSpec(name="job", roles=(TaskRole(name="worker", command="x"),), code=CodeSource(id="code-1")),
            {},
        )
        .text
    )
    file = describing.changed(Base(Document(text, "dlc")), Wanted(gpus=1), "")
    assert (read(file).code, read(file).roles[0].resources.gpus) == (CodeSource(id="code-1"), 1)


@pytest.mark.parametrize("template", SHIPPED)
def test_every_template_that_ships_can_be_run(template: str) -> None:
    base = Base(SHIPPED[template].document)
    assert [tree for _where, tree in places(read(describing.changed(base, Wanted(), UPLOAD)))] == ["a" * 64]


@pytest.mark.parametrize("dialect", ["dlc", "openpai-v1", "sbatch", "kubeflow"])
def test_a_job_to_wait_for_is_said_in_words_that_can_say_it(dialect: str, tmp_path: Path) -> None:
    spec = JobSpec(name="job", roles=(TaskRole(name="worker", command="x", image="i"),))
    base = Base(dialects.get(dialect).render(spec, {}).document)
    wanted = Wanted(["true"], after=["abc123def456"])
    for file in (describing.changed(base, wanted, UPLOAD), describing.changed(base, wanted, "")):
        assert [each.job for each in read(file).after] == ["abc123def456"]
    assert [each.job for each in read(describing.new(wanted, UPLOAD, tmp_path)).after] == ["abc123def456"]


def test_what_makes_no_sense_is_said(tmp_path: Path) -> None:
    for wanted in (Wanted(), Wanted(["x"], memory="much")):
        with pytest.raises(Trouble) as trouble:
            describing.new(wanted, UPLOAD, tmp_path)
        assert trouble.value.status == 2
    assert describing.variables(["A=1", "B=", "C=x=y"]) == {"A": "1", "B": "", "C": "x=y"}
    for said in ("A", "1=2", "=x"):
        with pytest.raises(Trouble):
            describing.variables([said])
