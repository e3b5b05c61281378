"""Real files that the OpenPAI project published: each has OpenPAI's own verdict."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document

V2 = dialects.get("openpai-v2")
SAMPLES = Path(__file__).parents[3].parent / "shared" / "samples" / "openpai-v2"


def samples() -> Iterator[Any]:
    """Each file with its verdict; one that skips itself where the files are not there."""
    try:
        verdicts = json.loads((SAMPLES / "verdicts.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        yield pytest.param("", {}, marks=pytest.mark.skip("OpenPAI's sample files are not on this machine"))
        return
    for name, verdict in verdicts.items():
        yield pytest.param(name, verdict, id=name)


@pytest.mark.parametrize(("name", "verdict"), list(samples()))
def test_openpai_samples_get_the_verdict_of_openpai(name: str, verdict: dict[str, Any]) -> None:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    assert Document(text).dialect == "openpai-v2"
    if not verdict["accepted"]:
        with pytest.raises(Refused) as caught:
            V2.parse(Document(text))
        fixes = [each.fix for each in caught.value.problems if each.fix]
        if len(fixes) == len(caught.value.problems):
            assert V2.parse(Document(V2.apply_fixes(Document(text), fixes))).spec.roles
        return
    parsed = V2.parse(Document(text))
    assert V2.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert V2.with_secrets(Document(parsed.text), parsed.secrets) == text
    again = V2.parse(Document(V2.render(parsed.spec, parsed.extras).text))
    assert (again.spec, again.extras) == (parsed.spec, parsed.extras)
    assert V2.parse(Document(V2.render(parsed.spec, {}).text)).spec == parsed.spec


@pytest.mark.parametrize(("name", "verdict"), list(samples()))
def test_openpai_samples_mean_the_same_in_json(name: str, verdict: dict[str, Any]) -> None:
    if not verdict["accepted"]:
        return
    parsed = V2.parse(Document((SAMPLES / name).read_text(encoding="utf-8")))
    text = V2.render(parsed.spec, {**parsed.extras, "json": True}).text
    assert json.loads(text)
    assert Document(text).dialect == "openpai-v2"
    assert V2.parse(Document(text)).spec == parsed.spec


@pytest.mark.parametrize(("name", "verdict"), list(samples()))
def test_changed_openpai_sample_keeps_the_rest(name: str, verdict: dict[str, Any]) -> None:
    if not verdict["accepted"]:
        return
    text = (SAMPLES / name).read_text(encoding="utf-8")
    parsed = V2.parse(Document(text))
    role = parsed.spec.roles[0]
    resources = role.resources.model_copy(update={"gpus": role.resources.gpus + 1})
    changed = role.model_copy(update={"name": "renamed", "image": "a/b:c", "resources": resources})
    wanted = parsed.spec.model_copy(
        update={"name": "other", "roles": (changed, *parsed.spec.roles[1:]), "env": {"NEW": "x y"}}
    )
    rendered = V2.render(wanted, parsed.extras, base=Document(text))
    if any(each.env.get("NEW") for each in parsed.spec.roles):
        return
    assert V2.parse(Document(rendered.text)).spec.roles[0].image == "a/b:c"
    assert "written_anew" not in {note.code for note in rendered.notes}
    comments = {line.strip() for line in text.splitlines() if line.strip().startswith("#")}
    inside = {line for command in role.command.splitlines() for line in [command.strip()]}
    assert {comment for comment in comments - inside if comment not in rendered.text} == set()
