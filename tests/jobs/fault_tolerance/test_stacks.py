"""What the stacks of all ranks tell together."""

from __future__ import annotations

import json

import pytest

from jobs.fault_tolerance.stacks import (
    Frame,
    Process,
    ReplicaStacks,
    StackComparison,
    StackVerdict,
    Thread,
    compare,
    parse,
    render,
)

REDUCE = Frame("all_reduce", "torch/distributed/distributed_c10d.py", 2500)
BARRIER = Frame("barrier", "torch/distributed/distributed_c10d.py", 4000)
BACKWARD = Frame("backward", "torch/autograd/__init__.py", 197)
LOAD, SAVE = Frame("load", "data.py", 3), Frame("save", "train.py", 9)


def rank(index: int, frame: Frame, state: str = "S") -> ReplicaStacks:
    process = Process(10, 1, state, str(index), "0", (Thread("MainThread", (frame,)),))
    return ReplicaStacks("worker", index, f"n{index}", (process,))


@pytest.mark.parametrize(
    ("frames", "verdict", "place", "suspects"),
    [
        ([REDUCE, REDUCE, REDUCE], StackVerdict.COLLECTIVE, "all_reduce", []),
        ([REDUCE, LOAD], StackVerdict.SUSPECTS, "all_reduce", [1]),
        ([LOAD, REDUCE, SAVE], StackVerdict.SUSPECTS, "all_reduce", [0, 2]),
        ([REDUCE, REDUCE, BARRIER], StackVerdict.SUSPECTS, "all_reduce", [2]),
        ([REDUCE, BARRIER], StackVerdict.DIFFERENT, "", []),
        ([BACKWARD, LOAD], StackVerdict.SUSPECTS, str(BACKWARD), [1]),
        ([BACKWARD, BACKWARD], StackVerdict.SAME_PLACE, str(BACKWARD), []),
        ([LOAD, LOAD], StackVerdict.SAME_PLACE, str(LOAD), []),
        ([LOAD, LOAD, SAVE], StackVerdict.SUSPECTS, str(LOAD), [2]),
        ([LOAD, SAVE], StackVerdict.DIFFERENT, "", []),
        ([], StackVerdict.NOTHING, "", []),
    ],
)
def test_comparison_names_the_ranks_that_are_elsewhere(
    frames: list[Frame], verdict: StackVerdict, place: str, suspects: list[int]
) -> None:
    told = compare([rank(index, frame) for index, frame in enumerate(frames)])
    assert (told.verdict, told.place, [each.index for each in told.suspects]) == (verdict, place, suspects)
    assert StackComparison.from_json(json.loads(json.dumps(told.to_json()))) == told


def test_stopped_process_is_the_suspect_wherever_it_is() -> None:
    told = compare([rank(0, REDUCE), rank(1, REDUCE, "T"), ReplicaStacks("worker", 2, problem="no answer")])
    assert [(each.index, each.place) for each in told.suspects] == [(1, "stopped")]
    assert told.missing == {"worker-2": "no answer"}


def test_data_loaders_are_no_ranks_of_their_own() -> None:
    def process(pid: int, local_rank: str, frame: Frame) -> Process:
        return Process(pid, 1, "S", local_rank, local_rank, (Thread("MainThread", (frame,)),))

    agent = Process(1, 0, "S", "0", "", (Thread("MainThread", (LOAD,)),))
    node = ReplicaStacks(
        "worker", 0, "n", (agent, process(5, "0", REDUCE), process(6, "1", REDUCE), process(9, "0", LOAD))
    )
    told = compare([node])
    assert (told.verdict, told.ranks) == (StackVerdict.COLLECTIVE, 2)


def test_hostile_output_of_a_collector_is_text_at_most() -> None:
    frames = [{"name": "f\u202e\x1b[31m<b>", "filename": "/a/site-packages/x.py", "line": 1}]
    row = {"thread_name": None, "pid": 7, "os_thread_id": 7, "frames": frames}
    output = (
        f"noise\nprocess 7 1 S - -\n{json.dumps([row])}\nprocess 8 1 S 1 0\nError: Permission denied\nmore\n"
        f"process 9 1 S - -\n{json.dumps([{'frames': 3}])}\nprocess 10 1 S - -\n{'[' * 9999}"
    )
    first, second, *others = parse(output)
    assert first.threads == (Thread("MainThread", (Frame("f��[31m<b>", "x.py", 1),)),)
    assert (second.rank, second.threads, second.problem) == ("1", (), "Error: Permission denied")
    assert all(each.problem and not each.threads for each in others)
    assert "f��[31m<b> (x.py:1)" in render([ReplicaStacks("w", 0, "", (first, second))])
