"""Started as a script by an interpreter that loads nothing but the standard library.

runner.py fork-server FD ROOM   go into the background and start supervisors; FD is a socket
runner.py probe MODE FOLDER     exit 0 when isolation of that mode works here
runner.py network MODE          exit 0 when a network of a job's own works here with isolation of that mode
runner.py enter FOLDER FD       serve one session beside a replica of the attempt; FD is a socket
"""

import os
import sys


def _into_the_background() -> None:
    """Out of the caller's process tree and session: what ends the console doesn't end us."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)


def _run() -> None:
    if sys.argv[1] == "fork-server":
        _into_the_background()
    from pathlib import Path  # noqa: PLC0415 the caller is free already

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    if sys.argv[1] == "fork-server":
        from jobs.node.supervisor.fork_server import main as serve_forks  # noqa: PLC0415 likewise

        serve_forks(int(sys.argv[2]), [sys.executable, "-I", "-S", sys.argv[0], "supervise"])
    elif sys.argv[1] == "enter":
        from jobs.node.sessions.entry import main as enter  # noqa: PLC0415 likewise

        enter(Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "network":
        from jobs.node.network.detection import main as try_network  # noqa: PLC0415 likewise

        try_network(sys.argv[2])
    else:
        from jobs.node.sandbox.sandbox_exec import probe  # noqa: PLC0415 likewise

        probe(sys.argv[2], Path(sys.argv[3]))


if __name__ == "__main__":
    _run()
