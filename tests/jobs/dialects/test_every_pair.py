"""What must hold between any two dialects, for any JobSpec that some dialect can say."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.losses import losses
from jobs.dialects.text_renderer import OF_THE_TARGET
from jobs.spec import CompletionPolicy, JobSpec, Resources, RoleSpec
from tests.jobs.dialects.aihc_strategies import aihc_specs
from tests.jobs.dialects.dlc_strategies import dlc_specs
from tests.jobs.dialects.kubeflow_strategies import kubeflow_specs
from tests.jobs.dialects.params_strategies import params_specs
from tests.jobs.dialects.sbatch_strategies import sbatch_specs
from tests.jobs.dialects.strategies import v1_specs

any_spec = st.one_of(v1_specs(), dlc_specs(), params_specs(), aihc_specs(), sbatch_specs(), kubeflow_specs())
few = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    deadline=None,
)

WRITTEN_OUT = {
    "openpai-v1": ('"memoryMB": 1024', '"shmMB": 64', '"minFailedTaskCount": null', '"retryCount": 0'),
    "sbatch": ("--nodes=1\n", "--cpus-per-task=1\n", "--mem=1G\n"),
    "dlc": ('"JobMaxRunningTimeMinutes": 0',),
}
"""What a target would take otherwise if it were left out."""


@pytest.mark.parametrize("name", dialects.NAMES)
@few
@given(spec=any_spec)
def test_render_of_any_job_names_every_difference_and_repeated_adds_none(name: str, spec: JobSpec) -> None:
    """Losses don't add up: going through the same dialect again changes nothing more."""
    dialect = dialects.get(name)
    rendered = dialect.render(spec, {})
    told = [note for note in rendered.notes if note.code not in OF_THE_TARGET]
    try:
        once = dialect.parse(Document(rendered.text)).spec
    except Refused:
        assert {note.code for note in told} == {"needs_value"}
        return
    assert sorted(map(repr, told)) == sorted(map(repr, losses(spec, once, name)))
    assert (once == spec) == (told == [])
    assert Document(rendered.text).dialect == name
    assert spec.time_limit_s is not None or once.time_limit_s is None
    assert once == spec or dialect.parse(Document(dialect.render(once, {}).text)).spec == once


@pytest.mark.parametrize("source", dialects.NAMES)
@settings(few, max_examples=6)
@given(spec=any_spec)
def test_conversion_of_job_without_time_limit_to_any_dialect_adds_none(source: str, spec: JobSpec) -> None:
    try:
        job = _convert(source, spec.model_copy(update={"time_limit_s": None}))
    except Refused:
        return
    assert job.time_limit_s is None
    for target in dialects.NAMES:
        with suppress(Refused):
            assert _convert(target, job).time_limit_s is None, target


def _convert(name: str, job: JobSpec) -> JobSpec:
    dialect = dialects.get(name)
    return dialect.parse(Document(dialect.render(job, {}).text)).spec


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_render_writes_out_values_with_other_default_in_target(name: str) -> None:
    role = RoleSpec(name="w", command="c", image="i", completion=CompletionPolicy(min_failed=None))
    assert role.resources == Resources()
    text = dialects.get(name).render(JobSpec(name="a", roles=(role,)), {}).text
    assert [said for said in WRITTEN_OUT[name] if said not in text] == []
