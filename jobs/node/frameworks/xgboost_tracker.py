"""The tracker of an XGBoost job, in the background of the process whose number is its argument.

It travels in the job's command, and runs with the job's own Python and XGBoost.  Without that package it does
nothing, and the job's command says what is missing.  It serves one group of workers, as each of them does.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time


def main() -> None:
    """Return once the tracker listens."""
    try:
        from xgboost.tracker import RabitTracker  # noqa: PLC0415 the job's, if it has it
    except ImportError:
        return
    workers, port = int(os.environ["DMLC_NUM_WORKER"]), int(os.environ["DMLC_TRACKER_PORT"])
    address = socket.getaddrinfo(os.environ["DMLC_TRACKER_URI"], port)[0][4][0]
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        if not os.read(reader, 1):
            sys.exit("The XGBoost tracker can't listen on port %d." % port)  # noqa: UP031 old Pythons too
        return
    os.setsid()
    threading.Thread(target=follow, args=[int(sys.argv[1])], daemon=True).start()
    tracker = RabitTracker(n_workers=workers, host_ip=str(address), port=port, sortby="task")
    tracker.start()
    os.write(writer, b".")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2, writer):
        os.dup2(null, fd)
    tracker.wait_for()


def follow(pid: int) -> None:
    """End with the process of that number."""
    while os.path.exists("/proc/%d" % pid):  # noqa: PTH110, UP031
        time.sleep(0.2)
    os._exit(0)


if __name__ == "__main__":
    main()
