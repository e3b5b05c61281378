"""`python -m console.run`, which `make run` becomes once the environment is installed."""

import signal
import sys

from console.configuration.env import EnvError
from console.configuration.keys import KeysMissing
from console.run import first_password, preflight
from console.run.lock import AlreadyRunning


def main() -> int:
    """Run the console until it is stopped; 0 then, 1 and a sentence when it cannot start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for what they start with &
    first_password.put_aside()
    try:
        preflight.packages()
        from console.run.start import run  # noqa: PLC0415  # needs those packages

        run()
    except (AlreadyRunning, EnvError, KeysMissing, preflight.CannotStart) as problem:
        print(f"Job Console cannot start. {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
