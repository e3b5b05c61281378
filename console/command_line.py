"""`job-console-server COMMAND`, `python -m console COMMAND` and `manage.py COMMAND`.

`run`, `doctor` and `restore` work before there are keys or a database; the others are Django's commands.
"""

import sys

from console.run import preflight
from console.run.__main__ import main as run

USAGE = """Usage: job-console-server COMMAND

run             start the console; Ctrl-C ends it, jobs go on
doctor          check what this machine and the settings lack
backup FILE     write database, keys, logs and uploads into a file, while the console runs
restore FILE    put a backup in place of what is there; --verify only checks the file
help            list the other commands; `COMMAND --help` explains one
"""


def main() -> int:
    """Run one command; return its exit status."""
    command, *arguments = sys.argv[1:] or [""]
    if command == "run" and not arguments:
        return run()
    if command in {"", "-h", "--help", "run"}:
        print(USAGE, end="", file=sys.stdout if command.startswith("-") else sys.stderr)
        return 0 if command.startswith("-") else 2
    try:
        preflight.packages()
    except preflight.CannotStart as problem:
        sys.exit(str(problem))
    if command == "doctor":
        from console.checks import doctor  # noqa: PLC0415  # needs the packages

        return doctor.main()
    if command == "restore":
        from console.management import restoration  # noqa: PLC0415  # likewise

        return restoration.main(arguments)
    from console.management import dispatch  # noqa: PLC0415  # likewise

    return dispatch.execute()
