"""What must hold for any script and any JobSpec that one can say."""

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.sbatch.header import parse_pointer
from jobs.dialects.sbatch.options import NEUTRAL
from jobs.dialects.text_renderer import OF_THE_TARGET
from jobs.spec import JobSpec, RoleSpec, SecretRef
from tests.jobs.dialects.sbatch_strategies import sbatch_specs, sbatch_texts

SBATCH = dialects.get("sbatch")
MEANT = {option.name for option in NEUTRAL}
big = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example], deadline=None)


@big
@given(sbatch_specs())
@example(JobSpec(name="a", roles=(RoleSpec(name="main", command="true"),), env={"A": "1\r\n2\r\r\n"}))
def test_sbatch_spec_survives_round_trip(spec: JobSpec) -> None:
    rendered = SBATCH.render(spec, {})
    assert [note for note in rendered.notes if note.code not in OF_THE_TARGET] == []
    assert SBATCH.parse(Document(rendered.text)).spec == spec


@big
@given(sbatch_texts())
def test_sbatch_file_unchanged_stays_byte_for_byte(text: str) -> None:
    parsed = SBATCH.parse(Document(text))
    assert SBATCH.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert SBATCH.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text == parsed.text


@big
@given(sbatch_texts())
def test_sbatch_file_rewritten_keeps_meaning_and_unknown_keys(text: str) -> None:
    parsed = SBATCH.parse(Document(text))
    again = SBATCH.parse(Document(SBATCH.render(parsed.spec, parsed.extras).text))
    assert again.spec == parsed.spec
    assert again.extras == parsed.extras


@big
@given(sbatch_texts(), sbatch_specs())
def test_sbatch_file_changed_has_new_spec_and_keeps_unknown_keys(text: str, spec: JobSpec) -> None:
    parsed = SBATCH.parse(Document(text))
    changed = SBATCH.parse(Document(SBATCH.render(spec, parsed.extras, base=Document(text)).text))
    assert changed.spec == spec
    places = {name: parse_pointer(name) for name in parsed.extras if name.startswith("/")}
    kept = {
        name
        for name, (component, option) in places.items()
        if component < len(spec.roles) and option not in MEANT
    }
    assert {name: changed.extras[name] for name in kept} == {name: parsed.extras[name] for name in kept}


@big
@given(sbatch_texts())
def test_sbatch_secrets_leave_text_and_can_be_restored(text: str) -> None:
    parsed = SBATCH.parse(Document(text))
    again = SBATCH.with_secrets(Document(parsed.text), parsed.secrets)
    assert SBATCH.parse(Document(again)).secrets == parsed.secrets
    assert SBATCH.parse(Document(again)).spec == parsed.spec
    assert SBATCH.parse(Document(parsed.text)).secrets == {}


@given(
    st.lists(
        st.sampled_from(["#SBATCH", "#!/bin/sh\n", "\n", " ", "-", "--", "N", "mem=", "nodes", "4", "x"]),
        max_size=40,
    ),
    st.text("ab-=\n\r#\"'\\ \0\u200b:\u00a0", max_size=30),
)
def test_sbatch_parser_reads_or_refuses_any_text_with_places(parts: list[str], end: str) -> None:
    text = "".join(parts) + end
    try:
        SBATCH.parse(Document(text))
    except Refused as refused:
        for problem in refused.problems:
            assert problem.line is not None
            assert problem.column is not None
            assert problem.source
            if problem.fix:
                assert SBATCH.apply_fixes(Document(text), [problem.fix]) != text


@big
@given(sbatch_texts(), st.text("abcXYZ '\"\\,#=$", min_size=1, max_size=12))
def test_sbatch_secret_is_quoted_for_its_place(text: str, secret: str) -> None:
    spec = SBATCH.parse(Document(text)).spec
    wanted = spec.model_copy(
        update={
            "env": {},
            "secret_env": {"A_TOKEN": SecretRef(name="A_TOKEN"), "API_TOKEN": SecretRef(name="b")},
        }
    )
    rendered = SBATCH.render(wanted, {}, base=Document(text)).text
    again = SBATCH.parse(Document(SBATCH.with_secrets(Document(rendered), {"A_TOKEN": secret, "b": secret})))
    assert set(again.secrets.values()) == {secret}
    assert again.spec.secret_env.keys() == wanted.secret_env.keys()


@big
@given(sbatch_texts(), st.text("abc 019", min_size=1, max_size=8))
def test_sbatch_render_of_another_name_changes_only_its_line(text: str, name: str) -> None:
    parsed = SBATCH.parse(Document(text))
    wanted = parsed.spec.model_copy(update={"name": name})
    changed = SBATCH.render(wanted, parsed.extras, base=Document(text)).text
    assert SBATCH.parse(Document(changed)).spec == wanted
    before, after = text.split("\n"), changed.split("\n")
    assert len([line for line in before if line not in after]) <= 2
