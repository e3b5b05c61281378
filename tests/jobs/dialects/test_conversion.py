"""From any dialect into any other, with every loss in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs import dialects, messages
from jobs.dialects import source
from jobs.dialects.base import Refused
from jobs.dialects.checks import apply_all_fixes, check
from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.messages.findings import loss_json
from jobs.spec import JobSpec, Resources, RoleSpec

SEEDS = Path(__file__).parents[2] / "data" / "seeds"
DLC = (SEEDS / "dlc-tfjob.json").read_text(encoding="utf-8")


def test_dialects_all_have_a_format_and_a_label() -> None:
    assert set(dialects.NAMES) <= set(FORMATS)
    assert all(messages.dialect_label(name) != name for name in dialects.NAMES)


@pytest.mark.parametrize("to", dialects.NAMES)
@pytest.mark.parametrize("seed", sorted(path.name for path in SEEDS.iterdir()))
def test_seed_files_convert_to_every_dialect_and_are_recognised(seed: str, to: str) -> None:
    made = dialects.convert(Document((SEEDS / seed).read_text(encoding="utf-8")), to)
    assert to in {found.name for found in Document(made.document.text).candidates}


def test_conversion_losses_point_at_source_lines() -> None:
    lines = DLC.splitlines()
    lost = {loss.pointer: loss for loss in dialects.convert(Document(DLC), "aihc").losses}
    for pointer, word in {
        "/roles/0/resources/instance_type": "EcsSpec",
        "/code/branch": "Branch",
        "/requirements/packages/0": "numpy",
        "/time_limit_s": "JobMaxRunningTimeMinutes",
        "/network/vpc": "VpcId",
    }.items():
        line = lost[pointer].line
        assert line is not None
        assert word in lines[line - 1]


def test_conversion_losses_from_target_point_at_target_lines() -> None:
    text = '{"jobName": "a", "image": "i", "taskRoles": [{"name": "m", "command": "c"}]}'
    made = dialects.convert(Document(text), "kubeflow")
    [framework] = [loss for loss in made.losses if loss.pointer == "/framework"]
    assert framework.line is not None
    assert made.document.text.splitlines()[framework.line - 1] == "apiVersion: kubeflow.org/v1"


def test_conversion_reports_fields_without_neutral_meaning_as_lost() -> None:
    text = DLC.replace('"DisplayName"', '"ElasticSpec": {"MaxParallelism": 2}, "DisplayName"')
    assert "ElasticSpec" in text
    made = dialects.convert(Document(text), "openpai-v1")
    left = [loss for loss in made.losses if loss.code == "not_carried"]
    assert [loss.pointer for loss in left if "Elastic" in loss.pointer]
    assert all(loss.line for loss in left)
    assert "ElasticSpec" in dialects.convert(Document(text), "dlc").document.text


def test_conversion_replaces_secrets_with_placeholders() -> None:
    text = (
        '{"jobName": "a", "image": "i", "jobEnvs": {"MY_TOKEN": "s3cret"},'
        ' "taskRoles": [{"name": "m", "command": "c"}]}'
    )
    made = dialects.convert(Document(text), "dlc")
    assert "s3cret" not in made.document.text
    assert made.source.parsed.secrets == {"MY_TOKEN": "s3cret"}


def test_conversion_to_unknown_dialect_raises_key_error() -> None:
    with pytest.raises(KeyError):
        dialects.convert(Document(DLC), "word")
    with pytest.raises(Refused):
        dialects.convert(Document("{"), "dlc")


def test_capability_label_exists_for_every_job_field() -> None:
    fields = [f"/{name}" for name in JobSpec.model_fields]
    fields += [f"/roles/0/{name}" for name in RoleSpec.model_fields]
    fields += [f"/roles/0/resources/{name}" for name in Resources.model_fields]
    without = [field for field in fields if not messages.capability_label(field)]
    assert without == []
    assert messages.capability_label("/nothing") == ""


def test_conversion_loss_names_capability_missing_in_target() -> None:
    told = {loss.pointer: loss_json(loss) for loss in dialects.convert(Document(DLC), "aihc").losses}
    assert told["/time_limit_s"]["capability"] == "time limits"
    assert told["/time_limit_s"]["side"] == "source"
    assert told["/network/vpc"]["capability"] == "custom virtual networks"


def test_fixes_are_applied_until_none_is_left() -> None:
    text = '{"jobName": "a b", "image": "i", "taskRoles": [{"name": "m n", "command": "c"}]}'
    done = apply_all_fixes(check(Document(text)))
    assert (done.problems, done.document.dialect) == ((), "openpai-v1")
    assert json.loads(done.document.text)["jobName"] == "a_b"
    assert apply_all_fixes(check(Document("{"))).document.text == "{"


@pytest.mark.parametrize("to", dialects.NAMES)
def test_conversion_with_many_losses_does_not_reread_file_for_each(
    monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    role = {"command": "c", "storageGB": 5, "mine": 1, "portList": [{"label": "w", "portNumber": 2}]}
    roles = [{"name": f"r{number}", "minFailedTaskCount": 1, **role} for number in range(60)]
    text = json.dumps({"jobName": "a", "image": "i", "retryCount": 3, "taskRoles": roles}, indent=1)
    read: list[str] = []
    examined = source._check_amount

    def counted(whole: str, strict: str) -> None:
        read.append(whole)
        examined(whole, strict)

    monkeypatch.setattr(source, "_check_amount", counted)
    made = dialects.convert(Document(text, "openpai-v1"), to)
    if made.losses:
        assert [loss for loss in made.losses if loss.line]
    assert len(read) < 60


def test_conversion_finds_roles_by_number_and_by_name() -> None:
    text = (
        '{\n"jobName": "a", "image": "i",\n"taskRoles": [\n{"name": "m", "command": "c"},\n'
        '{"name": "n", "command": "d",\n"storageGB": 7}]}'
    )
    lost = {loss.pointer: loss.line for loss in dialects.convert(Document(text), "aihc").losses}
    assert lost["/roles/1/resources/disk_mib"] == 6


@pytest.mark.parametrize(("source_dialect", "word"), [("openpai-v1", '"jupyter"'), ("openpai-v2", "jupyter")])
def test_conversion_loss_without_exact_place_points_at_surroundings(source_dialect: str, word: str) -> None:
    text = dialects.convert(
        Document((SEEDS / "jupyter.json").read_text(encoding="utf-8")), source_dialect
    ).document.text
    lost = {loss.pointer: loss.line for loss in dialects.convert(Document(text), "aihc").losses}
    line = lost["/roles/0/ports/0/label"]
    assert line is not None
    assert word in text.splitlines()[line - 1]


def test_conversion_reports_fields_ignored_by_target_as_losses() -> None:
    made = dialects.convert(Document(DLC), "openpai-v1")
    kept = {loss.pointer: loss for loss in made.losses if loss.code == "kept_for_console"}
    assert {"/framework", "/code/branch", "/requirements/packages/0", "/network/vpc"} <= set(kept)
    assert "jobConsole" in made.document.text
    lines = DLC.splitlines()
    assert all(loss.line for loss in kept.values())
    assert "Branch" in lines[(kept["/code/branch"].line or 0) - 1]
    told = loss_json(kept["/code/branch"])
    assert told["side"] == "source"
    assert told["message"] == (
        "Kept for Job Console; OpenPAI / SCM JSON (protocol v1) will ignore: /code/branch (master)."
    )
    assert told["capability"] == "fetching code before start"


@pytest.mark.parametrize("to", ["openpai-v1", "openpai-v2"])
def test_conversion_without_losses_reports_nothing(to: str) -> None:
    text = (
        '{"jobName": "a", "image": "i", "retryCount": 2, "taskRoles": [{"name": "m", "taskNumber": 2, '
        '"cpuNumber": 2, "memoryMB": 2048, "gpuNumber": 1, "command": "c"}]}'
    )
    made = dialects.convert(Document(text), to)
    assert made.losses == ()
    assert "jobConsole" not in made.document.text
