"""What must hold for any AIHC request and any JobSpec that AIHC can say."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects.aihc import keys
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.text_renderer import OF_THE_TARGET
from jobs.spec import JobSpec
from tests.jobs.dialects.aihc_strategies import aihc_specs, aihc_texts
from tests.jobs.dialects.strategies import json_keys, values

AIHC = dialects.get("aihc")
big = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example], deadline=None)


@big
@given(aihc_specs())
def test_aihc_spec_survives_round_trip(spec: JobSpec) -> None:
    rendered = AIHC.render(spec, {})
    assert [note for note in rendered.notes if note.code not in OF_THE_TARGET] == []
    assert AIHC.parse(Document(rendered.text)).spec == spec


@big
@given(aihc_texts())
def test_aihc_body_unchanged_stays_byte_for_byte(text: str) -> None:
    parsed = AIHC.parse(Document(text))
    assert AIHC.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert AIHC.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text == parsed.text


@big
@given(aihc_texts())
def test_aihc_body_rewritten_keeps_meaning_and_unknown_keys(text: str) -> None:
    parsed = AIHC.parse(Document(text))
    again = AIHC.parse(Document(AIHC.render(parsed.spec, parsed.extras).text))
    assert again.spec == parsed.spec
    assert again.extras == parsed.extras


@big
@given(aihc_texts(), aihc_specs())
def test_aihc_body_changed_has_new_spec_and_keeps_unknown_keys(text: str, spec: JobSpec) -> None:
    parsed = AIHC.parse(Document(text))
    changed = AIHC.parse(Document(AIHC.render(spec, parsed.extras, base=Document(text)).text))
    assert changed.spec == spec
    kept = {name for name in parsed.extras if name.count("/") == 1 and name[1:] not in KNOWN}
    assert {name: changed.extras[name] for name in kept} == {name: parsed.extras[name] for name in kept}


@big
@given(aihc_texts())
def test_aihc_secrets_leave_text_and_can_be_restored(text: str) -> None:
    parsed = AIHC.parse(Document(text))
    again = AIHC.with_secrets(Document(parsed.text), parsed.secrets)
    assert AIHC.parse(Document(again)).secrets == parsed.secrets
    assert AIHC.parse(Document(again)).spec == parsed.spec
    assert AIHC.parse(Document(parsed.text)).secrets == {}


@given(
    st.dictionaries(
        st.sampled_from([*AIHC.schema()["properties"]]) | json_keys,  # type: ignore[misc]
        values | st.lists(st.dictionaries(st.sampled_from([rule.key for rule in keys.ROLE]), values)),
    )
)
def test_aihc_parser_reads_or_refuses_any_object_with_places(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1)
    try:
        AIHC.parse(Document(text))
    except Refused as refused:
        for problem in refused.problems:
            assert problem.line is not None
            assert problem.column is not None
            assert problem.source


KNOWN = {rule.key for rule in keys.JOB}
