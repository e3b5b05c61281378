"""TensorBoard after the end of a job."""

import pytest

from jobs.models import Attempt, Job, JobFile
from jobs.scheduling import cleanup
from jobs.spec import JobSpec, Reservation, RoleSpec, TensorBoard
from jobs.states import State
from tests.factories import make_job

pytestmark = pytest.mark.django_db


def make_ended(state: State, **more: object) -> Job:
    spec = JobSpec(name="bert", roles=(RoleSpec(name="Worker", command="train"),), **more)  # type: ignore[arg-type]
    job = make_job(state, spec=spec)
    cleanup.seal(Attempt.objects.get(job=job).pk)
    Attempt.objects.filter(job=job).update(logs_sealed_at=None)
    cleanup.seal(Attempt.objects.get(job=job).pk)
    return job


def test_ended_job_with_retention_gets_one_tensorboard_for_as_long() -> None:
    kept = Reservation(seconds=600, when="succeeded")
    job = make_ended(State.SUCCEEDED, tensorboard=TensorBoard(log_path="logs"), reserve_after=kept)
    made = Job.objects.exclude(pk=job.pk).get()
    spec = JobFile.objects.get(job=made).spec
    assert (made.owner, made.quota, made.name) == (job.owner, job.quota, "tensorboard-of-bert")
    assert (spec.roles[0].command, spec.time_limit_s) == ("sleep 600", 660)
    assert [(each.uri, each.path) for each in spec.mounts] == [
        (f"job://{job.public_id}/Worker/0", "/job/outputs")
    ]
    assert spec.tensorboard == TensorBoard(log_path="/job/outputs/logs")


@pytest.mark.parametrize(
    ("state", "log_path", "when"),
    [(State.FAILED, "logs", "succeeded"), (State.SUCCEEDED, "/mnt/logs", "always")],
)
def test_ended_job_without_retained_log_folder_gets_no_tensorboard(
    state: State, log_path: str, when: str
) -> None:
    kept = Reservation(seconds=600, when=when)
    make_ended(state, tensorboard=TensorBoard(log_path=log_path), reserve_after=kept)
    assert Job.objects.count() == 1
