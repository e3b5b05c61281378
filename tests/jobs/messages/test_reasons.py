"""The one sentence why: what happened, and what would help."""

from typing import Any

import pytest

from jobs.messages import exit_message, reason_message, signal_name
from jobs.states import ReasonCode

WAITING = [
    (
        ReasonCode.NO_SUCH_GPU,
        {"cluster": "local", "gpu_type": "TITANX", "types": None},
        "Waiting: no TITANX GPU on “local”. Remove the GPU request or choose another cluster.",
    ),
    (
        ReasonCode.NO_SUCH_GPU,
        {"cluster": "local", "gpu_type": "TITANX", "types": "P100, V100"},
        (
            "Waiting: no TITANX GPU on “local”. Select an available type (P100, V100), remove the "
            "GPU request or choose another cluster."
        ),
    ),
    (
        ReasonCode.NO_SUCH_NODE,
        {"cluster": "local", "missing": "n9"},
        ("Waiting: no node named n9 on local. Select other nodes or none."),
    ),
    (
        ReasonCode.NO_SUCH_NODE,
        {"cluster": "local", "nodes": "n1, n2"},
        (
            "Waiting: the job does not fit on the selected nodes (n1, n2), even when nothing else "
            "runs. Request less, or allow more nodes."
        ),
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"cluster": "local", "kind": "gpu", "wanted": 16, "free": 9, "ahead": 0, "gpus_now": 8},
        "Waiting for 16 GPUs: 9 GPUs free on local now. Request 8 GPUs to start now.",
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"cluster": "local", "kind": "P100", "wanted": 4, "free": 0, "ahead": 0, "fits_now": None},
        "Waiting for 4 P100 GPUs: 0 P100 GPUs free on local now. Starts when other jobs end.",
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"cluster": "local", "kind": "cpu", "wanted": 6000, "free": 1500, "fits_now": 1},
        ("Waiting for 6 CPU cores: 1.5 CPU cores free on local now. 1 replica of this size could start now."),
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"cluster": "local", "kind": "one_node", "wanted": 6000, "free": None},
        ("Waiting: no node of local has room for a whole replica. Smaller replicas would start sooner."),
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"resource": "port", "port": 8080},
        "Waiting: port 8080 is in use. Use another port to start now.",
    ),
    (
        ReasonCode.WAITING_CAPACITY,
        {"resource": "memory_mib", "wanted": 8192, "free": 512},
        "Waiting for 8 GiB: 512 MiB free now. Starts when other jobs end.",
    ),
    (
        ReasonCode.WAITING_QUOTA,
        {"quota": "research", "kind": "gpu", "wanted": 4, "used": 6, "limit": 8},
        ("Waiting for quota research: 4 GPUs requested, 6 GPUs of 8 GPUs in use, 2 GPUs available."),
    ),
    (
        ReasonCode.WAITING_QUOTA,
        {"quota": "research", "kind": "jobs", "wanted": 1, "used": 3, "limit": 3},
        (
            "Waiting for quota research: 1 job requested, 3 jobs of 3 jobs in use. Starts when "
            "enough is released."
        ),
    ),
    (
        ReasonCode.EXCEEDS_QUOTA,
        {"quota": "research", "kind": "memory", "wanted": 65536, "used": 0, "limit": 32768},
        (
            "64 GiB requested, but quota research allows at most 32 GiB. Request less, use another "
            "quota, or ask an admin to raise the limit."
        ),
    ),
    (
        ReasonCode.EXCEEDS_CLUSTER,
        {"cluster": "local", "kind": "gpu", "wanted": 8, "most": 2},
        ("8 GPUs requested, but local has only 2 GPUs in total. Request less, or use a larger cluster."),
    ),
    (
        ReasonCode.EXCEEDS_CLUSTER,
        {"cluster": "local", "kind": "one_node", "wanted": 8000, "most": None},
        (
            "No node of local is large enough for one replica, even when nothing else runs. "
            "Request less per replica."
        ),
    ),
    (ReasonCode.WAITING_TURN, {"ahead": 2}, "Waiting for its turn (2 jobs ahead)."),
    (
        ReasonCode.RETRYING,
        {"attempt": 2, "code": "node_lost"},
        "Retrying automatically, attempt 2. Previous attempt: The node was lost.",
    ),
]
ENDED = [
    (
        ReasonCode.COMPLETED_WITH_FAILURES,
        {"failed": 1, "total": 1},
        (
            "Succeeded although 1 of 1 replicas failed, as the completion policy allows "
            "(minFailedTaskCount, minSucceededTaskCount)."
        ),
    ),
    (
        ReasonCode.EXIT_CODE,
        {"role": "task_1", "index": 0, "exit_code": 127},
        "Replica task_1-0 failed. Exit code 127 (command not found).",
    ),
    (ReasonCode.EXIT_CODE, {"exit_code": 127}, "Failed. Exit code 127 (command not found)."),
    (
        ReasonCode.SIGNALLED,
        {"role": "w", "index": 3, "signal": 9, "exit_code": 137},
        (
            "Replica w-3 was terminated by a signal. Exit code 137: killed, often because memory "
            "ran out (SIGKILL)."
        ),
    ),
    (
        ReasonCode.OUT_OF_MEMORY,
        {"role": "w", "index": 0, "limit_mib": 2048, "exit_code": 137},
        ("Replica w-0 exceeded its memory limit of 2 GiB and was killed. Request more memory, or use less."),
    ),
    (ReasonCode.TIME_LIMIT, {"limit_s": 5400}, "Time limit of 1 h 30 min reached."),
    (ReasonCode.USER_STOP, {"by": "ada"}, "Stopped by ada."),
    (ReasonCode.START_FAILED, {"error": "no bash"}, "Could not be started: no bash"),
    (
        ReasonCode.REFUSED,
        {"why": "exceeds_cluster", "resource": "cpu_milli", "wanted": 8000, "total": 2000},
        "Refused: 8 CPU cores requested, but the whole cluster has 2 CPU cores.",
    ),
    (ReasonCode.REFUSED, {"detail": "no such partition"}, "Refused by the cluster: no such partition"),
]


@pytest.mark.parametrize(("code", "params", "sentence"), [*WAITING, *ENDED])
def test_reason_message_names_event_and_remedy(
    code: ReasonCode, params: dict[str, Any], sentence: str
) -> None:
    assert reason_message(code, params) == sentence
    assert reason_message(code.value, params) == sentence


@pytest.mark.parametrize(
    ("code", "signal", "words"),
    [
        (None, None, ""),
        (0, None, "Exit code 0 (success)"),
        (127, None, "Exit code 127 (command not found)"),
        (126, None, "Exit code 126 (command not executable)"),
        (42, None, "Exit code 42 (set by the program)"),
        (
            139,
            None,
            "Exit code 139: segmentation fault (SIGSEGV)",
        ),
        (143, 15, "Exit code 143: terminated (SIGTERM)"),
        (None, 2, "Exit code 130: interrupted, e.g. by Ctrl-C (SIGINT)"),
        (200, None, "Exit code 200 (set by the program)"),
        (145, None, "Exit code 145: terminated by SIGCHLD"),
        (-7111, None, "Exit code -7111 (node lost)"),
    ],
)
def test_exit_message_names_exit_code_or_signal(code: int | None, signal: int | None, words: str) -> None:
    assert exit_message(code, signal) == words


def test_signal_without_name_shows_its_number() -> None:
    assert signal_name(9) == "SIGKILL"
    assert signal_name(99) == "signal 99"
