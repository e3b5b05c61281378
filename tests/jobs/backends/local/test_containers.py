"""Init containers, sidecars and the folders that they share, as real processes and in a real podman."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Refused
from jobs.backends.staging.containers import plan_containers
from jobs.messages.reasons import reason_message
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor.layout import FORMAT_WITH_CONTAINERS
from jobs.node.supervisor.plan import Plan
from jobs.spec import PodContainer, RoleSpec
from jobs.states import ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.jobs.backends.local.images import IMAGE, list_containers
from tests.waiting import wait_for

SERVES = "trap 'echo bye; exit 0' TERM; echo $WORD $TOKEN >>/shared/file; while :; do sleep 0.05; done"
"""A sidecar that the command waits for, and that has something to do at its end."""


def shell(name: str, text: str, **more: Any) -> PodContainer:
    """Return a container that runs a shell script."""
    return PodContainer(name=name, command=("sh", "-c"), args=(text,), **more)


def both(**more: Any) -> RoleSpec:
    """Return a role with two init containers and a sidecar, which share a folder."""
    command = "until [ $(grep -c . /shared/file) = 3 ]; do sleep 0.05; done; cat /shared/file; exit 3"
    return role(
        command,
        init_containers=(
            shell("first", "echo one >/shared/file; echo out; printf err >&2"),
            shell("second", "echo two $PWD $PAI_JOB_NAME >>/shared/file", working_dir="/shared"),
        ),
        sidecars=(shell("side", SERVES, env={"WORD": "three", "TOKEN": "$SECRET:t"}),),
        shared_paths=("/shared", "/tmp"),
        **more,
    )


def check_end(bench: LocalBench, submitted: RoleSpec) -> None:
    """Run a role made by `both`; look at the order, the log, the secrets and what is left."""
    handle = bench.backend.submit(bench.submission(submitted, secrets={"t": "s3cret"}))
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, replica(seen).exit_code) == (State.FAILED, 3)
    assert log_of(bench.backend, handle).splitlines() == [
        "[first] out",
        "[first] err",
        "one",
        "two /shared bench",
        "three s3cret",
        "[side] bye",
    ]
    assert "s3cret" not in (bench.attempt(handle) / "plan.json").read_text()
    wait_for(lambda: not bench.processes())


def test_init_containers_run_in_order_and_sidecar_ends_with_command(local: LocalBench) -> None:
    check_end(local, both())


def test_init_containers_and_sidecars_run_in_containers_of_the_image(
    bench_of: Callable[..., LocalBench], store: tuple[str, ...]
) -> None:
    bench = bench_of(engine="podman", engine_options=store)
    check_end(bench, both(image=IMAGE))
    assert list_containers(bench.config.engine_options) == ""


def test_failed_init_container_fails_replica_and_is_named(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of(isolation=Isolation.NONE, limits="watchdog")
    containers = (shell("fetch", "echo no such host; exit 4"), shell("never", "echo never"))
    handle = bench.backend.submit(bench.submission(role("echo ran", init_containers=containers)))
    one = replica(wait_until_over(bench.backend, handle))
    assert one.reason is not None
    assert (one.state, one.reason.code) == (ReplicaState.FAILED, ReasonCode.INIT_CONTAINER_FAILED)
    assert reason_message(one.reason.code, one.reason.params) == "Init container fetch failed: no such host"
    assert log_of(bench.backend, handle) == "[fetch] no such host\n"


def test_sidecar_decides_nothing_and_is_killed_after_its_grace_period(local: LocalBench) -> None:
    stays = shell("stays", f"trap '' TERM; touch {local.judge}/up; while :; do sleep 0.05; done")
    sidecars = (shell("fails", "exit 7"), PodContainer(name="absent", command=("/no/program",)), stays)
    job = role(f"until [ -e {local.judge}/up ]; do sleep 0.05; done; sleep 0.5", sidecars=sidecars)
    handle = local.backend.submit(local.submission(job, grace_s=1))
    assert wait_until_over(local.backend, handle, 10).state is State.SUCCEEDED
    first, *others = sorted(log_of(local.backend, handle).splitlines())
    assert first.startswith("[absent] can't be started: FileNotFoundError")
    assert others == ["[fails] ended with exit code 7"]
    wait_for(lambda: not local.processes())


def test_killed_wrapper_does_not_repeat_init_containers_that_ended(local: LocalBench, tmp_path: Path) -> None:
    """The second one waits while the wrapper and the agent are killed; another of each goes on."""
    judge = local.judge
    waits = f"echo second >>{judge}/ran; until [ -e {judge}/go ]; do sleep 0.05; done"
    containers = (shell("one", f"echo first >>{judge}/ran; echo made >made"), shell("two", waits))
    handle = local.backend.submit(local.submission(role("cat made", init_containers=containers)))
    wait_for(lambda: (judge / "ran").exists() and "second" in (judge / "ran").read_text())
    for pid in (*local.agents(), *local.processes("jc-wrapper")):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: local.backend.observe([handle]) and (judge / "ran").read_text().count("second") == 2)
    (judge / "go").touch()
    assert wait_until_over(local.backend, handle).state is State.SUCCEEDED
    assert (judge / "ran").read_text().split() == ["first", "second", "second"]
    assert log_of(local.backend, handle) == "made\n"


@pytest.mark.parametrize(
    ("container", "why"),
    [
        (PodContainer(name="x"), "container_without_command"),
        (shell("x", "true", image="i"), "container_image_alone"),
    ],
)
def test_container_that_no_engine_can_run_is_refused(
    local: LocalBench, container: PodContainer, why: str
) -> None:
    with pytest.raises(Refused) as refused:
        local.backend.submit(local.submission(role(sidecars=(container,))))
    assert refused.value.reason.params == {"why": why, "name": "x", "role": "worker"}


def test_plan_with_containers_has_own_format_and_names_each_once() -> None:
    init, sidecars = plan_containers(
        role(init_containers=(shell("a b", "true"),), sidecars=(shell("a_b", ""), shell("", "")))
    )
    assert [each.name for each in (*init, *sidecars)] == ["a_b", "a_b-sidecar-1", "sidecar-2"]


def test_plan_without_containers_is_readable_by_earlier_releases(local: LocalBench) -> None:
    for job, number in ((role(), None), (both(), FORMAT_WITH_CONTAINERS)):
        handle = local.backend.submit(local.submission(job, secrets={"t": "x"}))
        written = Plan.read(local.attempt(handle))
        assert written is not None
        dumped = written.dump()
        assert ("sidecars" in dumped["roles"][0]) == (number is not None)
        assert number is None or dumped["format"] == number
        local.backend.stop(handle, grace_s=0, signal="KILL")
        wait_until_over(local.backend, handle)
