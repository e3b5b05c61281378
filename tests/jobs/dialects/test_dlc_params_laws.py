"""What must hold for any parameter file and any JobSpec that one can say."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.text_renderer import OF_THE_TARGET
from jobs.spec import JobSpec
from tests.jobs.dialects.params_strategies import params_specs, params_texts

PARAMS = dialects.get("dlc-params")
big = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example], deadline=None)


@big
@given(params_specs())
def test_dlc_params_spec_survives_round_trip(spec: JobSpec) -> None:
    rendered = PARAMS.render(spec, {})
    assert [note for note in rendered.notes if note.code not in OF_THE_TARGET] == []
    assert PARAMS.parse(Document(rendered.text)).spec == spec


@big
@given(params_texts())
def test_dlc_params_file_unchanged_stays_byte_for_byte(text: str) -> None:
    parsed = PARAMS.parse(Document(text))
    assert PARAMS.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert PARAMS.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text == parsed.text


@big
@given(params_texts())
def test_dlc_params_file_rewritten_keeps_meaning_and_unknown_keys(text: str) -> None:
    parsed = PARAMS.parse(Document(text))
    again = PARAMS.parse(Document(PARAMS.render(parsed.spec, parsed.extras).text))
    assert again.spec == parsed.spec
    assert again.extras == parsed.extras


@big
@given(params_texts(), params_specs())
def test_dlc_params_file_changed_has_new_spec_and_keeps_unknown_keys(text: str, spec: JobSpec) -> None:
    parsed = PARAMS.parse(Document(text))
    changed = PARAMS.parse(Document(PARAMS.render(spec, parsed.extras, base=Document(text)).text))
    assert changed.spec == spec
    kept = {name for name in parsed.extras if name.startswith("/")}
    assert {name: changed.extras[name] for name in kept} == {name: parsed.extras[name] for name in kept}


@big
@given(params_texts())
def test_dlc_params_secrets_leave_text_and_can_be_restored(text: str) -> None:
    parsed = PARAMS.parse(Document(text))
    again = PARAMS.with_secrets(Document(parsed.text), parsed.secrets)
    assert PARAMS.parse(Document(again)).secrets == parsed.secrets
    assert PARAMS.parse(Document(again)).spec == parsed.spec
    assert PARAMS.parse(Document(parsed.text)).secrets == {}


@given(st.text("abc=\n\r# name workers command \\ \0\u200b,:/", max_size=200))
def test_dlc_params_parser_reads_or_refuses_any_text_with_places(text: str) -> None:
    try:
        PARAMS.parse(Document(text))
    except Refused as refused:
        for problem in refused.problems:
            assert problem.line is not None
            assert problem.column is not None
            assert problem.source


def test_dlc_params_role_image_password_leaves_the_text() -> None:
    text = "name=a\ncommand=x\nworkers=1\nworker_image=https://user:hunter2@registry/img\n"
    parsed = PARAMS.parse(Document(text))
    assert [*parsed.secrets.values()] == ["hunter2"]
    assert "hunter2" not in parsed.text
    assert PARAMS.with_secrets(Document(parsed.text), parsed.secrets) == text
