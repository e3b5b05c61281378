"""XGBoost: a tracker beside rank 0, and the variables by which the others find it.

The names are those of DMLC's launchers: XGBoost up to 2.0 reads them by itself, and a script hands them to
`CommunicatorContext` of a later one.  A script for Kubeflow starts a tracker of its own at MASTER_ADDR and
MASTER_PORT; this one has another port.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jobs.node.frameworks.job import SHELL, FrameworkJob, find_leader

END: Final = "END_OF_TRACKER"


def shared_variables(job: FrameworkJob) -> dict[str, str]:
    """Return where the tracker listens, and for how many workers."""
    return {
        "DMLC_TRACKER_URI": job.master_address,
        "DMLC_TRACKER_PORT": job.master_port(SHELL),
        "DMLC_NUM_WORKER": str(job.replicas),
        "DMLC_ROLE": "worker",
    }


def own_variables(rank: str) -> dict[str, str]:
    """Return the replica's task: tasks are ranked by their names."""
    return {"DMLC_TASK_ID": rank}


def wrap_command(roles: list[str], position: int, command: str) -> str:
    """Return the command; rank 0 starts the tracker before it."""
    if position != find_leader(roles):
        return command
    program = Path(__file__).with_name("xgboost_tracker.py").read_text(encoding="utf-8")
    lines = [
        'if [ "$PAI_TASK_INDEX" = 0 ]; then',
        f"python3 - $$ <<'{END}' || exit",
        program.rstrip("\n"),
        END,
        "fi",
        command,
    ]
    return "\n".join(lines)
