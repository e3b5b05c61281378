"""What must hold for any OpenPAI v2 file and any JobSpec that v2 can say."""

import json

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects import documents
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.yaml_text.rules import JS_YAML
from jobs.spec import JobSpec
from tests.jobs.dialects.strategies import json_keys, v1_specs, values
from tests.jobs.dialects.v2_strategies import v2_specs, v2_texts

V1, V2 = dialects.get("openpai-v1"), dialects.get("openpai-v2")


@given(v2_specs(), st.booleans())
def test_what_v2_can_say_comes_back(spec: JobSpec, as_json: bool) -> None:
    rendered = V2.render(spec, {"json": True} if as_json else {})
    assert rendered.notes == ()
    assert V2.parse(Document(rendered.text)).spec == spec


@given(v2_texts())
def test_an_unchanged_file_stays_byte_for_byte(text: str) -> None:
    parsed = V2.parse(Document(text))
    assert V2.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert V2.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text == parsed.text


@given(v2_texts())
def test_a_file_written_anew_says_the_same_with_its_unknown_keys(text: str) -> None:
    parsed = V2.parse(Document(text))
    again = V2.parse(Document(V2.render(parsed.spec, parsed.extras).text))
    assert again.spec == parsed.spec
    assert again.extras == parsed.extras


@given(v2_texts())
def test_secrets_leave_the_text_and_come_back(text: str) -> None:
    parsed = V2.parse(Document(text))
    assert V2.parse(Document(parsed.text)).spec == parsed.spec
    filled = V2.with_secrets(Document(parsed.text), parsed.secrets)
    assert V2.parse(Document(filled)).spec == parsed.spec
    assert V2.parse(Document(filled)).secrets == parsed.secrets


@given(v2_texts(), v2_specs())
def test_a_changed_file_says_what_it_shall_and_keeps_its_unknown_keys(text: str, spec: JobSpec) -> None:
    parsed = V2.parse(Document(text))
    changed = V2.parse(Document(V2.render(spec, parsed.extras, base=Document(text)).text))
    assert changed.spec == spec
    kept = {pointer for pointer in parsed.extras if pointer.count("/") == 1}
    assert {pointer: changed.extras[pointer] for pointer in kept} == {
        pointer: parsed.extras[pointer] for pointer in kept
    }


@given(v2_texts(), st.integers(1, 9))
def test_one_changed_number_changes_one_place(text: str, replicas: int) -> None:
    spec = V2.parse(Document(text)).spec
    role = spec.roles[0].model_copy(update={"replicas": replicas})
    wanted = spec.model_copy(update={"roles": (role, *spec.roles[1:])})
    changed = V2.render(wanted, {}, base=Document(text)).text
    assert V2.parse(Document(changed)).spec == wanted
    before, after = text.splitlines(), changed.splitlines()
    assert len([line for line in before if line not in after]) <= 2


@given(v2_texts())
def test_the_schema_accepts_what_is_accepted(text: str) -> None:
    V2.parse(Document(text))
    held = documents.read(Document(text), JS_YAML).value
    assert isinstance(held, dict)
    held.pop("extras", None)
    jsonschema.Draft202012Validator(dict(V2.schema())).validate(held)


@given(v1_specs())
def test_what_v1_says_goes_through_v2_and_back_but_for_names(spec: JobSpec) -> None:
    text = V2.render(spec, {}).text
    said = V2.parse(Document(text)).spec
    back = V1.parse(Document(V1.render(said, {}).text)).spec
    assert _without_names(back) == _without_names(spec)


def _without_names(spec: JobSpec) -> dict[str, object]:
    held = spec.model_dump()
    del held["name"]
    held["secret_env"] = list(held["secret_env"])
    for role in held["roles"]:
        del role["name"]
        role["command"] = role["command"].strip()
        role["ports"] = [(port["begin_at"], port["count"]) for port in role["ports"]]
    return held


@given(
    st.dictionaries(
        st.sampled_from(
            ["protocolVersion", "name", "type", "prerequisites", "taskRoles", "extras", "defaults"]
        )
        | json_keys,
        values
        | st.dictionaries(
            json_keys,
            st.dictionaries(st.sampled_from(["commands", "completion", "resourcePerInstance"]), values),
        ),
    )
)
def test_any_object_is_read_or_refused_with_places(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1)
    try:
        V2.parse(Document(text))
    except Refused as refused:
        problems = refused.problems
    else:
        problems = ()
    for problem in problems:
        assert problem.line is not None or problem.code == "more_problems"
        if problem.fix is not None and problem.fix.value is not None:
            assert V2.apply_fixes(Document(text), [problem.fix])


@given(st.text("protclVersin:2\n -<%$}{[]#&*!'\"", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    V2.sniff(Document(text))
    with pytest.raises(Refused) as caught:
        V2.parse(Document(text))
    assert caught.value.problems
