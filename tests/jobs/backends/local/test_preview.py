"""What will be sent is what is sent: the same plan, with nothing secret in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.backends.base import MASK, Refused
from jobs.backends.local import accept
from jobs.backends.local.allocations import AllocatedTotal
from jobs.backends.local.backend import LocalBackend
from jobs.node.sandbox.isolation import Isolation
from jobs.spec import (
    Mount,
    Port,
    RegistryAuth,
    Requirements,
    Resources,
    RoleSpec,
    SecretRef,
    resource_requests,
)
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over

SECRET = "canary-5d1f7b6e"


@pytest.mark.parametrize("network", ["", "host"])
def test_preview_environment_matches_running_replica(
    bench_of: Callable[..., LocalBench], network: str
) -> None:
    local = bench_of(network=network)
    submission = local.submission(
        role("env", ports=(Port(label="web"), Port(label="fixed", begin_at=23456)), replicas=2),
        env={"GREETING": "it's “me”", "EMPTY": ""},
        endpoint_token=SECRET,
    )
    [shown] = local.backend.render(submission).roles
    handle = local.backend.submit(submission)
    wait_until_over(local.backend, handle)
    for index in range(2):
        lines = log_of(local.backend, handle, index=index).splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line)
        known = {name: value for name, value in shown.env.items() if value not in {None, MASK}}
        assert {name: found[name] for name in known} == known
        left_open = {name for name, value in shown.env.items() if value is None}
        assert left_open <= set(found)
        assert {"PAI_TASK_INDEX", "RANK"} <= left_open
        assert ("MASTER_PORT" in left_open) == (not local.config.has_own_network(local.backend.isolation()))
        # What a shell, the wrapper and the console's mark add.
        assert set(found) - set(shown.env) <= {"JOB_CONSOLE_REPLICA", "SHLVL", "_", "OLDPWD"}


def test_preview_shows_no_secrets(local: LocalBench) -> None:
    submission = local.submission(
        role(image=""),
        secret_env={"HF_TOKEN": SecretRef(name="HF_TOKEN")},
        registry_auth=RegistryAuth(registry="r", username="u", password=SecretRef(name="login")),
        mounts=(Mount(uri="https://user:$SECRET:mount@example.org/x"),),
        secrets={"HF_TOKEN": SECRET, "login": SECRET, "mount": SECRET},
        endpoint_token=SECRET,
    )
    sent = local.backend.render(submission)
    assert SECRET not in repr(sent)
    [shown] = sent.roles
    assert shown.env["HF_TOKEN"] == MASK
    assert shown.env["JOB_CONSOLE_ENDPOINT_TOKEN"] == MASK
    assert f"export HF_TOKEN='{MASK}'\n" in shown.script
    without = replace(submission, secrets={})
    assert local.backend.render(without) == sent, "no value is needed to show it"


def test_preview_script_is_runnable_and_ends_with_command(tmp_path: Path) -> None:
    local = LocalBench(tmp_path, {"engine": "none", "allow_plain": True})
    command = 'echo "it\'s $GREETING"\nexit 3'
    submission = local.submission(
        role(command, image="example/image:1"), env={"GREETING": "a 'b' $c"}, time_limit_s=60
    )
    [shown] = local.backend.render(submission).roles
    local.close()
    assert "# image: example/image:1 (not used)" in shown.script
    assert "# time limit: 60 s\n" in shown.script
    path = tmp_path / "role.sh"
    path.write_text(shown.script.replace("\ncd /job\n", f"\ncd {tmp_path}\n"))
    done = subprocess.run(["/bin/bash", str(path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("it's a 'b' $c\n", 3)


def test_preview_lists_mounts_ports_and_packages(local: LocalBench) -> None:
    submission = local.submission(
        role(ports=(Port(label="board", count=2),)),
        mounts=(Mount(uri="emptydir://", path="/scratch"),),
        requirements=Requirements(packages=("six==1.16",)),
    )
    [shown] = local.backend.render(submission).roles
    assert shown.mounts[0] == ("/scratch", "empty", False)
    assert shown.env["CHECKPOINT_DIR"] == shown.mounts[1][0] == "/job-checkpoints"
    assert shown.ports == (("board", 0, 2),)
    assert "# packages: six==1.16\n" in shown.script
    assert "# port: board any x2\n" in shown.script


def test_preview_of_unacceptable_submission_is_refused(local: LocalBench) -> None:
    with pytest.raises(Refused):
        local.backend.render(local.unacceptable())


def test_preview_leaves_no_files(local: LocalBench) -> None:
    before = sorted(local.home.rglob("*"))
    local.backend.render(local.submission(role(replicas=40)))
    assert sorted(local.home.rglob("*")) == before


roles = st.lists(
    st.builds(
        Resources,
        cpu_milli=st.integers(1, 2000),
        memory_mib=st.integers(1, 512),
        gpus=st.integers(0, 1),
        gpu_type=st.sampled_from(["", "A100"]),
    ).flatmap(lambda each: st.tuples(st.just(each), st.integers(1, 4))),
    min_size=1,
    max_size=4,
)


@given(roles)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_preview_resources_match_request_and_allocation(
    local: LocalBench, wanted: list[tuple[Resources, int]]
) -> None:
    config = replace(local.config, gpus={"A100": 16}, memory_mib=64 * 1024)
    submission = local.submission(
        *(
            RoleSpec(name=f"r{number}", command="true", replicas=count, resources=each)
            for number, (each, count) in enumerate(wanted)
        )
    )
    shown = LocalBackend(config).render(submission).roles
    asks = resource_requests(submission.spec)
    assert [(each.role, each.replicas, each.cpu_milli, each.memory_mib, each.gpus) for each in shown] == [
        (ask.role, ask.replicas, ask.cpu_milli, ask.memory_mib, ask.gpus) for ask in asks
    ]
    means = accept.JobRuntime(Isolation.NONE, ())
    laid = accept.refuse_impossible(submission, config, means)
    held = accept.allocation_of(
        accept.plan(submission, config, means, laid, AllocatedTotal(0, 0, frozenset(), frozenset()))
    )
    assert held.cpu_milli == sum(ask.cpu_milli * ask.replicas for ask in asks)
    assert held.memory_mib == sum(ask.memory_mib * ask.replicas for ask in asks)
    assert len(held.gpus) == sum(ask.gpus * ask.replicas for ask in asks)
