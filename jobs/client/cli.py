"""`job-console`: the command line of the console.

It needs no server for job files, and no Django for anything.  Sentences are in the language of the
environment (LC_ALL, LC_MESSAGES, LANG), where there are translations.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from jobs import language
from jobs.client.parser import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    language.activate(language.language_of(os.environ))
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        sys.stderr.write(f"{error.filename or getattr(arguments, 'file', '')}: {error.strerror}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
