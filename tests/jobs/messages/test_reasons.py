"""The one sentence why: what happened, and what would help."""

from typing import Any

import pytest

from jobs.messages import exit_message, reason_message, signal_name
from jobs.states import ReasonCode

WAITING = [
    (
        ReasonCode.NO_SUCH_GPU,
        {"cluster": "local", "gpu_type": "TITANX", "types": None},
        "Waits because local has no TITANX GPU: it would start without GPUs, or on a cluster that has one.",
    ),
    (
        ReasonCode.NO_SUCH_GPU,
        {"cluster": "local", "gpu_type": "TITANX", "types": "P100, V100"},
        (
            "Waits because local has no TITANX GPU: it would start with a type that is there (P100, V100), "
            "without GPUs, or on another cluster."
        ),
    ),
    (
        ReasonCode.NO_SUCH_NODE,
        {"cluster": "local", "missing": "n9"},
        (
            "Waits because local has no node called n9: it would start with other nodes, or without naming "
            "any."
        ),
    ),
    (
        ReasonCode.NO_SUCH_NODE,
        {"cluster": "local", "nodes": "n1, n2"},
        (
            "Waits because the nodes to which it is bound (n1, n2) can't hold it, even when nothing else "
            "runs: it would start with less, or on other nodes too."
        ),
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"cluster": "local", "kind": "gpu", "wanted": 16, "free": 9, "ahead": 0, "gpus_now": 8},
        "Waits for 16 GPUs: 9 GPUs free on local now; asking for 8 GPUs it would start now.",
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"cluster": "local", "kind": "P100", "wanted": 4, "free": 0, "ahead": 0, "fits_now": None},
        "Waits for 4 P100 GPUs: 0 P100 GPUs free on local now; it starts when others end.",
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"cluster": "local", "kind": "cpu", "wanted": 6000, "free": 1500, "fits_now": 1},
        "Waits for 6 CPU cores: 1.5 CPU cores free on local now; 1 task of its kind would start now.",
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"cluster": "local", "kind": "one_node", "wanted": 6000, "free": None},
        "Waits until one node of local has room for a whole task; smaller tasks would start sooner.",
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"resource": "port", "port": 8080},
        "Waits for port 8080, which something else uses; any other port would start it.",
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"resource": "memory_mib", "wanted": 8192, "free": 512},
        "Waits for 8 GiB: 512 MiB free now; it starts when others end.",
    ),
    (
        ReasonCode.WAITING_QUOTA,
        {"quota": "research", "kind": "gpu", "wanted": 4, "used": 6, "limit": 8},
        (
            "Waits for quota research: it asks for 4 GPUs, and 6 GPUs of 8 GPUs are in use; there is "
            "room for 2 GPUs."
        ),
    ),
    (
        ReasonCode.WAITING_QUOTA,
        {"quota": "research", "kind": "jobs", "wanted": 1, "used": 3, "limit": 3},
        (
            "Waits for quota research: it asks for 1 job, and 3 jobs of 3 jobs are in use; it "
            "starts when enough of that is given back."
        ),
    ),
    (
        ReasonCode.EXCEEDS_QUOTA,
        {"quota": "research", "kind": "memory", "wanted": 65536, "used": 0, "limit": 32768},
        (
            "Asks for 64 GiB, but quota research never allows more than 32 GiB: it starts with "
            "less, in another quota, or when an admin raises the limit."
        ),
    ),
    (
        ReasonCode.EXCEEDS_CLUSTER,
        {"cluster": "local", "kind": "gpu", "wanted": 8, "most": 2},
        "Asks for 8 GPUs, but all of local together has 2 GPUs: it starts with less, or on a larger cluster.",
    ),
    (
        ReasonCode.EXCEEDS_CLUSTER,
        {"cluster": "local", "kind": "one_node", "wanted": 8000, "most": None},
        (
            "No single node of local can hold one of its tasks, even when nothing else runs: it "
            "starts with less for each task."
        ),
    ),
    (ReasonCode.WAITING_TURN, {"ahead": 2}, "Waits for its turn; ahead of it in the queue: 2 jobs."),
    (
        ReasonCode.RETRYING,
        {"attempt": 2, "code": "node_lost"},
        "Runs again by itself, attempt 2. The one before: Its node was lost.",
    ),
]
ENDED = [
    (
        ReasonCode.COMPLETED_WITH_FAILURES,
        {"failed": 1, "total": 1},
        (
            "Succeeded, 1 of 1 tasks failed: its counts (minFailedTaskCount, minSucceededTaskCount) "
            "let the job succeed all the same."
        ),
    ),
    (
        ReasonCode.EXIT_CODE,
        {"role": "task_1", "index": 0, "exit_code": 127},
        "Task task_1-0 failed. Exit code 127: the command was not found.",
    ),
    (ReasonCode.EXIT_CODE, {"exit_code": 127}, "Failed. Exit code 127: the command was not found."),
    (
        ReasonCode.SIGNALLED,
        {"role": "w", "index": 3, "signal": 9, "exit_code": 137},
        (
            "Task w-3 was ended by a signal. Exit code 137: ended by SIGKILL, that is, it was killed, often "
            "because memory ran out."
        ),
    ),
    (
        ReasonCode.OUT_OF_MEMORY,
        {"role": "w", "index": 0, "limit_mib": 2048, "exit_code": 137},
        "Task w-0 used more than its 2 GiB of memory and was ended: give it more, or use less.",
    ),
    (ReasonCode.TIME_LIMIT, {"limit_s": 5400}, "Ended after 1 h 30 min, the longest it was allowed to run."),
    (ReasonCode.USER_STOP, {"by": "ada"}, "Stopped by ada."),
    (ReasonCode.START_FAILED, {"error": "no bash"}, "Could not be started: no bash"),
    (
        ReasonCode.REFUSED,
        {"why": "exceeds_cluster", "resource": "cpu_milli", "wanted": 8000, "total": 2000},
        "Refused: it asks for 8 CPU cores, and the whole cluster has 2 CPU cores.",
    ),
    (ReasonCode.REFUSED, {"detail": "no such partition"}, "Refused by the cluster: no such partition"),
]


@pytest.mark.parametrize(("code", "params", "sentence"), [*WAITING, *ENDED])
def test_the_sentence_says_what_happened_and_what_would_help(
    code: ReasonCode, params: dict[str, Any], sentence: str
) -> None:
    assert reason_message(code, params) == sentence
    assert reason_message(code.value, params) == sentence


@pytest.mark.parametrize(
    ("code", "signal", "words"),
    [
        (None, None, ""),
        (0, None, "Exit code 0: it succeeded"),
        (127, None, "Exit code 127: the command was not found"),
        (126, None, "Exit code 126: the command was found but can't be executed"),
        (42, None, "Exit code 42: the program chose this code"),
        (
            139,
            None,
            "Exit code 139: ended by SIGSEGV, that is, the program accessed memory that is not its own",
        ),
        (143, 15, "Exit code 143: ended by SIGTERM, that is, it was asked to end"),
        (None, 2, "Exit code 130: ended by SIGINT, that is, it was interrupted, as by Ctrl-C"),
        (200, None, "Exit code 200: the program chose this code"),
        (145, None, "Exit code 145: ended by SIGCHLD"),
        (-7111, None, "Exit code -7111: its node was lost"),
    ],
)
def test_exit_codes_and_signals_in_words(code: int | None, signal: int | None, words: str) -> None:
    assert exit_message(code, signal) == words


def test_signals_without_a_name_have_their_number() -> None:
    assert signal_name(9) == "SIGKILL"
    assert signal_name(99) == "signal 99"
