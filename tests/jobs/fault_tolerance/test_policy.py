"""The vendors' arguments of fault tolerance, read as a policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialects.fault_arguments import ARGUMENTS
from jobs.fault_tolerance.policy import FaultPolicy, policy_of
from jobs.spec import FaultTolerance, JobSpec, RoleSpec

PAGE = (
    "--enable-replace=true --enable-hang-detection=true --hang-detection-log-timeout-minutes=7 "
    "--hang-detection-startup-toleration-minutes=15 --hang-detection-stack-timeout-minutes=3 "
    "--max-num-of-unconditional-retry=2 --custom-log-patterns=timeout1 --custom-log-patterns=timeout2"
)
"""The arguments of AIHC's page."""


def spec(arguments: str, *, enabled: bool = True) -> JobSpec:
    role = RoleSpec(name="worker", command="true")
    return JobSpec(
        name="job", roles=(role,), fault_tolerance=FaultTolerance(enabled=enabled, arguments=arguments)
    )


def test_policy_needs_fault_tolerance_to_be_on() -> None:
    assert policy_of(spec("--enable-job-restart=True", enabled=False)) is None


@pytest.mark.parametrize(
    ("arguments", "policy"),
    [
        ("", FaultPolicy()),
        ("--enable-job-restart=True", FaultPolicy(restarts=3)),
        ("--enable-job-restart=True --max-num-of-job-restart=7", FaultPolicy(restarts=7)),
        ("--max-num-of-job-restart=7", FaultPolicy()),
        ("--enable-job-restart --fault-tolerant-policy=OnFailure", FaultPolicy(3, restarts_own=True)),
        ("--enable-job-hang-detection=True", FaultPolicy(hang_s=1800)),
        ("--enable-job-hang-detection True --job-hang-interval 60", FaultPolicy(hang_s=60)),
        ("--enable-log-hang-detection true --log-hang-interval-in-seconds=90", FaultPolicy(hang_s=90)),
        ("--enable-job-restart=True --max-num-of-same-error=5", FaultPolicy(restarts=3, same_errors=5)),
        ("--enable-job-restart=True --max-num-of-job-restart=many", FaultPolicy(restarts=3)),
        ("--job-execution-mode=Async --enable-job-hang-detection=True", FaultPolicy()),
        (
            "--enable-replace=false --enable-job-restart=True",
            FaultPolicy(3, replaces_nodes=False),
        ),
        ("--enable-job-restart --max-num-of-unconditional-retry=2", FaultPolicy(3, restarts_own=True)),
        (PAGE, FaultPolicy(2, True, 420, 900, ("timeout1", "timeout2"), stack_s=180)),
    ],
)
def test_policy_is_what_the_arguments_say(arguments: str, policy: FaultPolicy) -> None:
    assert policy_of(spec(arguments)) == policy


@given(
    st.lists(
        st.tuples(st.sampled_from([each.name for each in ARGUMENTS]), st.text(max_size=12)).map(
            lambda pair: f"--{pair[0]}={pair[1]}"
        ),
        max_size=8,
    ).map(" ".join)
)
def test_any_arguments_make_a_policy_within_its_bounds(arguments: str) -> None:
    policy = policy_of(spec(arguments))
    assert policy is not None
    assert policy.restarts >= 0
    assert policy.hang_s is None or policy.hang_s >= 1
    assert policy.same_errors >= 1
