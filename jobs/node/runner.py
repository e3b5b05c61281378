"""Started as a script by an interpreter that loads nothing but the standard library.

runner.py agent ROOT            go into the background and look after the attempts below a folder; exit 0 once
                                somebody does
runner.py fork-server FD NEWS ROOM
                                start wrappers for the agent; FD is a socket, NEWS a pipe
runner.py probe MODE FOLDER     exit 0 when isolation of that mode works here
runner.py network MODE          exit 0 when a network of a job's own works here with isolation of that mode
runner.py replica               run the replica that an order on stdin names, on a node of its own
runner.py relay ARGUMENT…       run the node relay
runner.py enter FOLDER FD       serve one session beside a replica of the attempt; FD is a socket
"""

import os
import sys


def _go_into_the_background() -> int:
    """Leave the caller's process tree and session, so that what ends the console doesn't end us.

    Return a descriptor to which a byte is to be written for the caller to go on.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        os._exit(0 if os.read(reader, 1) else 1)
    os.close(reader)
    os.setsid()
    if os.fork():
        os._exit(0)
    return writer


def _run_agent(root: str) -> None:
    writer = _go_into_the_background()
    from pathlib import Path  # noqa: PLC0415 as late as possible

    from jobs.node.agent.agent import main  # noqa: PLC0415 likewise

    def ready() -> None:
        nonlocal writer
        if writer >= 0:
            os.write(writer, b".")
            os.close(writer)
            writer = -1

    main(Path(root), _command(), ready)


def _command() -> list[str]:
    return [sys.executable, "-I", "-S", sys.argv[0]]


def _run() -> None:
    from pathlib import Path  # noqa: PLC0415 likewise

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    if sys.argv[1] == "agent":
        _run_agent(sys.argv[2])
    elif sys.argv[1] == "fork-server":
        from jobs.node.agent.fork_server import main as serve_forks  # noqa: PLC0415 likewise

        serve_forks(int(sys.argv[2]), int(sys.argv[3]), _command())
    elif sys.argv[1] == "replica":
        from jobs.node.supervisor.replica_runner import main as run_replica  # noqa: PLC0415 likewise

        run_replica()
    elif sys.argv[1] == "relay":
        from jobs.node.relay import main as relay  # noqa: PLC0415 likewise

        sys.exit(relay(sys.argv[2:]))
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
