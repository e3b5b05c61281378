"""An array of six tasks, two at a time, that write down when they begin and end, wherever they run."""

from __future__ import annotations

from collections.abc import Iterable

SCRIPT = """#!/bin/bash
#SBATCH -J array -c1 --mem=64M
#SBATCH --array=0-5%2
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT of $SLURM_ARRAY_JOB_ID"
date +%s%N
sleep 0.3
date +%s%N
"""


def most_at_a_time(logs: Iterable[str]) -> int:
    """How many of the tasks ran at the same moment, by what they wrote."""
    moments: list[tuple[int, int]] = []
    for log in logs:
        began, ended = map(int, log.splitlines()[1:3])
        moments += [(began, 1), (ended, -1)]
    going = most = 0
    for _moment, change in sorted(moments):
        going += change
        most = max(most, going)
    return most
