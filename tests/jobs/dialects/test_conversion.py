"""From any dialect into any other, with every loss in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs import dialects, messages
from jobs.dialects import source
from jobs.dialects.base import Refused
from jobs.dialects.checking import check, fixed
from jobs.dialects.formats import FORMATS
from jobs.dialects.once import once, reading_once
from jobs.messages.findings import loss_json
from jobs.spec import JobSpec, Resources, TaskRole

SEEDS = Path(__file__).parents[2] / "data" / "seeds"
DLC = (SEEDS / "dlc-tfjob.json").read_text(encoding="utf-8")


def test_every_dialect_has_a_format_and_a_name() -> None:
    assert set(dialects.NAMES) <= set(FORMATS)
    assert all(messages.dialect_label(name) != name for name in dialects.NAMES)


@pytest.mark.parametrize("to", dialects.NAMES)
@pytest.mark.parametrize("seed", sorted(path.name for path in SEEDS.iterdir()))
def test_every_seed_becomes_every_dialect_and_is_known_as_it(seed: str, to: str) -> None:
    made = dialects.convert((SEEDS / seed).read_text(encoding="utf-8"), to)
    assert to in {found.name for found in dialects.detect(made.text)}


def test_losses_stand_where_the_source_says_what_is_lost() -> None:
    lines = DLC.splitlines()
    lost = {loss.pointer: loss for loss in dialects.convert(DLC, "aihc").losses}
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


def test_what_a_target_brings_along_stands_in_the_target() -> None:
    text = '{"jobName": "a", "image": "i", "taskRoles": [{"name": "m", "command": "c"}]}'
    made = dialects.convert(text, "kubeflow")
    [framework] = [loss for loss in made.losses if loss.pointer == "/framework"]
    assert framework.line is not None
    assert made.text.splitlines()[framework.line - 1] == "apiVersion: kubeflow.org/v1"


def test_what_has_no_neutral_meaning_is_told_as_lost() -> None:
    text = DLC.replace('"DisplayName"', '"ElasticSpec": {"MaxParallelism": 2}, "DisplayName"')
    assert "ElasticSpec" in text
    made = dialects.convert(text, "openpai-v1")
    left = [loss for loss in made.losses if loss.code == "not_carried"]
    assert [loss.pointer for loss in left if "Elastic" in loss.pointer]
    assert all(loss.line for loss in left)
    assert "ElasticSpec" in dialects.convert(text, "dlc").text


def test_secrets_are_placeholders_with_their_values_beside() -> None:
    text = (
        '{"jobName": "a", "image": "i", "jobEnvs": {"MY_TOKEN": "s3cret"},'
        ' "taskRoles": [{"name": "m", "command": "c"}]}'
    )
    made = dialects.convert(text, "dlc")
    assert "s3cret" not in made.text
    assert made.parsed.secrets == {"MY_TOKEN": "s3cret"}


def test_an_unknown_target_is_an_error_of_the_caller() -> None:
    with pytest.raises(KeyError):
        dialects.convert(DLC, "word")
    with pytest.raises(Refused):
        dialects.convert("{", "dlc")


def test_every_field_of_a_job_has_a_capability() -> None:
    fields = [f"/{name}" for name in JobSpec.model_fields]
    fields += [f"/roles/0/{name}" for name in TaskRole.model_fields]
    fields += [f"/roles/0/resources/{name}" for name in Resources.model_fields]
    without = [field for field in fields if not messages.capability_label(field)]
    assert without == []
    assert messages.capability_label("/nothing") == ""


def test_a_loss_says_what_the_target_lacks() -> None:
    told = {loss.pointer: loss_json(loss) for loss in dialects.convert(DLC, "aihc").losses}
    assert told["/time_limit_s"]["capability"] == "a time limit"
    assert told["/time_limit_s"]["side"] == "source"
    assert told["/network/vpc"]["capability"] == "a virtual network of one's own"


def test_fixes_are_made_until_none_is_left() -> None:
    text = '{"jobName": "a b", "image": "i", "taskRoles": [{"name": "m n", "command": "c"}]}'
    done = fixed(check(text))
    assert (done.problems, done.dialect) == ((), "openpai-v1")
    assert json.loads(done.text)["jobName"] == "a_b"
    assert fixed(check("{")).text == "{"


def test_while_places_are_worked_out_a_text_is_read_once() -> None:
    asked: list[str] = []

    @once
    def read(text: str, rules: dict[str, str] | None = None) -> list[str]:
        asked.append(text)
        if not text:
            raise ValueError
        return [text, *(rules or ())]

    assert read("a") is not read("a")
    with reading_once():
        assert read("a") is read("a")
        assert read("b", {"c": ""}) == ["b", "c"]
        for _time in range(2):
            with pytest.raises(ValueError):
                read("")
    assert read("a") == ["a"]
    assert asked == ["a", "a", "a", "b", "", "", "a"]


@pytest.mark.parametrize("to", dialects.NAMES)
def test_a_long_file_with_many_losses_is_not_read_for_each_of_them(
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
    made = dialects.convert(text, to, "openpai-v1")
    if made.losses:
        assert [loss for loss in made.losses if loss.line]
    assert len(read) < 60


def test_roles_are_found_by_number_and_by_name() -> None:
    text = (
        '{\n"jobName": "a", "image": "i",\n"taskRoles": [\n{"name": "m", "command": "c"},\n'
        '{"name": "n", "command": "d",\n"storageGB": 7}]}'
    )
    lost = {loss.pointer: loss.line for loss in dialects.convert(text, "aihc").losses}
    assert lost["/roles/1/resources/disk_mib"] == 6


@pytest.mark.parametrize(("source_dialect", "word"), [("openpai-v1", '"jupyter"'), ("openpai-v2", "jupyter")])
def test_what_can_not_be_found_exactly_is_shown_at_what_is_around_it(source_dialect: str, word: str) -> None:
    text = dialects.convert((SEEDS / "jupyter.json").read_text(encoding="utf-8"), source_dialect).text
    lost = {loss.pointer: loss.line for loss in dialects.convert(text, "aihc").losses}
    line = lost["/roles/0/ports/0/label"]
    assert line is not None
    assert word in text.splitlines()[line - 1]


def test_what_the_target_ignores_is_a_loss_though_we_read_it_again() -> None:
    made = dialects.convert(DLC, "openpai-v1")
    kept = {loss.pointer: loss for loss in made.losses if loss.code == "kept_for_console"}
    assert {"/framework", "/code/branch", "/requirements/packages/0", "/network/vpc"} <= set(kept)
    assert "jobConsole" in made.text
    lines = DLC.splitlines()
    assert all(loss.line for loss in kept.values())
    assert "Branch" in lines[(kept["/code/branch"].line or 0) - 1]
    told = loss_json(kept["/code/branch"])
    assert told["side"] == "source"
    assert told["message"] == (
        "Kept for Job Console; OpenPAI / SCM JSON (protocol v1) will ignore: /code/branch (master)."
    )
    assert told["capability"] == "code that is fetched before the start"


@pytest.mark.parametrize("to", ["openpai-v1", "openpai-v2"])
def test_nothing_is_told_where_nothing_is_lost(to: str) -> None:
    text = (
        '{"jobName": "a", "image": "i", "retryCount": 2, "taskRoles": [{"name": "m", "taskNumber": 2, '
        '"cpuNumber": 2, "memoryMB": 2048, "gpuNumber": 1, "command": "c"}]}'
    )
    made = dialects.convert(text, to)
    assert made.losses == ()
    assert "jobConsole" not in made.text
