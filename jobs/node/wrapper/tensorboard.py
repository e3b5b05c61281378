"""TensorBoard beside a job: the shell text that starts it, and what it may use.

It runs with the replica's environment, as its user.  Its own output is in the replica's temporary folder.
"""

from __future__ import annotations

from typing import Final

from jobs.node.staging import mount_paths

NAME: Final = "tensorboard"
"""The program, the label of its port, and the end of the names of its control group and container."""

LOG_PATH: Final = "AIHC_TENSORBOARD_LOG_PATH"
"""The variable that names the log folder to every replica (AIHC page)."""

DEFAULT_FOLDER: Final = f"{mount_paths.WORK}/{NAME}"

CPU_MILLI: Final = 500
MEMORY_MIB: Final = 1024
"""Beside what the replica itself may use."""

COMMAND: Final = """
[ ! -w "${TMPDIR:-/tmp}" ] || exec >"${TMPDIR:-/tmp}/tensorboard.log" 2>&1
if command -v tensorboard >/dev/null; then set -- tensorboard; fi
[ $# -gt 0 ] || { echo 'TensorBoard is not installed where this job runs.'; exit 127; }
mkdir -p "$AIHC_TENSORBOARD_LOG_PATH"
port=${PAI_CONTAINER_HOST_tensorboard_PORT_LIST%%,*}
line='{"label": "tensorboard", "port": %s, "path": "/", "probe": "/"}\\n'
printf "$line" "$port" >>"$JOB_CONSOLE_ENDPOINTS"
exec "$@" --logdir "$AIHC_TENSORBOARD_LOG_PATH" --host 127.0.0.1 --port "$port" --reload_interval 5
"""
"""Starts the job's own program, or else the command in its arguments: the console's."""

RUN_OWN: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); sys.argv[0] = 'tensorboard'; "
    "from tensorboard.main import run_main; run_main()"
)
"""Runs the console's own for Python: its first argument is the folder of libraries."""
