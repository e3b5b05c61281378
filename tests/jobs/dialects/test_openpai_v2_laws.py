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
def test_v2_spec_survives_round_trip(spec: JobSpec, as_json: bool) -> None:
    rendered = V2.render(spec, {"json": True} if as_json else {})
    assert rendered.notes == ()
    assert V2.parse(Document(rendered.text)).spec == spec


@given(v2_texts())
def test_v2_file_unchanged_stays_byte_for_byte(text: str) -> None:
    parsed = V2.parse(Document(text))
    assert V2.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert V2.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text == parsed.text


@given(v2_texts())
def test_v2_file_rewritten_keeps_meaning_and_unknown_keys(text: str) -> None:
    parsed = V2.parse(Document(text))
    again = V2.parse(Document(V2.render(parsed.spec, parsed.extras).text))
    assert again.spec == parsed.spec
    assert again.extras == parsed.extras


@given(v2_texts())
def test_v2_secrets_leave_text_and_can_be_restored(text: str) -> None:
    parsed = V2.parse(Document(text))
    assert V2.parse(Document(parsed.text)).spec == parsed.spec
    filled = V2.with_secrets(Document(parsed.text), parsed.secrets)
    assert V2.parse(Document(filled)).spec == parsed.spec
    assert V2.parse(Document(filled)).secrets == parsed.secrets


@given(v2_texts(), v2_specs())
def test_v2_file_changed_has_new_spec_and_keeps_unknown_keys(text: str, spec: JobSpec) -> None:
    parsed = V2.parse(Document(text))
    changed = V2.parse(Document(V2.render(spec, parsed.extras, base=Document(text)).text))
    assert changed.spec == spec
    kept = {pointer for pointer in parsed.extras if pointer.count("/") == 1}
    assert {pointer: changed.extras[pointer] for pointer in kept} == {
        pointer: parsed.extras[pointer] for pointer in kept
    }


@given(v2_texts(), st.integers(1, 9))
def test_v2_render_of_one_changed_number_changes_one_place(text: str, replicas: int) -> None:
    spec = V2.parse(Document(text)).spec
    role = spec.roles[0].model_copy(update={"replicas": replicas})
    wanted = spec.model_copy(update={"roles": (role, *spec.roles[1:])})
    changed = V2.render(wanted, {}, base=Document(text)).text
    assert V2.parse(Document(changed)).spec == wanted
    before, after = text.splitlines(), changed.splitlines()
    assert len([line for line in before if line not in after]) <= 2


@given(v2_texts())
def test_v2_schema_accepts_parsed_files(text: str) -> None:
    V2.parse(Document(text))
    held = documents.read(Document(text), JS_YAML).value
    assert isinstance(held, dict)
    held.pop("extras", None)
    jsonschema.Draft202012Validator(dict(V2.schema())).validate(held)


@given(v1_specs())
def test_v1_spec_survives_v2_and_back_except_names(spec: JobSpec) -> None:
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
def test_v2_parser_reads_or_refuses_any_object_with_places(value: dict[str, object]) -> None:
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
def test_v2_parser_refuses_random_text_with_problems(text: str) -> None:
    V2.sniff(Document(text))
    with pytest.raises(Refused) as caught:
        V2.parse(Document(text))
    assert caught.value.problems
