"""The table by which a failed attempt is restarted, and what lines of output mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.fault_tolerance.decisions import Fault, Rule, decide
from jobs.fault_tolerance.error_catalogue import CATALOGUE, Origin, find_error
from jobs.fault_tolerance.policy import FaultPolicy
from jobs.messages.faults import cause_label

OWN = Fault("python", Origin.OWN, "KeyError: 'lr'")
NCCL = Fault("nccl", Origin.PLATFORM, "ncclSystemError: socket 12")
NODE_LOST = Fault("node_lost", Origin.PLATFORM)
UNKNOWN = Fault("exit_code", Origin.UNKNOWN)
HANG = Fault("hang", Origin.UNKNOWN)


@pytest.mark.parametrize(
    ("policy", "fault", "earlier", "restarts", "rule"),
    [
        (FaultPolicy(restarts=3), OWN, [], False, Rule.OWN_ERROR),
        (FaultPolicy(restarts=3, restarts_own=True), OWN, [], True, Rule.RESTARTS_LEFT),
        (FaultPolicy(), NCCL, [], True, Rule.PLATFORM),
        (FaultPolicy(), NCCL, [NCCL, UNKNOWN, NCCL], True, Rule.PLATFORM),
        (FaultPolicy(), NCCL, [NCCL] * 2, False, Rule.SAME_ERROR),
        (FaultPolicy(), NODE_LOST, [NODE_LOST] * 9, True, Rule.PLATFORM),
        (FaultPolicy(restarts=2), UNKNOWN, [UNKNOWN], True, Rule.RESTARTS_LEFT),
        (FaultPolicy(restarts=2), UNKNOWN, [UNKNOWN] * 2, False, Rule.RESTARTS_SPENT),
        (FaultPolicy(restarts=2), UNKNOWN, [NCCL, NCCL, UNKNOWN], True, Rule.RESTARTS_LEFT),
        (FaultPolicy(restarts=9), UNKNOWN, [UNKNOWN] * 4, True, Rule.RESTARTS_LEFT),
        (FaultPolicy(restarts=9), HANG, [HANG], True, Rule.RESTARTS_LEFT),
        (FaultPolicy(restarts=9), HANG, [HANG] * 2, False, Rule.SAME_ERROR),
        (FaultPolicy(restarts=9, restarts_own=True), OWN, [OWN] * 2, False, Rule.SAME_ERROR),
        (FaultPolicy(restarts=9, restarts_own=True), OWN, [OWN, UNKNOWN, OWN], True, Rule.RESTARTS_LEFT),
        (FaultPolicy(), UNKNOWN, [], False, Rule.RESTARTS_SPENT),
    ],
)
def test_decision_follows_the_table(
    policy: FaultPolicy, fault: Fault, earlier: list[Fault], restarts: bool, rule: Rule
) -> None:
    decision = decide(policy, fault, earlier)
    assert (decision.restarts, decision.rule) == (restarts, rule)


@given(st.integers(0, 6), st.lists(st.sampled_from([OWN, UNKNOWN, HANG]), max_size=12))
def test_restarts_never_exceed_what_the_policy_allows(most: int, ends: list[Fault]) -> None:
    policy, earlier = FaultPolicy(restarts=most, restarts_own=True), list[Fault]()
    for fault in ends:
        decision = decide(policy, fault, earlier)
        earlier.append(fault)
        if not decision.restarts:
            break
    assert len(earlier) <= most + 1


def test_same_error_is_the_same_with_other_numbers() -> None:
    one, other = (Fault("gpu_memory", Origin.OWN, f"Tried to allocate {n} MiB at 0x{n}f") for n in (2, 33))
    assert one.signature == other.signature
    assert UNKNOWN.signature is None


@given(st.sampled_from([OWN, NCCL, UNKNOWN]), st.none() | st.integers(0, 9))
def test_fault_is_stored_as_it_is(fault: Fault, index: int | None) -> None:
    stored = Fault(fault.code, fault.origin, fault.line, "worker", index)
    assert Fault.from_json(stored.to_json()) == stored


@pytest.mark.parametrize(
    ("output", "code", "origin"),
    [
        ("Traceback (most recent call last):\nKeyError: 'lr'", "python", Origin.OWN),
        ("ModuleNotFoundError: No module named 'apex'", "python", Origin.OWN),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\nValueError: after it",
            "gpu_memory",
            Origin.OWN,
        ),
        ("torch.OutOfMemoryError: CUDA out of memory.", "gpu_memory", Origin.OWN),
        (
            "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7) ran for 1800009 ms",
            "collective_timeout",
            Origin.PLATFORM,
        ),
        (
            "ncclSystemError: System call (e.g. socket, malloc) failed",
            "nccl",
            Origin.PLATFORM,
        ),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu_ecc", Origin.PLATFORM),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "gpu_lost", Origin.PLATFORM),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "network", Origin.PLATFORM),
        ("OSError: [Errno 5] Input/output error: '/data/part-0'", "storage", Origin.PLATFORM),
        ("OSError: [Errno 28] No space left on device", "disk_full", Origin.OWN),
        ("bash: line 1: trian: command not found", "command", Origin.OWN),
        ("train.py: error: unrecognized arguments: --lr 3", "arguments", Origin.OWN),
        (
            "slurmstepd: error: *** JOB 12 ON n1 CANCELLED DUE TO PREEMPTION ***",
            "preempted",
            Origin.PLATFORM,
        ),
        ("step 12 loss 0.3\nstep 13 loss 0.2", None, None),
        ("the learning rate schedule raised no ValueError", None, None),
    ],
)
def test_output_tells_whose_error_it_was(output: str, code: str | None, origin: Origin | None) -> None:
    found = find_error(output.splitlines())
    assert (found.code if found else None, found.origin if found else None) == (code, origin)


def test_every_kind_of_error_has_a_name() -> None:
    for row in CATALOGUE:
        assert cause_label(row.code) != row.code
