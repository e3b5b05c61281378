"""The verdict on ends in the order in which they happened, and the signals of an ending."""

from hypothesis import given
from hypothesis import strategies as st

from jobs import states
from jobs.node.supervisor.decision import Ended, Ending, decide, plan_ending
from jobs.node.supervisor.plan import Counts, PlannedReplica, Role, Slot
from jobs.node.wrapper.outcome import Cause, Exit, code_of, judge
from jobs.states import Reason, ReasonCode, ReplicaState, State


def a_role(name: str, replicas: int, counts: Counts) -> Role:
    return Role(name, "true", "", 100, 64, 0, 0, {}, counts, (), (Slot(),) * replicas)


def an_end(role: Role, index: int, code: int, at: float) -> Ended:
    return Ended(
        PlannedReplica(0, 0, index, role, f"{role.name}-{index}"), Exit(Cause.COMMAND, at, at, code=code)
    )


def test_decision_keeps_earlier_success_despite_later_failure() -> None:
    chief = a_role("chief", 1, Counts(1, 1))
    worker = a_role("worker", 2, Counts(1, None))
    ended = [an_end(worker, 0, 1, at=5.0), an_end(chief, 0, 0, at=4.0)]
    decision = decide([chief, worker], ended)
    assert decision is not None
    assert (decision.state, decision.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED)


def test_decision_names_replica_reaching_failure_count() -> None:
    worker = a_role("worker", 5, Counts(2, None))
    ended = [an_end(worker, 3, 7, at=3.0), an_end(worker, 1, 0, at=1.0), an_end(worker, 4, 9, at=2.0)]
    decision = decide([worker], ended)
    assert decision is not None
    assert decision.state is State.FAILED
    assert decision.reason.params == {"role": "worker", "index": 3, "exit_code": 7}


def test_decision_waits_while_outcome_may_change() -> None:
    worker = a_role("worker", 3, Counts(2, None))
    assert decide([worker], []) is None
    assert decide([worker], [an_end(worker, 0, 1, at=1.0)]) is None


@given(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=12), st.integers(1, 4), st.integers(1, 4))
def test_decision_is_independent_of_batching_of_ends(codes: list[int], failures: int, successes: int) -> None:
    role = a_role("worker", len(codes), Counts(failures, successes))
    ended = [an_end(role, index, code, at=float(index)) for index, code in enumerate(codes)]
    one_by_one = next(filter(None, (decide([role], ended[: count + 1]) for count in range(len(ended)))), None)
    assert decide([role], list(reversed(ended))) == one_by_one


def test_judge_gives_every_cause_a_state_and_reason() -> None:
    for cause in Cause:
        state, reason = judge(Exit(cause, 0.0, 0.0, code=3), memory_mib=64)
        assert state in states.REPLICA_TERMINAL
        told_to_end = cause in (Cause.TOLD, Cause.NOT_STARTED)
        assert (state is ReplicaState.STOPPED) == told_to_end
        assert told_to_end or reason.code in states.ENDINGS


def test_wait_status_is_converted_as_in_shells() -> None:
    assert code_of(3 << 8) == (3, None)
    assert code_of(9) == (137, 9)
    assert code_of(11 | 0x80) == (139, 11)


def _stop(signal: str, grace_s: float, now: float = 100.0) -> Ending:
    return plan_ending(State.STOPPED, Reason(ReasonCode.USER_STOP), now=now, grace_s=grace_s, signal=signal)


def test_stop_with_term_is_followed_only_by_kill() -> None:
    assert _stop("TERM", 30).steps == ((100.0, "TERM"),)
    assert _stop("TERM", 30).kill_at == 130.0
    assert _stop("KILL", 30).kill_at == 100.0


def test_stop_with_other_signal_is_followed_by_term_in_time() -> None:
    stop = _stop("USR1", 300)
    assert stop.steps == ((100.0, "USR1"), (370.0, "TERM"))
    assert stop.next_after(100.0) == 370.0
    assert stop.next_after(371.0) == 400.0
    assert [number.name for number in stop.list_due_signals(371.0)] == ["SIGUSR1", "SIGTERM"]


def test_stop_deadline_is_the_earlier_and_reason_the_first() -> None:
    late, soon = _stop("TERM", 60), _stop("TERM", 5, now=110.0)
    assert late.no_later_than(soon).kill_at == 115.0
    assert soon.no_later_than(late) == soon
    assert Ending.load(late.dump()) == late
