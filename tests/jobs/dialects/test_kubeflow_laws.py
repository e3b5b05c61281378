"""What must hold for any Kubeflow manifest and any JobSpec that one can say."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.text_renderer import OF_THE_TARGET
from jobs.spec import JobSpec
from tests.jobs.dialects.kubeflow_strategies import kubeflow_specs, kubeflow_texts
from tests.jobs.dialects.strategies import values

KUBEFLOW = dialects.get("kubeflow")
containers = st.lists(
    st.dictionaries(st.sampled_from(["name", "image", "command", "env", "resources", "volumeMounts"]), values)
)
pods = st.builds(
    lambda containers, volumes: {"template": {"spec": {"containers": containers, "volumes": volumes}}},
    containers | values,
    values,
)
big = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example], deadline=None)


@big
@given(kubeflow_specs())
def test_kubeflow_spec_survives_round_trip(spec: JobSpec) -> None:
    rendered = KUBEFLOW.render(spec, {})
    assert [note for note in rendered.notes if note.code not in OF_THE_TARGET] == []
    assert KUBEFLOW.parse(Document(rendered.text)).spec == spec


@big
@given(kubeflow_texts())
def test_kubeflow_manifest_unchanged_stays_byte_for_byte(text: str) -> None:
    parsed = KUBEFLOW.parse(Document(text))
    assert KUBEFLOW.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert KUBEFLOW.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text == parsed.text


@big
@given(kubeflow_texts())
def test_kubeflow_manifest_rewritten_keeps_meaning_and_unknown_keys(text: str) -> None:
    parsed = KUBEFLOW.parse(Document(text))
    again = KUBEFLOW.parse(Document(KUBEFLOW.render(parsed.spec, parsed.extras).text))
    assert again.spec == parsed.spec
    assert again.extras == parsed.extras


@big
@given(kubeflow_texts(), kubeflow_specs())
def test_kubeflow_manifest_changed_has_new_spec_and_keeps_unknown_keys(text: str, spec: JobSpec) -> None:
    parsed = KUBEFLOW.parse(Document(text))
    changed = KUBEFLOW.parse(Document(KUBEFLOW.render(spec, parsed.extras, base=Document(text)).text))
    assert changed.spec == spec
    kept = {name for name in parsed.extras if name.startswith("/") and name.count("/") < 3}
    said = ("/metadata/annotations", "/spec/successPolicy", "/spec/enableDynamicWorker")
    kept = {name for name in kept if not name.startswith(said)}
    assert {name: changed.extras[name] for name in kept} == {name: parsed.extras[name] for name in kept}


@big
@given(kubeflow_texts())
def test_kubeflow_secrets_leave_text_and_can_be_restored(text: str) -> None:
    parsed = KUBEFLOW.parse(Document(text))
    again = KUBEFLOW.with_secrets(Document(parsed.text), parsed.secrets)
    assert KUBEFLOW.parse(Document(again)).secrets == parsed.secrets
    assert KUBEFLOW.parse(Document(again)).spec == parsed.spec
    assert KUBEFLOW.parse(Document(parsed.text)).secrets == {}


@given(
    st.dictionaries(
        st.sampled_from(["apiVersion", "kind", "metadata", "spec", "x"]),
        st.sampled_from(["kubeflow.org/v1", "PyTorchJob", "MPIJob", None, 1, []])
        | st.dictionaries(
            st.sampled_from(["name", "pytorchReplicaSpecs", "mpiReplicaSpecs", "runPolicy"]),
            values | st.dictionaries(st.sampled_from(["Master", "Worker", "Other"]), values | pods),
        ),
    )
)
def test_kubeflow_parser_reads_or_refuses_any_object_with_places(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1)
    try:
        KUBEFLOW.parse(Document(text))
    except Refused as refused:
        for problem in refused.problems:
            assert problem.line is not None
            assert problem.column is not None
            assert problem.source
