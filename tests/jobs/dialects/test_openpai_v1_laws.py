"""What must hold for any OpenPAI v1 file and any JobSpec that v1 can say."""

import json

import jsonschema  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.openpai_v1.renderer import ENV_VALUES
from jobs.dialects.source import read
from jobs.spec import JobSpec
from tests.jobs.dialects.strategies import json_keys, v1_specs, v1_texts, values

V1 = dialects.get("openpai-v1")


@given(v1_specs())
def test_v1_spec_survives_round_trip(spec: JobSpec) -> None:
    rendered = V1.render(spec, {})
    assert rendered.notes == ()
    assert V1.parse(Document(rendered.text)).spec == spec


@given(v1_texts())
def test_v1_file_unchanged_stays_byte_for_byte(text: str) -> None:
    parsed = V1.parse(Document(text))
    assert V1.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert V1.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text == parsed.text


@given(v1_texts())
def test_v1_file_rewritten_keeps_meaning_and_unknown_keys(text: str) -> None:
    parsed = V1.parse(Document(text))
    again = V1.parse(Document(V1.render(parsed.spec, parsed.extras).text))
    assert again.spec == parsed.spec
    assert again.extras == parsed.extras


@given(v1_texts(), v1_specs())
def test_v1_file_changed_has_new_spec_and_keeps_unknown_keys(text: str, spec: JobSpec) -> None:
    parsed = V1.parse(Document(text))
    changed = V1.parse(Document(V1.render(spec, parsed.extras, base=Document(text)).text))
    assert changed.spec == spec
    of_spec = ("/taskRoles", "/jobEnvs", ENV_VALUES)
    kept = {pointer for pointer in parsed.extras if not pointer.startswith(of_spec)}
    assert {pointer: changed.extras[pointer] for pointer in kept} == {
        pointer: parsed.extras[pointer] for pointer in kept
    }


@given(v1_texts(), st.integers(1, 9))
def test_v1_render_of_one_changed_number_changes_one_place(text: str, replicas: int) -> None:
    spec = V1.parse(Document(text)).spec
    role = spec.roles[0].model_copy(update={"replicas": replicas})
    wanted = spec.model_copy(update={"roles": (role, *spec.roles[1:])})
    changed = V1.render(wanted, {}, base=Document(text)).text
    assert V1.parse(Document(changed)).spec == wanted
    before, after = text.splitlines(), changed.splitlines()
    assert len([line for line in before if line not in after]) <= 2


@given(v1_texts())
def test_v1_schema_accepts_files_parsed_without_notes(text: str) -> None:
    parsed = V1.parse(Document(text))
    if not {note.code for note in parsed.notes} & {"raised", "below_advised", "number_from_text"}:
        jsonschema.Draft202012Validator(dict(V1.schema())).validate(read(Document(text)).value)


@given(
    st.dictionaries(
        st.sampled_from([*V1.schema()["properties"], "tmp", "x"]) | json_keys,  # type: ignore[misc]
        values | st.lists(st.dictionaries(st.sampled_from(["name", "command", "portList", "shmMB"]), values)),
    )
)
def test_v1_parser_reads_or_refuses_any_object_with_places(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1)
    try:
        V1.parse(Document(text))
    except Refused as refused:
        for problem in refused.problems:
            assert problem.line is not None
            assert problem.column is not None
            if problem.fix is not None and problem.fix.value is not None:
                fixed = V1.apply_fixes(Document(text), [problem.fix])
                assert V1.locate(Document(fixed), problem.pointer) is not None
