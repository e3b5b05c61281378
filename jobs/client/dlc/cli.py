"""`dlc`: the entry point.

Exit status: 0 done, 1 refused by the API or the job failed, 2 called wrongly, 3 no answer, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from jobs.client.dlc.failure import USAGE
from jobs.client.dlc.parser import parser
from jobs.client.failure import CommandFailure

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = parser(words).parse_args(words)
    try:
        return int(arguments.run(arguments))
    except CommandFailure as failure:
        sys.stderr.write(f"{failure}\n")
        return failure.status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        sys.stderr.write(f"{error.filename or 'dlc'}: {error.strerror}\n")
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
