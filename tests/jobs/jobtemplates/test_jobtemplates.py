"""Job templates: what is shipped works, and no answer becomes anything but a value."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import dialects
from jobs.backends.base import PROGRAMS
from jobs.dialects.jupyter_commands import fix_command
from jobs.jobtemplates import SHIPPED, JobTemplate, fill, load
from jobs.jobtemplates.answers import build_spec
from jobs.messages.jobtemplates import QUESTIONS, WORDS
from jobs.scheduling.idle import OWN_LIMIT, own_limit

EVERY = pytest.mark.parametrize("template", SHIPPED.values(), ids=list(SHIPPED))


@EVERY
def test_shipped_template_fills_without_problem(template: JobTemplate) -> None:
    spec = fill(template, {}).parsed.spec
    assert spec == build_spec(template, {})
    assert (spec.name, spec.time_limit_s is not None) == (template.id, True)
    assert not template.command or {role.command for role in spec.roles} == {template.command}


STARTERS = {"helloworld", "pytorch-ddp", "tensorflow-ps", "mpi", "ray", "sweep"}


@EVERY
def test_template_is_interactive_unless_starter(template: JobTemplate) -> None:
    assert template.interactive is (template.id not in STARTERS)
    assert not template.opens or template.interactive


@EVERY
def test_template_words_are_translatable_and_programs_known(template: JobTemplate) -> None:
    assert {template.title, template.about} <= WORDS
    assert {parameter.name for parameter in template.parameters} <= set(QUESTIONS)
    assert set(template.programs) <= set(PROGRAMS)
    icons = Path(__file__).parents[3] / "tools" / "vendor" / "icons.txt"
    assert template.icon in icons.read_text(encoding="utf-8").split()


@EVERY
def test_template_service_listens_on_loopback_and_requires_token(template: JobTemplate) -> None:
    command = template.command
    assert "0.0.0.0" not in command
    assert fix_command(command) is None
    if template.opens:
        assert f'\\"label\\": \\"{template.opens}\\"' in command
        assert "127.0.0.1" in command
    if template.id in {"jupyterlab", "jupyter", "vscode"}:
        assert "$JOB_CONSOLE_ENDPOINT_TOKEN" in command
    assert re.search(r"(--auth none|without-connection-token|token=\\W|password=)", command) is None


@EVERY
def test_interactive_template_ends_after_two_idle_hours_by_default(template: JobTemplate) -> None:
    if not template.interactive:
        assert own_limit(build_spec(template, {})) is None
        return
    assert own_limit(build_spec(template, {})) == timedelta(hours=2)
    assert own_limit(build_spec(template, {"idle_hours": 5})) == timedelta(hours=5)
    assert OWN_LIMIT not in build_spec(template, {"idle_hours": ""}).env


HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(folder=HOSTILE, name=HOSTILE.filter(bool), image=HOSTILE, gpus=st.integers(0, 64), path=HOSTILE)
def test_template_answer_becomes_only_a_value(
    folder: str, name: str, image: str, gpus: int, path: str
) -> None:
    for template in SHIPPED.values():
        answers: dict[str, Any] = {"folder": folder, "name": name, "image": image, "gpus": gpus}
        answers["jobs"] = [{"uri": "job://a/main/0", "path": f"/job/outputs/{path}"}]
        answers |= {"train": path, "program": path}
        spec = build_spec(template, answers)
        plain = build_spec(template, {})
        (asked,) = (each for each in template.parameters if each.name == "gpus")
        for place in {int(path.split(".")[1]) for path in asked.fills}:
            role = spec.roles[place]
            assert (spec.name, role.image, role.resources.gpus) == (name, image, gpus)
        assert [role.command for role in spec.roles] == [role.command for role in plain.roles]
        assert len(spec.mounts) <= 1


@given(gpus=st.integers(0, 64), hours=st.integers(1, 168), memory=st.integers(1, 8192))
def test_template_file_matches_answers(gpus: int, hours: int, memory: int) -> None:
    for template in SHIPPED.values():
        kind = "TITANX" if gpus else ""
        answers: dict[str, Any] = {
            "gpus": gpus,
            "gpu_type": kind,
            "hours": hours,
            "idle_hours": hours,
            "memory": memory,
            "folder": "/data/it's \\",
        }
        assert fill(template, answers).parsed.spec == build_spec(template, answers)


JOB_FILE = '{"jobName": "x", "image": "i", "taskRoles": [{"name": "a", "command": "true"}]}'


@pytest.mark.parametrize(
    "wrong",
    [
        "id = 'Not A Word'",
        "dialect = 'cobol'",
        "text = '{'",
        "[[parameters]]\nname = 'x'\nkind = 'integer'\nfills = ['owner']\ndefault = 1",
        "[[parameters]]\nname = 'x'\nkind = 'integer'\nfills = ['time_limit_s']\ndefault = 0\nleast = 1",
        "[[parameters]]\nname = 'x'\nkind = 'integer'\nfills = ['time_limit_s']\ndefault = 'much'",
        "surprise = 1",
    ],
)
def test_invalid_template_is_not_loaded(wrong: str) -> None:
    good = {
        "id": "id = 'x'",
        "title": "title = 'X'",
        "dialect": "dialect = 'openpai-v1'",
        "text": f"text = '{JOB_FILE}'",
    }
    load("\n".join(good.values()))
    good[wrong.partition(" ")[0]] = wrong
    with pytest.raises((ValueError, dialects.base.Refused)):
        load("\n".join(good.values()))
