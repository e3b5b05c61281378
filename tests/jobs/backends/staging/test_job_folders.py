"""The folders of a person's other jobs: to be read, by the same person, and nothing beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.base import Handle, Person, Refused
from jobs.backends.staging import job_folders
from jobs.spec import Mount
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.conftest import make
from tests.waiting import wait_for


@pytest.fixture(params=["local", "local-none"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    made = make(request.param, tmp_path)
    assert isinstance(made, LocalBench)
    yield made
    made.close()


def ended(bench: LocalBench, command: str) -> str:
    """A job of Alice's that has ended; its id."""
    submission = bench.submission(role(command))
    wait_until_over(bench.backend, bench.backend.submit(submission))
    return submission.job_id


def looking(bench: LocalBench, uri: str, command: str, person: Person | None = None) -> Handle:
    mount = Mount(uri=uri, path="/job/outputs/first", read_only=True)
    asked = {"mounts": (mount,), **({"person": person} if person else {})}
    return bench.backend.submit(bench.submission(role(command), **asked))


def test_job_folder_of_ended_job_is_readable(bench: LocalBench) -> None:
    job = ended(bench, "mkdir runs; echo 0.5 > runs/loss")
    handle = looking(bench, f"job://{job}/worker/0", "cat outputs/first/runs/loss")
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "0.5\n"
    handle = looking(bench, f"job://{job}/worker/0/runs", "cat outputs/first/loss")
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED


def test_job_folder_mount_rejects_writes(local: LocalBench) -> None:
    job = ended(local, "echo mine > file")
    handle = looking(
        local, f"job://{job}/worker/0", "echo other > outputs/first/file || touch outputs/first/new"
    )
    assert wait_until_over(local.backend, handle).state is State.FAILED
    assert (local.config.root / job / "1/work/worker-0/file").read_text() == "mine\n"


def test_job_folder_of_running_job_shows_new_files(bench: LocalBench) -> None:
    go = bench.judge / "go"
    submission = bench.submission(
        role(f"echo up; while [ ! -e {go} ]; do sleep 0.1; done; echo now > file; exec sleep 60")
    )
    running = bench.backend.submit(submission)
    wait_for(lambda: log_of(bench.backend, running))
    waits = f"touch {go}; while [ ! -s outputs/first/file ]; do sleep 0.1; done; cat outputs/first/file"
    handle = looking(bench, f"job://{submission.job_id}/worker/0", waits)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    bench.backend.stop(running, grace_s=0, signal="KILL")


def refused(bench: LocalBench, uri: str, person: Person | None = None) -> object:
    with pytest.raises(Refused) as problem:
        looking(bench, uri, "true", person)
    return problem.value.reason.params["why"]


def test_job_folder_of_other_user_or_missing_job_is_refused(bench: LocalBench) -> None:
    job = ended(bench, "true")
    assert refused(bench, f"job://{job}/worker/0", Person("mallory", 8)) == "mount_no_job"
    for wrong in (
        f"{job}/worker/1",
        f"{job}/other/0",
        f"{job}/worker/0/../../../../..",
        f"{job}/worker/0/%2e%2e",
        f"../{job}/worker/0",
        f"{job}",
        "nobody/worker/0",
        ".live/worker/0",
        "",
    ):
        assert refused(bench, f"job://{wrong}") == "mount_no_job", wrong


def test_job_folder_path_through_symlink_is_unreachable(local: LocalBench) -> None:
    job = ended(local, "ln -s /etc runs; ln -s .. up")
    for inner in ("runs", "up", "up/up"):
        handle = looking(local, f"job://{job}/worker/0/{inner}", "ls outputs/first")
        assert wait_until_over(local.backend, handle).state is State.FAILED


def test_job_folder_uri_is_decoded_and_normalized(local: LocalBench) -> None:
    job = ended(local, "true")
    found = job_folders.find(local.config.root, f"job://{job}/worker/0/a%20b//c")
    assert found is not None
    assert (found.inner, found.user) == ("a b/c", "alice")
